"""How a device's record and a bucket's counts lie in a row, the same in every store.

A record is one small blob where the store has no use for its columns (PostgreSQL: bytes a device
are what its size is made of), and a row of columns where it has them (SQLite). Blobs of gaps,
digests and counts are little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from aggregator.counting.records import Key, Record
from aggregator.counting.seen_batches import DIGEST, DeviceState, Gap
from edge_ldp.errors import RowError
from edge_ldp.protocol.strict_json import dumps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edge_ldp.protocol.messages import Status

    Ints = NDArray[np.int64]

_GAP = struct.Struct("<IIII")  # first, last, after + 1, before (all ones: none)
_DIGEST_BYTES = 8
_U32 = (1 << 32) - 1
_CODE_BYTES = 2
_WIDTHS = (1, 2, 4, 8)  # bytes of one count; the form's number says which
_DENSE = 0x10  # every code from 0 on has a count, and none is written
_AT_ONCE = 256  # histograms of one form and length: no matrix has more rows
_DAMAGED = "a device's record does not parse"


class _Packed(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A record as MessagePack: integers take as many bytes as they need, fields have no names.

    What follows another number closely is written as the difference from it.
    """

    highest: int
    last_slot: int
    floor: int
    back: tuple[int, ...]  # highest − batch of each digest
    digests: bytes
    gaps: tuple[tuple[int, int, int, int | None], ...]
    span: int | None  # last_slot − first_slot
    counted: int
    rejected: int
    duplicates: int
    conflicts: int
    uncounted: int  # created − counted
    expired: int
    first: int
    ahead: int  # next − highest
    before: int


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Packed)
_EVERY = msgspec.msgpack.Decoder(list[_Packed])
_LIST = struct.Struct(">BI")  # how MessagePack begins a list of so many


def pack_record(record: Record) -> bytes:
    """Return a record in about 110 bytes, 96 of 8 digests, where no gap is open."""
    s = record.state
    first = record.first_slot
    return _ENCODER.encode(
        _Packed(
            s.highest,
            s.last_slot,
            s.floor,
            tuple([s.highest - batch for batch, _ in DIGEST.iter_unpack(s.digests)]),
            b"".join([digest for _, digest in DIGEST.iter_unpack(s.digests)]),
            tuple([(g.first, g.last, g.after, g.before) for g in s.gaps]),
            None if first is None else s.last_slot - first,
            record.counted,
            record.rejected,
            record.duplicates,
            record.conflicts,
            record.created - record.counted,
            record.expired,
            record.first,
            record.next - s.highest,
            record.before,
        )
    )


def unpack_record(blob: bytes) -> Record:
    """Return a packed record; raises RowError when it is damaged."""
    try:
        p = _DECODER.decode(blob)
    except msgspec.MsgspecError as exc:
        raise RowError(_DAMAGED) from exc
    if len(p.digests) != len(p.back) * _DIGEST_BYTES:
        raise RowError("a device's record has digests without batches")
    digests = [
        DIGEST.pack(p.highest - back, p.digests[at * _DIGEST_BYTES : (at + 1) * _DIGEST_BYTES])
        for at, back in enumerate(p.back)
    ]
    gaps = tuple([Gap(*gap) for gap in p.gaps]) if p.gaps else ()
    return Record(
        DeviceState(p.highest, p.last_slot, p.floor, gaps, b"".join(digests)),
        None if p.span is None else p.last_slot - p.span,
        p.counted,
        p.rejected,
        p.duplicates,
        p.conflicts,
        p.counted + p.uncounted,
        p.expired,
        p.first,
        p.highest + p.ahead,
        p.before,
    )


def sum_records(blobs: bytes, records: int) -> Iterator[tuple[int | None, int, list[int]]]:
    """Yield first slot, last slot and sums of packed records alike in these; blobs are joined.

    Sums: how many, then counted, rejected, given up, pending, duplicates and conflicts, as
    `Record` has them. Raises RowError where a record is damaged, or these are not so many.
    """
    try:
        found = _EVERY.decode(_LIST.pack(0xDD, records) + blobs)
        columns = np.array(
            [
                (
                    *(-1 if p.span is None else p.last_slot - p.span, p.last_slot, p.counted),
                    *(p.rejected, p.duplicates, p.conflicts, p.uncounted, p.expired, p.before),
                )
                for p in found
            ],
            np.int64,
        ).reshape(-1, 9)
    except (msgspec.MsgspecError, OverflowError) as exc:
        raise RowError(_DAMAGED) from exc
    counted, rejected, duplicates, conflicts, uncounted, expired, before = columns.T[2:]
    open_ = np.maximum(0, counted + uncounted - (counted + rejected - before))
    given_up = np.minimum(expired, open_)
    values = (np.ones_like(open_), counted, rejected, given_up, open_ - given_up)
    slots = columns[:, 0] + 1 << 32 | columns[:, 1] + 1  # each below 2**32, or -1
    keys, of = np.unique(slots, return_inverse=True)
    sums = np.zeros((len(keys), 7), np.int64)
    np.add.at(sums, of, np.stack([*values, duplicates, conflicts], axis=1))
    for key, row in zip(keys.tolist(), sums.tolist(), strict=True):
        first, last = divmod(key, 1 << 32)
        yield first - 1 if first else None, last - 1, row


def status_row(status: Status) -> tuple[str, str, str, str, str]:
    """Return state, software, refusals, health and ages as both stores keep them.

    Refusals with their numbers where the device tells them; they are printable, so no line end is
    in them.
    """
    texts = {words.partition(": ")[0]: words for words in status.refused}
    refusals = "\n".join(texts.get(reason, reason) for reason in status.refusals)
    ages = dumps(status.ages).decode() if status.ages else ""
    return status.state, status.software, refusals, status.health, ages


