"""Signed plans: one encoding, exact bytes, and a reason for each way in which it can be wrong."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.device.errors import ParameterError
from edge_ldp.protocol.signing import (
    CONTEXT,
    MAGIC,
    RECEIPT_CONTEXT,
    SIGNATURE_BYTES,
    Envelope,
    Keyring,
    Signer,
    key_id,
    parse_public,
    plan_bytes,
    signed_bytes,
    unwrap,
)
from edge_ldp.protocol.strict_json import MessageError

OURS, NEXT, FOREIGN = map(
    bytes.fromhex,
    (
        "8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c",
        "8139770ea87d175f56a35466c34c7ecccb8d8a91b4ee37a25df60f5b8fc9b394",
        "ed4928c628d1c2c6eae90338905995612959273a5c63f93636c14614ac8737d1",
    ),
)
PLAN = b'{"v":1}'


def sign_with(public: bytes) -> Signer:
    """Sign as a stand-in for Ed25519 does: 64 bytes of key and message; test_keys has the real."""
    return Signer(public, lambda signed: sha256(public + signed).digest() * 2)


def verify(public: bytes, signature: bytes, signed: bytes) -> bool:
    return signature == sha256(public + signed).digest() * 2


RING = Keyring([OURS, NEXT], verify)


def refusal(payload: bytes, ring: Keyring = RING) -> str:
    with pytest.raises(MessageError) as refused:
        ring.open(payload)
    return refused.value.reason


@pytest.mark.parametrize("public", [OURS, NEXT])
def test_either_key_of_an_overlap_is_taken(public: bytes) -> None:
    assert RING.open(sign_with(public).wrap(PLAN)) == PLAN


def test_the_envelope_is_magic_key_id_signature_and_the_plan_to_the_end() -> None:
    wrapped = sign_with(OURS).wrap(PLAN)
    assert wrapped[:8] == MAGIC == b"ELDPsig1"
    assert wrapped[8:16] == key_id(OURS) == sha256(OURS).digest()[:8]
    assert wrapped[16:80] == sha256(OURS + b"edge-ldp plan v1\0" + PLAN).digest() * 2
    assert wrapped[80:] == PLAN
    assert signed_bytes(PLAN) == CONTEXT + b"\0" + PLAN


@given(st.binary(max_size=300))
def test_any_plan_comes_out_as_it_went_in(plan: bytes) -> None:
    assert RING.open(sign_with(OURS).wrap(b"x" + plan)) == b"x" + plan


@given(st.binary(max_size=200), st.sampled_from([b"", MAGIC]))
def test_any_bytes_are_refused_by_our_own_error(rest: bytes, head: bytes) -> None:
    assert refusal(head + rest) in ("sig", "key")


def test_PLN_01_without_a_signature_nothing_is_taken_where_keys_are() -> None:
    assert refusal(PLAN) == "sig"
    assert refusal(b"") == "sig"


@pytest.mark.parametrize("length", [8, 9, 16, 79, 80])
def test_PLN_01_a_cut_envelope_is_refused(length: int) -> None:
    assert refusal(sign_with(OURS).wrap(PLAN)[:length]) == "sig"


def test_PLN_01_a_signature_of_another_message_or_of_zeros_is_refused() -> None:
    other = unwrap(sign_with(OURS).wrap(b'{"v":2}'))
    assert other is not None
    assert refusal(Envelope(other.key, other.signature, PLAN).to_bytes()) == "sig"
    assert refusal(Envelope(other.key, bytes(SIGNATURE_BYTES), PLAN).to_bytes()) == "sig"


def test_PLN_01_every_flipped_bit_of_envelope_or_plan_is_refused() -> None:
    wrapped = sign_with(OURS).wrap(PLAN)
    for at in range(8 * len(wrapped)):
        flipped = bytearray(wrapped)
        flipped[at // 8] ^= 1 << at % 8
        assert refusal(bytes(flipped)) in ("sig", "key")


def test_PLN_01_bytes_after_the_plan_are_part_of_what_is_signed() -> None:
    assert refusal(sign_with(OURS).wrap(PLAN) + b" ") == "sig"


def test_PLN_01_a_signature_for_another_purpose_is_refused() -> None:
    bare = Envelope(key_id(OURS), sha256(OURS + PLAN).digest() * 2, PLAN)
    assert refusal(bare.to_bytes()) == "sig"


def test_NET_24_a_plan_is_no_receipt_and_a_receipt_is_no_plan() -> None:
    plan, receipt = sign_with(OURS).wrap(PLAN), sign_with(OURS).wrap(PLAN, RECEIPT_CONTEXT)
    assert RING.open(receipt, RECEIPT_CONTEXT) == PLAN
    assert refusal(receipt) == "sig"
    with pytest.raises(MessageError):
        RING.open(plan, RECEIPT_CONTEXT)


def test_PLN_02_an_unknown_key_and_a_revoked_one_are_refused() -> None:
    assert refusal(sign_with(FOREIGN).wrap(PLAN)) == "key"
    assert refusal(sign_with(OURS).wrap(PLAN), Keyring([NEXT], verify)) == "key"
    assert refusal(sign_with(OURS).wrap(PLAN), Keyring([], verify)) == "key"


def test_PLN_02_a_swapped_key_id_is_refused() -> None:
    signed = unwrap(sign_with(OURS).wrap(PLAN))
    assert signed is not None
    assert refusal(Envelope(key_id(NEXT), signed.signature, PLAN).to_bytes()) == "key"
    assert refusal(Envelope(key_id(FOREIGN), signed.signature, PLAN).to_bytes()) == "key"


def test_without_keys_a_plan_is_read_with_or_without_its_envelope() -> None:
    assert plan_bytes(sign_with(FOREIGN).wrap(PLAN)) == plan_bytes(PLAN) == PLAN


@pytest.mark.parametrize("text", ["", "00", "G" * 64, "A" * 64, "0" * 63, "0" * 65, " " + "0" * 63])
def test_a_public_key_is_64_small_hexadecimal_digits(text: str) -> None:
    with pytest.raises(ParameterError, match="64 digits"):
        parse_public(text)
    assert parse_public(OURS.hex()) == OURS
