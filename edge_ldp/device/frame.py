"""The batch on the wire, frame v1: reports of one device, one stream, one plan epoch.

Little-endian: magic "LD", version u8 = 1, flags u8 = 0, stream u8, batch u32, plan epoch u32, first
slot u32, count u16 (1..1024), then `count` pairs (slot offset u16, code u16). Offsets rise strictly
and the first is 0, so one batch has exactly one encoding. The length tells the count and nothing
else. Source: docs/design.md, Messages.
"""

import struct
from collections import namedtuple

from edge_ldp.device.errors import ParameterError, WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MAGIC = b"LD"
VERSION = 1
MAX_REPORTS = 1024
MAX_OFFSET = 0xFFFF
_HEAD = "<2sBBBIIIH"
HEAD_BYTES = 19
PAIR_BYTES = 4
MAX_BYTES = HEAD_BYTES + PAIR_BYTES * MAX_REPORTS
_U32 = 0xFFFFFFFF


class Header(namedtuple("Header", ("stream", "batch", "epoch", "first_slot", "count"))):
    """What stands before the pairs, checked against the payload's length."""

    __slots__ = ()
    stream: int
    batch: int
    epoch: int
    first_slot: int
    count: int


class Frame(namedtuple("Frame", ("stream", "batch", "epoch", "slots", "codes"))):
    """One batch: slots rise strictly, one code for each."""

    __slots__ = ()
    stream: int
    batch: int
    epoch: int
    slots: "tuple[int, ...]"
    codes: "tuple[int, ...]"


def encode(
    stream: int, batch: int, epoch: int, slots: "Sequence[int]", codes: "Sequence[int]"
) -> bytes:
    """Return the frame's bytes; the same arguments always give the same bytes.

    Raises ParameterError when a field cannot be carried or the slots do not rise.
    """
    if not 1 <= len(slots) <= MAX_REPORTS or len(codes) != len(slots):
        raise ParameterError("slots", "1 to 1024, with one code each")
    if not 0 <= stream <= 0xFF:  # noqa: PLR2004 (u8)
        raise ParameterError("stream", "0..255")
    first = slots[0]
    for name, number in (("batch", batch), ("epoch", epoch), ("first slot", first)):
        if not 0 <= number <= _U32:
            raise ParameterError(name, "0..2**32-1")
    payload = bytearray(HEAD_BYTES + PAIR_BYTES * len(slots))
    struct.pack_into(_HEAD, payload, 0, MAGIC, VERSION, 0, stream, batch, epoch, first, len(slots))
    at = HEAD_BYTES
    before = first - 1
    for slot, code in zip(slots, codes):  # noqa: B905 (MicroPython has no strict=; lengths checked)
        if slot <= before or slot - first > MAX_OFFSET or slot > _U32:
            raise ParameterError("slots", "rising, within 65535 of the first and below 2**32")
        if not 0 <= code <= 0xFFFF:  # noqa: PLR2004 (u16)
            raise ParameterError("codes", "0..65535")
        struct.pack_into("<HH", payload, at, slot - first, code)
        at += PAIR_BYTES
        before = slot
    return bytes(payload)


def decode_header(payload: bytes) -> Header:
    """Return the checked header; raises WireError(reason, offset)."""
    if len(payload) < HEAD_BYTES:
        raise WireError("short", len(payload))
    magic, version, flags, stream, batch, epoch, first, count = struct.unpack(
        _HEAD, payload[:HEAD_BYTES]
    )
    if magic != MAGIC:
        raise WireError("magic", 0)
    if version != VERSION:
        raise WireError("version", 2)
    if flags:
        raise WireError("flags", 3)
    if not 1 <= count <= MAX_REPORTS:
        raise WireError("count", 17)
    if len(payload) != HEAD_BYTES + PAIR_BYTES * count:
        raise WireError("length", len(payload))
    return Header(stream, batch, epoch, first, count)


def decode(payload: bytes) -> Frame:
    """Return the frame; raises WireError(reason, offset). `encode` of the result is `payload`."""
    head = decode_header(payload)
    slots = []
    codes = []
    before = head.first_slot - 1
    for at in range(HEAD_BYTES, len(payload), PAIR_BYTES):
        offset, code = struct.unpack("<HH", payload[at : at + PAIR_BYTES])
        slot = head.first_slot + offset
        if slot <= before or slot > _U32 or (at == HEAD_BYTES and offset):
            raise WireError("order", at)
        slots.append(slot)
        codes.append(code)
        before = slot
    return Frame(head.stream, head.batch, head.epoch, tuple(slots), tuple(codes))
