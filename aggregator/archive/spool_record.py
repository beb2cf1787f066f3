"""Records of the archive's spool: what one flush counted, as bytes that show when they are damaged.

Little-endian: magic "EAS4", u32 bytes of the body, u32 CRC-32 of the body; the body is u32 frames,
u32 reports, u32 bytes of names, then columns: of frames u16 bytes of the device's name, u8 stream,
u32 batch, u32 epoch, u16 reports, u32 group, u32 series, u16 class, 8 bytes of digest; of reports
u32 slot, u16 code; then the names and 16 bytes of the flush's id. "EAS3", of older versions, has no
classes, "EAS2" no series, "EAS1" neither groups nor id. "EAS5" is of a flush with homes' sums: its
body is u32 NO_FRAMES, u32 bytes of a body as above (0: no reports), u32 releases, that body, then
for each release u8 bytes of the device's name, u32 group, u16 bytes, the name, the frame; the id.
"""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggregator.archive.columns import TYPES, Reports, make_reports
from aggregator.counting.frames import BATCH, EPOCH, SERIES, STREAM, CountedFrames
from aggregator.counting.period_sums import read_sums
from aggregator.counting.records import Doubt, KeptSums
from aggregator.errors import AggregatorError
from edge_ldp.device.errors import WireError

MAGIC = b"EAS4"
WITH_SUMS = b"EAS5"
MAGICS = (WITH_SUMS, MAGIC, b"EAS3", b"EAS2", b"EAS1")
NO_FRAMES = 0xFFFFFFFF  # in the place of how many there are
_RELEASE = struct.Struct("<BIH")
_ANY = b"EAS"
_HEAD = struct.Struct("<4sII")
_SIZES = struct.Struct("<III")
_FRAME = {"name": "<u2", "stream": "u1", "batch": "<u4", "epoch": "<u4", "count": "<u2"}
_GROUP = {"grp": "<u4"}
_SERIES = {"series": "<u4"}
_CLASS = {"cls": "<u2"}
_REPORT = {"slot": "<u4", "code": "<u2"}
_FLUSH_BYTES = 16
_FRAME_BYTES = sum(np.dtype(kind).itemsize for kind in _FRAME.values()) + 8
_REPORT_BYTES = sum(np.dtype(kind).itemsize for kind in _REPORT.values())


