"""Keys that anybody could sign for are none: PLN_17. Against `cryptography`, which takes them."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from edge_ldp.device.errors import ParameterError
from edge_ldp.protocol.public_key import P, is_sound
from edge_ldp.protocol.signing import Keyring, parse_public, signed_bytes
from edge_ldp.service.verify import keyring, verify

EIGHTH = 2707385501144840649318225287225658788936804267575313519463743609750303402022
SMALL = [y + (sign << 255) for y in (0, 1, P - 1, EIGHTH, P - EIGHTH) for sign in (0, 1)]
AGAIN = [y + P + (sign << 255) for y in (0, 1, 3, 4, 5, 6, 9, 18) for sign in (0, 1)]
OFF = [2, 7, 8]  # no point of the curve has such a y


def encoded(number: int) -> bytes:
    return number.to_bytes(32, "little")


@pytest.mark.parametrize("number", [*SMALL, *AGAIN, *OFF])
def test_keys_of_small_order_in_two_forms_or_off_the_curve_are_refused_PLN_17(number: int) -> None:
    public = encoded(number)
    assert not is_sound(public)
    with pytest.raises(ParameterError, match="no such point"):
        parse_public(public.hex())
    with pytest.raises(ParameterError, match="public key"):
        keyring([public])


def test_without_the_check_forgeries_verify_so_it_is_needed_PLN_17() -> None:
    """R = the identity, S = 0: valid under a key of order 1, 2 or 4 for a share of all messages."""
    forged = encoded(1) + bytes(32)
    plans = [signed_bytes(b'{"v":1,"n":%d}' % n) for n in range(60)]
    keys = [encoded(number) for number in SMALL]
    assert any(verify(key, forged, plan) for key in keys for plan in plans)


def test_every_key_that_is_made_is_sound() -> None:
    for _ in range(200):
        public = (
            Ed25519PrivateKey.generate().public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        )
        assert is_sound(public)
        assert parse_public(public.hex()) == public


def test_keys_of_another_length_make_no_ring_PLN_17() -> None:
    for length in (0, 31, 33):
        with pytest.raises(ParameterError):
            Keyring([b"\x05" * length], verify)
