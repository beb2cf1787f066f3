"""The invitation: all that one device needs to report to a fleet, in one file or one QR code.

The aggregator's operator makes it (`edge-ldp aggregator devices invite`), `edge-ldp agent setup`
takes it, once. It is one line of JSON, or `edge-ldp:` and that JSON in base64url without padding,
which fits a QR code. It holds a password: a secret like a letter with a PIN.
It tells the ε that the fleet's plans need, and what sums of a home it would count; ε, window and
mechanisms are the owner's alone, and what else it says the owner bounds (`edge-ldp agent setup`).
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import asdict, dataclass, field
from decimal import Decimal

from edge_ldp.device.errors import ParameterError
from edge_ldp.protocol.messages import MAX_STREAMS, read_name
from edge_ldp.protocol.signing import MAX_KEYS, parse_public
from edge_ldp.protocol.strict_json import Fields, MessageError, dumps, fields_of, loads
from edge_ldp.ratio import floor_ratio

VERSION = 1
SCHEME = "edge-ldp:"
MAX_CA_CHARACTERS = 1 << 15
MAX_SLOT_SECONDS = 86_400
_VALUE = 1 << 40
_SHARE = re.compile(r"[01](\.[0-9]{1,8})?")
_BASE64URL = re.compile(rb"[A-Za-z0-9_-]+")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:%-]*\Z|:[A-Za-z0-9._:%-]+\Z")
_PEM = re.compile(r"(\s*-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----\s*)+")


@dataclass(frozen=True, slots=True)
class InvitedBroker:
    """Where reports go; `ca` is PEM text, None: the system's authorities (or no TLS at all)."""

    host: str
    port: int
    tls: bool
    ca: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class InvitedSums:
    """Sums of a home that the fleet counts beside reports or, at a share of 1, instead of them.

    share: which part of the window's ε they are to have, as written; the rest as in [streams.sums].
    """

    days: int
    share: str
    cells: int = 1
    block_hours: int = 1
    offset_s: int = 0


@dataclass(frozen=True, slots=True)
class InvitedStream:
    """A quantity that the fleet counts: low, ceiling in `unit`; a slot of `slot_seconds`.

    epsilon: which its plans need, as written; None where it is not told, or sums alone are counted.
    sums: None where the fleet counts single values alone.
    """

    name: str
    quantity: str
    unit: str
    low: int
    ceiling: int
    slot_seconds: int
    epsilon: str | None = None
    sums: InvitedSums | None = None


@dataclass(frozen=True, slots=True)
class Invitation:
    """One device's way into a fleet; `plan_keys` are public keys in hex, () takes unsigned plans.

    `username` is the device's name wherever the shipped access list is used. `expires_s`: seconds
    since 1970 after which nobody is to take it; None: never. `once`: no second device is to.
    `group`: whose last month the fleet tells this home; "": none.
    """

    fleet: str
    device: str
    broker: InvitedBroker
    username: str
    password: str = field(repr=False)
    plan_keys: tuple[str, ...]
    streams: tuple[InvitedStream, ...]
    expires_s: int | None = None
    once: bool = False
    group: str = ""

    def to_json(self) -> bytes:
        """Return the invitation's one line, without its end."""
        return dumps(
            {
                "version": VERSION,
                "fleet": self.fleet,
                "device": self.device,
                "broker": fields_of(self.broker),
                "username": self.username,
                "password": self.password,
                "plan_keys": list(self.plan_keys),
                **({} if self.expires_s is None else {"expires_s": self.expires_s}),
                **({"once": True} if self.once else {}),
                **({"group": self.group} if self.group else {}),
                "streams": [
                    {name: told for name, told in asdict(one).items() if told is not None}
                    for one in self.streams
                ],
            }
        )

    def to_text(self) -> str:
        """Return the same as text for a QR code."""
        return SCHEME + urlsafe_b64encode(self.to_json()).decode().rstrip("=")


def parse_invitation(text: bytes) -> Invitation:
    """Return the invitation that a file's bytes or a QR code's text hold; raises MessageError."""
    line = _json_of(text.strip())
    try:
        found = loads(line)
    except MessageError as exc:
        raise MessageError(exc.reason, "invitation", exc.expected) from exc
    return _checked(found)


