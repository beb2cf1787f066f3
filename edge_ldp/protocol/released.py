"""The batch of a curated stream on the wire, released frames v1 and v2: values of one chunk.

Little-endian: magic "LR", version u8, flags u8 = 0, stream u8 (0..15), batch u32, in v2 numbering
u32 (from 1), series u32, position u64, theta u64, first slot u32, count u16 (1..1024); the design:
kind u8, smoother u8, missing u8, pruned u8, fan-out u16, chunk u32, slot seconds u32, ceiling u64,
ε num u64, den u64, ε a reading num u64, den u64, unit length u8, name length u8, unit, name; then
`count` pairs (slot offset u16, value i64). Offsets rise strictly and the first is 0, fractions are
in lowest terms, so one batch has exactly one encoding. Everything but the values is public by
design, and every value has its noise; the length tells the count and the names only.

numbering: the series that the batch's number belongs to (docs/adr/0027-series.md), 0 in v1.
series, of the noise: the slot that was given up when the curator began; position: of the first
value, counted from 0 over the series' values. All values of a frame follow each other and are of
one chunk, so one θ holds for them. With shape, ε and θ the variance of any sum is known
(edge_ldp.continual).
"""

import re
import struct
from dataclasses import dataclass
from math import gcd
from typing import Final

from edge_ldp.device.errors import ParameterError, WireError, check_wire

MAGIC = b"LR"
VERSION = 2
MAX_VALUES = 1024
MAX_OFFSET = 0xFFFF
MAX_STREAM = 15
FIRST_KEY = 256  # stream keys of released values, beside 0..255 of reports, in outbox and records
FIRST_SUMS_KEY = 512  # and those of a period's sums: their numbers are the home's own, not a plan's
KINDS: Final = ("flat", "causal", "consistent")
SMOOTHERS: Final = ("recent", "mean", "median", "moving", "exponential")
MISSING: Final = ("skip", "zero")
_HEAD = struct.Struct("<2sBBBIIIQQIH")
_V1_HEAD = struct.Struct("<2sBBBIIQQIH")
_DESIGN = struct.Struct("<BBBBHIIQQQQQBB")
_PAIR = struct.Struct("<Hq")
_UNIT = re.compile(rb"[A-Za-z0-9%/]{1,16}\Z")
_NAME = re.compile(rb"[a-z0-9][a-z0-9_-]{0,62}\Z")
_U32, _U63 = (1 << 32) - 1, (1 << 63) - 1
HEAD_BYTES, V1_HEAD_BYTES = _HEAD.size, _V1_HEAD.size
PAIR_BYTES = _PAIR.size
MAX_BYTES = HEAD_BYTES + _DESIGN.size + 16 + 63 + PAIR_BYTES * MAX_VALUES


@dataclass(frozen=True, slots=True)
class PublicDesign:
    """What is public of a curated stream and does not change within a series.

    epsilon: (num, den) of the released values, which their noise has; paid: (num, den) of the most
    ε that one reading is released under, θ's choice included. ceiling: in the stream's unit.
    """

    name: str
    unit: str
    slot_seconds: int
    kind: str
    fanout: int
    chunk: int
    pruned: int
    smoother: str
    missing: str
    ceiling: int
    epsilon: tuple[int, int]
    paid: tuple[int, int]

    def encode(self) -> bytes:
        """Return the design's one encoding; raises ParameterError for what it cannot carry."""
        unit, name = self.unit.encode(), self.name.encode()
        try:
            block = _DESIGN.pack(
                KINDS.index(self.kind),
                SMOOTHERS.index(self.smoother),
                MISSING.index(self.missing),
                *(self.pruned, self.fanout, self.chunk, self.slot_seconds, self.ceiling),
                *(*self.epsilon, *self.paid, len(unit), len(name)),
            )
        except (ValueError, struct.error) as exc:
            raise ParameterError("design", "known kinds, and numbers that fit the frame") from exc
        whole = block + unit + name
        try:
            found, end = _read_design(whole, 0)
        except WireError as exc:
            raise ParameterError("design", f"one that can be read back ({exc.reason})") from exc
        assert (found, end) == (self, len(whole))  # noqa: S101 (what was written is what is read)
        return whole


@dataclass(frozen=True, slots=True)
class ReleasedFrame:
    """One batch: slots rise strictly, one released value for each, at consecutive positions."""

    stream: int
    batch: int
    series: int
    position: int
    theta: int
    design: PublicDesign
    slots: tuple[int, ...]
    values: tuple[int, ...]
    numbering: int = 0

    @property
    def key(self) -> int:
        """The stream's key beside those of reports."""
        return FIRST_KEY + self.stream