class RecordError(AggregatorError):
    """Bytes of a spool that cannot be what was written: damaged at `offset`."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"damaged at byte {offset}")
        self.offset = offset


@dataclass(frozen=True, slots=True)
class SpoolRead:
    """Bodies of the whole records in a spool; they end at `end`, the last begins at `last`."""

    bodies: tuple[memoryview, ...]
    last: int
    end: int


def encode_record(counted: CountedFrames, flush: bytes, summed: Sequence[KeptSums] = ()) -> bytes:
    """Return the record of what a flush counted: frames, each with group and class, and sums.

    There is one or more of them. `flush`: its id, of 16 bytes.
    """
    body = _encode_frames(counted, flush) if counted else b""
    if not summed:
        return _HEAD.pack(MAGIC, len(body), zlib.crc32(body)) + body
    parts = [_SIZES.pack(NO_FRAMES, len(body), len(summed)), body]
    for one in summed:
        name = one.device.encode()
        parts += [_RELEASE.pack(len(name), one.group, len(one.payload)), name, one.payload]
    whole = b"".join([*parts, flush])
    return _HEAD.pack(WITH_SUMS, len(whole), zlib.crc32(whole)) + whole


def _encode_frames(counted: CountedFrames, flush: bytes) -> bytes:
    frames = counted.frames
    names = [one.encode() for one in frames.devices]
    columns = {
        "name": [len(name) for name in names],
        "stream": frames.heads[STREAM],
        "batch": frames.heads[BATCH],
        "epoch": frames.heads[EPOCH],
        "count": frames.counts,
        "grp": counted.groups,
        "series": frames.heads[SERIES],
        "cls": counted.classes,
    }
    text = b"".join(names)
    every = _FRAME | _GROUP | _SERIES | _CLASS
    return b"".join(
        [
            _SIZES.pack(len(frames), len(frames.slots), len(text)),
            *(np.array(columns[name]).astype(kind).tobytes() for name, kind in every.items()),
            *frames.digests,
            frames.slots.astype("<u4").tobytes(),
            frames.codes.astype("<u2").tobytes(),
            text,
            flush,
        ]
    )


def find_records(spool: bytes) -> SpoolRead:
    """Return the whole records; a torn one at the end, as a crash leaves it, is left out.

    Raises RecordError for damage that no crash makes: a bad record with a whole one after it.
    """
    view, at, last = memoryview(spool), 0, 0
    bodies = []
    while (body := _record_at(view, at)) is not None:
        bodies.append(body)
        last, at = at, at + _HEAD.size + len(body)
    again = spool.find(_ANY, at + 1)
    while again >= 0:
        if _record_at(view, again) is not None:
            raise RecordError(at)
        again = spool.find(_ANY, again + 1)
    return SpoolRead(tuple(bodies), last, at)


def _record_at(view: memoryview, at: int) -> memoryview | None:
    """Return the body of the whole record that begins here, or None."""
    begin = at + _HEAD.size
    if begin > len(view):
        return None
    magic, length, check = _HEAD.unpack_from(view, at)
    body = view[begin : begin + length]
    whole = magic in MAGICS and 0 < length == len(body) and zlib.crc32(body) == check
    return body if whole else None


def doubt_of(body: memoryview) -> Doubt:
    """Return what a record is of."""
    inner, releases = _parted(body)
    if not inner:
        return first_of(CountedFrames.of(), bytes(body[-_FLUSH_BYTES:]), releases)
    columns, names, flush = _frames(inner)
    first = (int(columns[name][0]) for name in ("stream", "batch", "series"))
    return Doubt(flush, names[0], *first)


def first_of(counted: CountedFrames, flush: bytes, summed: Sequence[KeptSums]) -> Doubt:
    """Return what the record of these is of; there is one or more of them."""
    for one, *_ in counted:
        return Doubt(flush, one.device, one.head.stream, one.head.batch, one.head.series)
    release = read_sums(summed[0].device, summed[0].payload)
    return Doubt(flush, *release.key, release.frame.batch, release.frame.series)


def decode_record(body: memoryview) -> Reports:
    """Return the reports of a record; raises RecordError."""
    body, _ = _parted(body)
    if not body:
        return make_reports((), {name: np.zeros(0) for name in TYPES})
    frames, reports, text = _SIZES.unpack_from(body)
    columns, names, flush = _frames(body)
    at = len(body) - len(flush) - text - reports * _REPORT_BYTES - 8 * frames
    digests = np.frombuffer(body, "<u8", frames, at)
    at += 8 * frames
    slots = np.frombuffer(body, "<u4", reports, at)
    codes = np.frombuffer(body, "<u2", reports, at + 4 * reports)
    unique, index = np.unique(np.array(names, object), return_inverse=True)
    count = columns["count"]
    spread = {"stream": columns["stream"], "epoch": columns["epoch"], "batch": columns["batch"]}
    spread |= {"device": index, "digest": digests, "grp": columns["grp"]}
    spread["cls"] = columns["cls"]
    repeated = {name: np.repeat(column, count) for name, column in spread.items()}
    return make_reports(unique.tolist(), {**repeated, "slot": slots, "code": codes})


def releases_of(body: memoryview) -> tuple[KeptSums, ...]:
    """Return the homes' sums of a record; raises RecordError."""
    return _parted(body)[1]


def _parted(body: memoryview) -> tuple[memoryview, tuple[KeptSums, ...]]:
    """Return the body of the frames, empty where there are none, and the releases."""
    marked, size, many = _SIZES.unpack_from(body)
    if marked != NO_FRAMES:
        return body, ()
    at = _SIZES.size + size
    inner, kept = body[_SIZES.size : at], []
    try:
        for _ in range(many):
            name, group, length = _RELEASE.unpack_from(body, at)
            begin, at = at + _RELEASE.size + name, at + _RELEASE.size + name + length
            arrival = read_sums(bytes(body[begin - name : begin]).decode(), bytes(body[begin:at]))
            kept.append(arrival.kept(group, held=False))
    except (struct.error, WireError, UnicodeDecodeError) as exc:
        raise RecordError(at) from exc
    return inner, tuple(kept)


def _frames(body: memoryview) -> tuple[dict[str, NDArray[Any]], list[str], bytes]:
    """Return columns and names of the frames in a record, and the flush's id."""
    frames, reports, text = _SIZES.unpack_from(body)
    old = _SIZES.size + frames * _FRAME_BYTES + reports * _REPORT_BYTES + text
    layouts = {
        old: _FRAME,
        old + 4 * frames + _FLUSH_BYTES: _FRAME | _GROUP,
        old + 8 * frames + _FLUSH_BYTES: _FRAME | _GROUP | _SERIES,
        old + 10 * frames + _FLUSH_BYTES: _FRAME | _GROUP | _SERIES | _CLASS,
    }
    layout = layouts.get(len(body))
    if layout is None:
        raise RecordError(0)
    is_old = layout is _FRAME
    columns, at = {}, _SIZES.size
    for name, kind in layout.items():
        columns[name] = np.frombuffer(body, kind, frames, at)
        at += columns[name].nbytes
    for name in ("grp", "series", "cls"):
        columns.setdefault(name, np.zeros(frames, "<u4"))
    end = len(body) if is_old else len(body) - _FLUSH_BYTES
    ends = np.cumsum(columns["name"], dtype=np.int64) + end - text
    begins = ends - columns["name"]
    pairs = zip(begins.tolist(), ends.tolist(), strict=True)
    return columns, [bytes(body[b:e]).decode() for b, e in pairs], bytes(body[end:])
