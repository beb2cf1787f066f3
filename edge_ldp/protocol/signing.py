"""Signed plans and receipts: one fixed envelope around the exact bytes, and who may sign them.

    magic 8 bytes | key id 8 | Ed25519 signature 64 | the content, to the end

What is signed is the context, a zero byte and the content's bytes; audience and time stand in the
content itself. A plan has CONTEXT, a receipt RECEIPT_CONTEXT: neither is taken for the other. There
is one encoding only: no length, no option, nothing to write in two ways. The
mathematics of Ed25519 (RFC 8032) is the caller's, given as a function. Source: docs/design.md,
Messages; docs/faults.md, PLN; docs/adr/0014-signed-plans.md, docs/adr/0027-series.md.
"""

import re
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import NamedTuple

from edge_ldp.device.errors import ParameterError
from edge_ldp.lean_class import lean_class
from edge_ldp.protocol.public_key import is_sound
from edge_ldp.protocol.strict_json import MessageError

MAGIC = b"ELDPsig1"  # no JSON text begins so
CONTEXT = b"edge-ldp plan v1"  # a signature made for anything else is none here
RECEIPT_CONTEXT = b"edge-ldp receipt v2"
ID_BYTES = 8
SIGNATURE_BYTES = 64
PUBLIC_BYTES = 32
MAX_KEYS = 8
HEAD_BYTES = len(MAGIC) + ID_BYTES + SIGNATURE_BYTES
_PUBLIC = re.compile(f"[0-9a-f]{{{2 * PUBLIC_BYTES}}}")

Verify = Callable[[bytes, bytes, bytes], bool]  # (public key, signature, message)
Sign = Callable[[bytes], bytes]


class Envelope(NamedTuple):
    """A plan or receipt and the signature that came with it; nothing of it is checked yet."""

    key: bytes
    signature: bytes
    content: bytes

    def to_bytes(self) -> bytes:
        """Return the envelope's one encoding."""
        return MAGIC + self.key + self.signature + self.content


def unwrap(payload: bytes) -> Envelope | None:
    """Return the envelope that a payload is, or None for one without: what nobody signed.

    Raises MessageError("sig", "envelope") for one that is cut.
    """
    if not payload.startswith(MAGIC):
        return None
    if len(payload) <= HEAD_BYTES:
        raise MessageError("sig", "envelope", f"more than {HEAD_BYTES} bytes")
    key, signature = (
        payload[len(MAGIC) : len(MAGIC) + ID_BYTES],
        payload[HEAD_BYTES - 64 : HEAD_BYTES],
    )
    return Envelope(key, signature, payload[HEAD_BYTES:])


def plan_bytes(payload: bytes) -> bytes:
    """Return what is in a payload, whether somebody signed it or not; raises MessageError."""
    envelope = unwrap(payload)
    return payload if envelope is None else envelope.content


def signed_bytes(content: bytes, context: bytes = CONTEXT) -> bytes:
    """Return the bytes that a signature is over."""
    return context + b"\0" + content


def key_id(public: bytes) -> bytes:
    """Return the short name of a public key: the first bytes of its SHA-256."""
    return sha256(public).digest()[:ID_BYTES]


def parse_public(text: str) -> bytes:
    """Return the public key that 64 hexadecimal digits are; raises ParameterError."""
    if not _PUBLIC.fullmatch(text):
        raise ParameterError("public key", f"{2 * PUBLIC_BYTES} digits of 0-9 a-f")
    return check_public(bytes.fromhex(text))


def check_public(public: bytes) -> bytes:
    """Return a public key that only its owner signs for; raises ParameterError for any other."""
    if len(public) != PUBLIC_BYTES or not is_sound(public):
        raise ParameterError("public key", "one that `edge-ldp keys make` shows: no such point")
    return public


@lean_class(frozen=True, slots=True)
class Signer:
    """Who signs for an aggregator: a public key and what signs with its private half."""

    public: bytes
    sign: Sign

    def wrap(self, content: bytes, context: bytes = CONTEXT) -> bytes:
        """Return the content in its signed envelope; the same content gives the same bytes."""
        signature = self.sign(signed_bytes(content, context))
        return Envelope(key_id(self.public), signature, content).to_bytes()


class Keyring:
    """The public keys whose word is taken; what `following` signs ends the word of the others.

    Raises ParameterError for a key that others than its owner could sign for.
    """

    def __init__(
        self, publics: Iterable[bytes], verify: Verify, following: bytes | None = None
    ) -> None:
        every = [*publics, *(() if following is None else (following,))]
        self._keys = {key_id(public): public for public in map(check_public, every)}
        self._following = None if following is None else key_id(following)
        self._verify = verify

    def is_of_following(self, payload: bytes) -> bool:
        """Say whether a payload names the key that is to follow; whether it signed is not tried."""
        return payload[len(MAGIC) :][:ID_BYTES] == self._following

    def open(self, payload: bytes, context: bytes = CONTEXT) -> bytes:
        """Return the content of a payload that one of the keys signed for this context.

        Raises MessageError: "sig" without a signature or with a wrong one, "key" for one by a key
        that is not, or not the one that it names, on this ring.
        """
        envelope = unwrap(payload)
        if envelope is None:
            raise MessageError("sig", "envelope", "a signature: keys are configured")
        named = self._keys.get(envelope.key)
        if named is None:
            raise MessageError("key", "envelope", "a key of this device's configuration")
        signed = signed_bytes(envelope.content, context)
        if self._verify(named, envelope.signature, signed):
            if envelope.key == self._following:
                self._keys = {envelope.key: named}
            return envelope.content
        others = [public for public in self._keys.values() if public != named]
        if any(self._verify(public, envelope.signature, signed) for public in others):
            raise MessageError("key", "envelope", "the key that signed it")
        raise MessageError("sig", "envelope", "a signature of these bytes by the key it names")
