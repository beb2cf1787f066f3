"""The batch on the wire, frames v1 and v2: reports of one device, one stream, one plan.

Little-endian: magic "LD", version u8, flags u8 = 0, stream u8, in v2 series u32 (from 1), batch
u32, plan epoch u32, in v2 plan tag u32, first slot u32, count u16 (1..1024), then `count` pairs
(slot offset u16, code u16). Offsets rise strictly and the first is 0, so one batch has exactly one
encoding. The length tells version and count and nothing else.

Batches of a series are numbered 1, 2, 3 …; v1, which is written as series 0, numbers them from a
slot on. tag: the first four bytes of the plan's digest, 0 where it is not known.
Source: docs/design.md, Messages; docs/adr/0027-series.md.
"""

import struct
from collections import namedtuple

from edge_ldp.device.errors import ParameterError, WireError, check_wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MAGIC = b"LD"
VERSION = 2
MAX_REPORTS = 1024
MAX_OFFSET = 0xFFFF
_HEADS = ("", "<2sBBBIIIH", "<2sBBBIIIIIH")  # by version
V1_HEAD_BYTES = 19
HEAD_BYTES = 27
PAIR_BYTES = 4
MAX_BYTES = HEAD_BYTES + PAIR_BYTES * MAX_REPORTS
_U32 = 0xFFFFFFFF


class Header(
    namedtuple("Header", ("stream", "batch", "epoch", "first_slot", "count", "series", "tag"))
):
    """What stands before the pairs, checked against the payload's length; v1: series and tag 0."""

    __slots__ = ()
    stream: int
    batch: int
    epoch: int
    first_slot: int
    count: int
    series: int
    tag: int


class Frame(namedtuple("Frame", ("stream", "batch", "epoch", "slots", "codes", "series", "tag"))):
    """One batch: slots rise strictly, one code for each; v1: series and tag are 0."""

    __slots__ = ()
    stream: int
    batch: int
    epoch: int
    slots: "tuple[int, ...]"
    codes: "tuple[int, ...]"
    series: int
    tag: int


def encode(  # noqa: PLR0913, PLR0917 (the fields of a frame)
    stream: int,
    batch: int,
    epoch: int,
    slots: "Sequence[int]",
    codes: "Sequence[int]",
    series: int = 0,
    tag: int = 0,
) -> bytes:
    """Return the frame's bytes, v1 without a series; the same arguments give the same bytes.

    Raises ParameterError when a field cannot be carried or the slots do not rise.
    """
    if not 1 <= len(slots) <= MAX_REPORTS or len(codes) != len(slots):
        raise ParameterError("slots", "1 to 1024, with one code each")
    if not 0 <= stream <= 0xFF:  # noqa: PLR2004 (u8)
        raise ParameterError("stream", "0..255")
    first = slots[0]
    fields = (("batch", batch), ("epoch", epoch), ("first slot", first), ("series", series))
    for name, number in fields + (("tag", tag),):  # noqa: RUF005 (MicroPython)
        if not 0 <= number <= _U32:
            raise ParameterError(name, "0..2**32-1")
    if tag and not series:
        raise ParameterError("series", "1 or more where there is a tag")
    head = _head(stream, series, batch, epoch, tag, first, len(slots))
    payload = bytearray(len(head) + PAIR_BYTES * len(slots))
    payload[: len(head)] = head
    at = len(head)
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
    version = payload[2] if len(payload) > 2 else VERSION - 1  # noqa: PLR2004 (its place)
    size = HEAD_BYTES if version == VERSION else V1_HEAD_BYTES
    check_wire(len(payload) >= size, "short", len(payload))
    check_wire(payload[:2] == MAGIC, "magic", 0)
    check_wire(1 <= version <= VERSION, "version", 2)
    fields = struct.unpack(_HEADS[version], payload[:size])
    check_wire(not fields[2], "flags", 3)
    if version == 1:
        stream, batch, epoch, first, count = fields[3:]
        series = tag = 0
    else:
        stream, series, batch, epoch, tag, first, count = fields[3:]
        check_wire(series, "series", 5)
    check_wire(1 <= count <= MAX_REPORTS, "count", size - 2)
    check_wire(len(payload) == size + PAIR_BYTES * count, "length", len(payload))
    return Header(stream, batch, epoch, first, count, series, tag)


def _head(  # noqa: PLR0913, PLR0917 (the fields of a head)
    stream: int, series: int, batch: int, epoch: int, tag: int, first: int, count: int
) -> bytes:
    if not series:
        return struct.pack(_HEADS[1], MAGIC, 1, 0, stream, batch, epoch, first, count)
    numbers = (stream, series, batch, epoch, tag, first, count)
    return struct.pack(_HEADS[2], MAGIC, 2, 0, *numbers)


def decode(payload: bytes) -> Frame:
    """Return the frame; raises WireError(reason, offset). `encode` of the result is `payload`."""
    head = decode_header(payload)
    slots = []
    codes = []
    before = head.first_slot - 1
    start = HEAD_BYTES if head.series else V1_HEAD_BYTES
    for at in range(start, len(payload), PAIR_BYTES):
        offset, code = struct.unpack("<HH", payload[at : at + PAIR_BYTES])
        slot = head.first_slot + offset
        if slot <= before or slot > _U32 or (at == start and offset):
            raise WireError("order", at)
        slots.append(slot)
        codes.append(code)
        before = slot
    return Frame(
        head.stream, head.batch, head.epoch, tuple(slots), tuple(codes), head.series, head.tag
    )