def encode_released(frame: ReleasedFrame) -> bytes:
    """Return the frame's bytes; the same frame always gives the same bytes.

    Raises ParameterError when a field cannot be carried, slots do not rise or a chunk ends inside.
    """
    slots, values = frame.slots, frame.values
    if not 1 <= len(slots) <= MAX_VALUES or len(values) != len(slots):
        raise ParameterError("slots", f"1 to {MAX_VALUES}, with one value each")
    try:
        numbers = (frame.series, frame.position, frame.theta, slots[0], len(slots))
        if frame.numbering:
            head = _HEAD.pack(
                MAGIC, VERSION, 0, frame.stream, frame.batch, frame.numbering, *numbers
            )
        else:
            head = _V1_HEAD.pack(MAGIC, 1, 0, frame.stream, frame.batch, *numbers)
        pairs = [
            _PAIR.pack(slot - slots[0], value) for slot, value in zip(slots, values, strict=True)
        ]
    except struct.error as exc:
        raise ParameterError("frame", "numbers that fit it") from exc
    payload = head + frame.design.encode() + b"".join(pairs)
    try:
        decode_released(payload)
    except WireError as exc:
        raise ParameterError("frame", f"one that can be read back ({exc.reason})") from exc
    return payload


def decode_released(payload: bytes) -> ReleasedFrame:
    """Return the frame; raises WireError(reason, offset). `encode_released` of it is `payload`."""
    head = _HEAD if payload[2:3] == bytes((VERSION,)) else _V1_HEAD
    check_wire(len(payload) >= head.size, "short", len(payload))
    magic, version, flags, stream, batch, *numbers = head.unpack_from(payload)
    check_wire(magic == MAGIC, "magic", 0)
    check_wire(1 <= version <= VERSION, "version", 2)
    check_wire(not flags, "flags", 3)
    check_wire(stream <= MAX_STREAM, "stream", 4)
    numbering = numbers.pop(0) if head is _HEAD else 0
    check_wire(numbering or head is _V1_HEAD, "numbering", 9)
    series, position, theta, first, count = numbers
    check_wire(1 <= count <= MAX_VALUES, "count", head.size - 2)
    design, at = _read_design(payload, head.size)
    check_wire(len(payload) == at + PAIR_BYTES * count, "length", len(payload))
    check_wire(1 <= theta <= design.ceiling, "theta", head.size - 14)
    check_wire(series < first, "series", head.size - 26)
    check_wire(position < first - series, "position", head.size - 22)  # at most one value a slot
    check_wire(position % design.chunk + count <= design.chunk, "chunk", head.size - 22)
    slots, values = _read_pairs(payload, at, first)
    return ReleasedFrame(stream, batch, series, position, theta, design, slots, values, numbering)


def _read_pairs(payload: bytes, at: int, first: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    slots: list[int] = []
    values: list[int] = []
    before = first - 1
    for offset, value in _PAIR.iter_unpack(payload[at:]):
        slot = first + offset
        check_wire(before < slot <= _U32 and (slots or not offset), "order", at)
        slots.append(slot)
        values.append(value)
        before = slot
        at += PAIR_BYTES
    return tuple(slots), tuple(values)


def read_design(block: bytes) -> PublicDesign:
    """Return the design that `PublicDesign.encode` wrote; raises WireError."""
    design, end = _read_design(block, 0)
    check_wire(end == len(block), "length", end)
    return design


def _read_design(payload: bytes, at: int) -> tuple[PublicDesign, int]:
    check_wire(len(payload) >= at + _DESIGN.size, "short", len(payload))
    kind, smoother, missing, pruned, fanout, chunk, seconds, ceiling, *rest = _DESIGN.unpack_from(
        payload, at
    )
    num, den, paid_num, paid_den, unit_size, name_size = rest
    check_wire(kind < len(KINDS), "kind", at)
    check_wire(smoother < len(SMOOTHERS), "smoother", at + 1)
    check_wire(missing < len(MISSING), "missing", at + 2)
    check_wire(fanout > 1 and chunk and seconds and 0 < ceiling <= _U63, "shape", at + 4)
    for offset, top, bottom in ((22, num, den), (38, paid_num, paid_den)):
        check_wire(top > 0 and bottom > 0 and gcd(top, bottom) == 1, "epsilon", at + offset)
    end = at + _DESIGN.size
    unit, name = payload[end : end + unit_size], payload[end + unit_size :][:name_size]
    check_wire(bool(_UNIT.match(unit)) and len(unit) == unit_size, "unit", end)
    check_wire(bool(_NAME.match(name)) and len(name) == name_size, "name", end + unit_size)
    design = PublicDesign(
        name=name.decode(),
        unit=unit.decode(),
        slot_seconds=seconds,
        kind=KINDS[kind],
        fanout=fanout,
        chunk=chunk,
        pruned=pruned,
        smoother=SMOOTHERS[smoother],
        missing=MISSING[missing],
        ceiling=ceiling,
        epsilon=(num, den),
        paid=(paid_num, paid_den),
    )
    return design, end + unit_size + name_size
