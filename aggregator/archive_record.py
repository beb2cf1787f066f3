"""Records of the archive's spool: what one flush counted, as bytes that show when they are damaged.

Little-endian: magic "EAS1", u32 bytes of the body, u32 CRC-32 of the body; the body is u32 frames,
u32 reports, u32 bytes of names, then columns: of frames u16 bytes of the device's name, u8 stream,
u32 batch, u32 epoch, u16 reports, 8 bytes of digest; of reports u32 slot, u16 code; then the names.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregator.archive import make_reports
from aggregator.errors import AggregatorError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from aggregator.archive import Reports
    from aggregator.receipts import DeviceState
    from aggregator.records import Arrival

MAGIC = b"EAS1"
_HEAD = struct.Struct("<4sII")
_SIZES = struct.Struct("<III")
_FRAME = {"name": "<u2", "stream": "u1", "batch": "<u4", "epoch": "<u4", "count": "<u2"}
_REPORT = {"slot": "<u4", "code": "<u2"}
_FRAME_BYTES = sum(np.dtype(kind).itemsize for kind in _FRAME.values()) + 8
_REPORT_BYTES = sum(np.dtype(kind).itemsize for kind in _REPORT.values())


class RecordError(AggregatorError):
    """Bytes of a spool that cannot be what was written: damaged at `offset`."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"damaged at byte {offset}")
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Found:
    """Bodies of the whole records in a spool; they end at `end`, the last begins at `last`."""

    bodies: tuple[memoryview, ...]
    last: int
    end: int


def encode_record(counted: Sequence[Arrival]) -> bytes:
    """Return the record of frames that one flush counted; at least one."""
    names = [one.device.encode() for one in counted]
    frames = {
        "name": [len(name) for name in names],
        "stream": [one.head.stream for one in counted],
        "batch": [one.head.batch for one in counted],
        "epoch": [one.head.epoch for one in counted],
        "count": [len(one.slots) for one in counted],
    }
    slots = np.concatenate([one.slots for one in counted])
    codes = np.concatenate([one.codes for one in counted])
    text = b"".join(names)
    body = b"".join(
        [
            _SIZES.pack(len(counted), len(slots), len(text)),
            *(np.array(frames[name], kind).tobytes() for name, kind in _FRAME.items()),
            *(one.digest for one in counted),
            slots.astype("<u4").tobytes(),
            codes.astype("<u2").tobytes(),
            text,
        ]
    )
    return _HEAD.pack(MAGIC, len(body), zlib.crc32(body)) + body


def find_records(spool: bytes) -> Found:
    """Return the whole records; a torn one at the end, as a crash leaves it, is left out.

    Raises RecordError for damage that no crash makes: a bad record with a whole one after it.
    """
    view, at, last = memoryview(spool), 0, 0
    bodies = []
    while (body := _record_at(view, at)) is not None:
        bodies.append(body)
        last, at = at, at + _HEAD.size + len(body)
    again = spool.find(MAGIC, at + 1)
    while again >= 0:
        if _record_at(view, again) is not None:
            raise RecordError(at)
        again = spool.find(MAGIC, again + 1)
    return Found(tuple(bodies), last, at)


def _record_at(view: memoryview, at: int) -> memoryview | None:
    """Return the body of the whole record that begins here, or None."""
    begin = at + _HEAD.size
    if begin > len(view):
        return None
    magic, length, check = _HEAD.unpack_from(view, at)
    body = view[begin : begin + length]
    whole = magic == MAGIC and 0 < length == len(body) and zlib.crc32(body) == check
    return body if whole else None


def first_frame(body: memoryview) -> tuple[str, int, int]:
    """Return device, stream and batch of the first frame in a record."""
    columns, names = _frames(body)
    return names[0], int(columns["stream"][0]), int(columns["batch"][0])


def decode_record(body: memoryview) -> Reports:
    """Return the reports of a record."""
    frames, reports, _ = _SIZES.unpack_from(body)
    columns, names = _frames(body)
    at = _SIZES.size + frames * (_FRAME_BYTES - 8)
    digests = np.frombuffer(body, "<u8", frames, at)
    at += 8 * frames
    slots = np.frombuffer(body, "<u4", reports, at)
    codes = np.frombuffer(body, "<u2", reports, at + 4 * reports)
    unique, index = np.unique(np.array(names, object), return_inverse=True)
    count = columns["count"]
    spread = {"stream": columns["stream"], "epoch": columns["epoch"], "batch": columns["batch"]}
    spread |= {"device": index, "digest": digests}
    repeated = {name: np.repeat(column, count) for name, column in spread.items()}
    return make_reports(unique.tolist(), {**repeated, "slot": slots, "code": codes})


def is_settled(state: DeviceState, batch: int) -> bool:
    """Say whether a state covers a batch.

    A batch that a flush counts was not covered before the flush and is covered after it: this tells
    whether the flush was committed. Source: aggregator.receipts.place.
    """
    in_gap = any(gap.first <= batch <= gap.last for gap in state.gaps)
    return batch <= state.highest and not in_gap


def _frames(body: memoryview) -> tuple[dict[str, NDArray[Any]], list[str]]:
    frames, reports, text = _SIZES.unpack_from(body)
    if len(body) != _SIZES.size + frames * _FRAME_BYTES + reports * _REPORT_BYTES + text:
        raise RecordError(0)
    columns, at = {}, _SIZES.size
    for name, kind in _FRAME.items():
        columns[name] = np.frombuffer(body, kind, frames, at)
        at += columns[name].nbytes
    ends = np.cumsum(columns["name"], dtype=np.int64) + len(body) - text
    begins = ends - columns["name"]
    pairs = zip(begins.tolist(), ends.tolist(), strict=True)
    return columns, [bytes(body[begin:end]).decode() for begin, end in pairs]
