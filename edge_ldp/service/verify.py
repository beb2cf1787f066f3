"""Checking Ed25519 signatures: all that a device needs of `cryptography`, and so all it loads."""

from collections.abc import Iterable

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from edge_ldp.protocol.signing import Keyring


def verify(public: bytes, signature: bytes, signed: bytes) -> bool:
    """Say whether a signature of `signed` was made with the private half of a 32-byte key."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, signed)
    except (InvalidSignature, ValueError):
        return False
    return True


def keyring(publics: Iterable[bytes], following: bytes | None = None) -> Keyring:
    """Return the ring of these public keys, and of the one that is to follow them."""
    return Keyring(publics, verify, following)
