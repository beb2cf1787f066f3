"""A period's sums on the wire, sums frame v1: what a home released of one stream and one period.

Little-endian: magic "LS", version u8, flags u8 = 0, stream u8 (0..15), series u32 and batch u32
(from 1), period u32; the layout: slot seconds u32, days u16, cells u8, block u8, offset u32; the
law: low i64, span u64, scale u64; unit length u8, name length u8, unit, name; then for each cell
n u32 and y i64, which is S plus noise of that scale. One release has exactly one encoding, and its
length tells the number of cells and the names only.

It says by itself what its numbers mean: a period outlives many plans, and span and scale are the
home's own. Source: docs/methods.md, Period sums; docs/adr/0032-sums-frame.md.
"""

import struct
from collections import namedtuple

from edge_ldp.device.errors import ParameterError, WireError, check_wire
from edge_ldp.device.laplace import MAX_SCALE
from edge_ldp.device.sums import DAY_S, check_layout

MAGIC = b"LS"
VERSION = 1
MAX_STREAM = 15
MAX_SPAN = 1 << 47  # exclusive
MOST = 1 << 62  # of a sum, either way
HEAD_BYTES = 55
CELL_BYTES = 12
_HEAD = "<2sBBBIIIIHBBIqQQBB"
_WIDTHS = (8, 32, 32, 32, 32, 16, 8, 8, 32)  # bits of what stands before `low`
_U32 = 0xFFFFFFFF
_DIGITS = b"0123456789"
_SMALL = b"abcdefghijklmnopqrstuvwxyz"
_UNIT = _SMALL + _SMALL.upper() + _DIGITS + b"%/"
_NAME = _SMALL + _DIGITS + b"_-"
MAX_UNIT = 16
MAX_NAME = 63


class SumsFrame(
    namedtuple(
        "SumsFrame",
        "stream series batch period slot_seconds days cells block offset_s"
        " low span scale unit name n y",
    )
):
    """One release: `n` slots and `y` = S + noise for each cell; y in `unit` above low, by slots."""

    __slots__ = ()
    stream: int
    series: int
    batch: int
    period: int
    slot_seconds: int
    days: int
    cells: int
    block: int
    offset_s: int
    low: int
    span: int
    scale: int
    unit: str
    name: str
    n: "tuple[int, ...]"
    y: "tuple[int, ...]"


def encode_sums(frame: SumsFrame) -> bytes:
    """Return the frame's bytes; the same frame always gives the same bytes.

    Raises ParameterError for what it cannot carry, or what could not be read back.
    """
    unit, name = frame.unit.encode(), frame.name.encode()
    for number, width in zip(frame[:9], _WIDTHS):  # noqa: B905 (MicroPython has no strict=)
        if type(number) is not int or not 0 <= number < 1 << width:
            raise ParameterError("frame", "whole numbers that fit their fields")
    for number in frame[9:12] + frame.n + frame.y:
        if type(number) is not int or not -MOST <= number <= MOST:
            raise ParameterError("frame", "whole numbers within 2**62")
    law = (frame.low, frame.span & (MAX_SPAN - 1), frame.scale & (MAX_SCALE - 1))
    sizes = (len(unit) & 0xFF, len(name) & 0xFF)
    payload = struct.pack(_HEAD, MAGIC, VERSION, 0, *(frame[:9] + law + sizes)) + unit + name
    for n, y in zip(frame.n, frame.y):  # noqa: B905 (MicroPython has no strict=; read back below)
        payload += struct.pack("<Iq", n & _U32, y)
    try:
        found = decode_sums(payload)
    except WireError as exc:
        raise ParameterError(
            "frame", "one that can be read back, not one of " + exc.reason
        ) from exc
    if found != frame:
        raise ParameterError("frame", "numbers that fit it")
    return payload


def decode_sums(payload: bytes) -> SumsFrame:
    """Return the frame; raises WireError(reason, offset). `encode_sums` of it is `payload`."""
    check_wire(len(payload) >= HEAD_BYTES, "short", len(payload))
    magic, version, flags, stream, series, batch, period, *rest = struct.unpack(
        _HEAD, payload[:HEAD_BYTES]
    )
    slot_seconds, days, cells, block, offset_s, low, span, scale, unit_size, name_size = rest
    check_wire(magic == MAGIC, "magic", 0)
    check_wire(version == VERSION, "version", 2)
    check_wire(not flags, "flags", 3)
    check_wire(stream <= MAX_STREAM, "stream", 4)
    check_wire(series, "series", 5)
    check_wire(batch, "batch", 9)
    try:
        check_layout(slot_seconds, days, cells, offset_s, block)
    except ParameterError:
        raise WireError("layout", 17) from None
    check_wire(_ends_in_time(period, slot_seconds, days), "period", 13)
    check_wire(_is_law(low, span, scale), "law", 29)
    start = HEAD_BYTES + unit_size + name_size
    check_wire(len(payload) == start + CELL_BYTES * cells, "length", len(payload))
    unit = payload[HEAD_BYTES : HEAD_BYTES + unit_size]
    name = payload[HEAD_BYTES + unit_size : start]
    check_wire(_is_text(unit, MAX_UNIT, _UNIT), "unit", HEAD_BYTES)
    is_name = _is_text(name, MAX_NAME, _NAME) and name[0] not in b"_-"
    check_wire(is_name, "name", HEAD_BYTES + unit_size)
    most = _slots_in_cell(slot_seconds, days, cells)
    ns = []
    ys = []
    for at in range(start, len(payload), CELL_BYTES):
        n, y = struct.unpack("<Iq", payload[at : at + CELL_BYTES])
        check_wire(n <= most, "n", at)
        check_wire(-MOST <= y <= MOST, "y", at + 4)
        ns.append(n)
        ys.append(y)
    shape = (slot_seconds, days, cells, block, offset_s, low, span, scale)
    texts = (unit.decode(), name.decode(), tuple(ns), tuple(ys))
    return SumsFrame(*((stream, series, batch, period) + shape + texts))  # noqa: RUF005 (MicroPython)


def last_slot_of(frame: SumsFrame) -> int:
    """Return the last slot of a release's period."""
    slots_a_day = DAY_S // frame.slot_seconds
    after = (frame.period + 1) * frame.days * slots_a_day
    return after + frame.offset_s // frame.slot_seconds - 1


def _slots_in_cell(slot_seconds: int, days: int, cells: int) -> int:
    return days * (DAY_S // slot_seconds) // cells


def _ends_in_time(period: int, slot_seconds: int, days: int) -> bool:
    """Say whether the period's last slot has a number of 32 bits, whatever the offset."""
    return (period + 1) * days * (DAY_S // slot_seconds) + DAY_S // slot_seconds <= _U32 + 1


def _is_law(low: int, span: int, scale: int) -> bool:
    return -MOST <= low <= MOST and 1 <= span < MAX_SPAN and 1 <= scale < MAX_SCALE


def _is_text(text: bytes, most: int, letters: bytes) -> bool:
    return 1 <= len(text) <= most and all(one in letters for one in text)