def unpack_refusals(text: str) -> tuple[str, ...]:
    """Return packed reasons."""
    return tuple(text.split("\n")) if text else ()


def record_row(key: Key, record: Record) -> tuple[Any, ...]:
    """Return the row of a record, in the order of SQLite's table."""
    s = record.state
    return (
        *key,
        s.highest,
        s.last_slot,
        s.floor,
        _pack_gaps(s.gaps),
        s.digests,
        record.first_slot,
        record.counted,
        record.rejected,
        record.duplicates,
        record.conflicts,
        record.created,
        record.expired,
        record.first,
        record.next,
        record.before,
    )


def row_record(row: Sequence[Any]) -> Record:
    """Return the record in a row of RECORD's columns; raises RowError when it is damaged."""
    highest, last_slot, floor, gaps, digests, *rest = row
    try:
        found = tuple([_unpack_gap(*fields) for fields in _GAP.iter_unpack(gaps)]) if gaps else ()
        torn = len(digests) % DIGEST.size
    except (struct.error, TypeError) as exc:
        raise RowError(_DAMAGED) from exc
    if torn:
        raise RowError(_DAMAGED)
    return Record(DeviceState(highest, last_slot, floor, found, digests), *rest)


def pack_pairs(codes: Ints, counts: Ints) -> bytes:
    """Return a bucket's histogram as stored: its form, codes (u16, rising), counts.

    Counts take 1, 2, 4 or 8 bytes each, as the largest needs; where that is shorter, zeros are
    written too and codes are not.
    """
    at = sum(int(counts.max(initial=0)) >> 8 * width > 0 for width in _WIDTHS)
    width = _WIDTHS[at]
    size = int(codes[-1]) + 1 if len(codes) else 0
    if size * width < len(codes) * (_CODE_BYTES + width):
        every = np.zeros(size, f"<u{width}")
        every[codes] = counts
        return bytes([_DENSE | at]) + every.tobytes()
    return bytes([at]) + codes.astype("<u2").tobytes() + counts.astype(f"<u{width}").tobytes()


def unpack_pairs(blob: bytes) -> tuple[Ints, Ints]:
    """Return (codes, counts) of a stored histogram; raises RowError when it is damaged."""
    form = blob[0] if blob else 0
    is_dense, at = form & _DENSE, form & ~_DENSE
    if not blob or at >= len(_WIDTHS):
        raise RowError("a bucket's counts are of no known form")
    width = _WIDTHS[at]
    size, rest = divmod(len(blob) - 1, width if is_dense else width + _CODE_BYTES)
    if rest:
        raise RowError("a bucket's counts do not parse")
    counts = np.frombuffer(blob, f"<u{width}", size, len(blob) - size * width).astype(np.int64)
    if is_dense:
        codes = np.flatnonzero(counts)
        return codes, counts[codes]
    codes = np.frombuffer(blob, "<u2", size, 1).astype(np.int64)
    if (np.diff(codes) <= 0).any() or (counts <= 0).any():
        raise RowError("a bucket's counts do not parse")
    return codes, counts


class PairSum:
    """Stored histograms added up; those alike in form and length as one matrix."""

    def __init__(self) -> None:
        self._sums: Ints = np.zeros(0, np.int64)
        self._alike: dict[tuple[bytes, int], list[bytes]] = {}

    def add(self, blob: bytes) -> None:
        """Add a histogram; raises RowError when one so far is damaged."""
        these = self._alike.setdefault((blob[:1], len(blob)), [])
        these.append(blob)
        if len(these) == _AT_ONCE:
            self._fold(these)

    def pairs(self) -> tuple[Ints, Ints]:
        """Return (codes, counts); raises RowError when a histogram is damaged."""
        for these in self._alike.values():
            self._fold(these)
        codes = np.flatnonzero(self._sums)
        return codes, self._sums[codes]

    def _fold(self, these: list[bytes]) -> None:
        if len(these) > 1 and these[0] and these[0][0] & _DENSE:
            unpack_pairs(these[0])  # as damaged as the others, which have its form and length
            rows = np.frombuffer(b"".join(these), np.uint8).reshape(len(these), -1)[:, 1:]
            width = _WIDTHS[these[0][0] & ~_DENSE]
            counts = rows.copy().view(f"<u{width}").sum(axis=0, dtype=np.int64)
            self._put(np.arange(len(counts)), counts)
        else:
            for blob in these:
                self._put(*unpack_pairs(blob))
        these.clear()

    def _put(self, codes: Ints, counts: Ints) -> None:
        size = int(codes[-1]) + 1 if len(codes) else 0
        if len(self._sums) < size:
            self._sums = np.pad(self._sums, (0, size - len(self._sums)))
        self._sums[codes] += counts


def repack_pairs(blob: bytes) -> bytes:
    """Return a histogram of the first form, codes (u16) and counts (u64), in that of now."""
    size, rest = divmod(len(blob), 10)
    if rest:
        raise RowError("a bucket's counts do not parse")
    codes = np.frombuffer(blob, "<u2", size).astype(np.int64)
    return pack_pairs(codes, np.frombuffer(blob, "<u8", size, 2 * size).astype(np.int64))


def _pack_gaps(gaps: Iterable[Gap]) -> bytes:
    """16 bytes a gap; counted slots lie below 2**32 - 1: the guard lets none be in the future."""
    return b"".join(
        [
            _GAP.pack(
                g.first, g.last, min(g.after + 1, _U32), _U32 if g.before is None else g.before
            )
            for g in gaps
        ]
    )


def _unpack_gap(first: int, last: int, after: int, before: int) -> Gap:
    return Gap(first, last, after - 1, None if before == _U32 else before)