def _json_of(text: bytes) -> bytes:
    if not text.startswith(SCHEME.encode()):
        return text
    code = b"".join(text.removeprefix(SCHEME.encode()).split())  # a terminal may have wrapped it
    if not _BASE64URL.fullmatch(code) or len(code) % 4 == 1:  # the decoder skips foreign characters
        raise MessageError("base64", "invitation", f"{SCHEME} and base64url, whole")
    return urlsafe_b64decode(code + b"=" * (-len(code) % 4))


def _checked(found: Fields) -> Invitation:
    version = found.integer("version", 0, 1 << 31)
    if version != VERSION:
        expected = f"{VERSION}: this edge-ldp reads no other, so the newer side must wait"
        raise MessageError("version", "version", expected)
    streams = tuple(_stream(one) for one in found.objects("streams", MAX_STREAMS))
    if not streams or len({one.name for one in streams}) != len(streams):
        raise MessageError("value", "streams", f"1 to {MAX_STREAMS} of different names")
    shortest = streams[0].slot_seconds
    if any(one.slot_seconds != shortest for one in streams if not one.sums) or any(
        one.slot_seconds % shortest for one in streams
    ):
        expected = "one slot length, or after it so many times that and sums"
        raise MessageError("value", "streams", expected)
    return Invitation(
        fleet=read_name(found, "fleet"),
        device=read_name(found, "device"),
        broker=_broker(found.table("broker")),
        username=found.text("username", 256),
        password=found.text("password", 1024),
        plan_keys=_keys(found),
        streams=streams,
        expires_s=found.integer("expires_s", 0, _VALUE) if "expires_s" in found.raw() else None,
        once=_once(found),
        group=read_name(found, "group") if "group" in found.raw() else "",
    )


def _once(found: Fields) -> bool:
    once = found.raw().get("once", False)
    if not isinstance(once, bool):
        raise MessageError("value", "once", "true or false")
    return once


def _broker(found: Fields) -> InvitedBroker:
    host = found.text("host", 255)
    if not _HOST.match(host):
        raise MessageError("value", "broker.host", "a name or address")
    tls, ca = found.raw().get("tls"), found.raw().get("ca")
    if not isinstance(tls, bool):
        raise MessageError("value", "broker.tls", "true or false")
    if ca is not None and not (tls and isinstance(ca, str) and len(ca) <= MAX_CA_CHARACTERS):
        raise MessageError("value", "broker.ca", "null, or with tls certificates in PEM")
    if ca is not None and not _PEM.fullmatch(ca):
        raise MessageError("value", "broker.ca", "null, or certificates in PEM and nothing else")
    return InvitedBroker(host, found.integer("port", 1, 65_535), tls, ca)


def _stream(found: Fields) -> InvitedStream:
    low = found.integer("low", -_VALUE, _VALUE)
    return InvitedStream(
        name=read_name(found, "name"),
        quantity=read_name(found, "quantity"),
        unit=found.text("unit", 16),
        low=low,
        ceiling=found.integer("ceiling", low + 1, low + _VALUE - 1),
        slot_seconds=found.integer("slot_seconds", 1, MAX_SLOT_SECONDS),
        epsilon=_epsilon(found) if "epsilon" in found.raw() else None,
        sums=_sums(found.table("sums")) if "sums" in found.raw() else None,
    )


def _sums(found: Fields) -> InvitedSums:
    """Return the layout as told; whether it divides the day the owner's own file decides."""
    share = found.text("share", 16)
    if not _SHARE.fullmatch(share) or not 0 < Decimal(share) <= 1:
        raise MessageError("value", "sums.share", "a part of the window's ε: above 0, at most 1")
    return InvitedSums(
        found.integer("days", 1, 366),
        share,
        found.integer("cells", 1, 96),
        found.integer("block_hours", 1, 24),
        found.integer("offset_s", 0, MAX_SLOT_SECONDS - 1),
    )


def _epsilon(found: Fields) -> str:
    text = found.text("epsilon", 32)
    try:
        floor_ratio(Decimal(text))
    except (ArithmeticError, ParameterError) as exc:
        raise MessageError("value", "epsilon", "an ε that a report can have") from exc
    return text


def _keys(found: Fields) -> tuple[str, ...]:
    keys = tuple(found.items("plan_keys", MAX_KEYS))
    for at, key in enumerate(keys):
        try:
            parse_public(key if isinstance(key, str) else "")
        except ParameterError as exc:
            raise MessageError("value", f"plan_keys[{at}]", exc.expected) from exc
    return keys
