"""A record as the row of columns that a store keeps, the same in every store.

Nearly every batch is the next one of a device of which nothing is open: `follow` settles it on the
row, and a Record is made of one only where more has to be looked at. To make Records of all took as
long as all else of settling. A row is device and stream, then the fields of the state, then those
of the record. Blobs are little-endian; as one blob: `aggregator.store.packed_records`.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from aggregator.counting.records import Key, Record
from aggregator.counting.seen_batches import (
    DIGEST,
    KEPT_DIGESTS,
    LAST_BATCH,
    ClosedSeries,
    DeviceState,
    Gap,
)
from edge_ldp.errors import RowError

Row = tuple[Any, ...]
DAMAGED = "a device's record does not parse"
_SERIES = struct.Struct("<IIIHB")  # series, highest, floor; how many gaps and digests follow
_GAP = struct.Struct("<IIII")  # first, last, after + 1, before (all ones: none)
_U32 = (1 << 32) - 1
STATE_ENDS = 2 + len(DeviceState._fields)
_KEPT_BYTES = KEPT_DIGESTS * DIGEST.size


class RecordRows(Mapping[Key, Record]):
    """Records by device and stream, each a Record or a row of one, which becomes one when read."""

    def __init__(self, rows: Mapping[Key, Record | Row]) -> None:
        self.rows = rows

    @classmethod
    def of(cls, records: Mapping[Key, Record]) -> "RecordRows":
        """Return the same."""
        return records if isinstance(records, RecordRows) else cls(records)

    def __getitem__(self, key: Key) -> Record:
        """Return one; raises KeyError, or RowError where the row is damaged."""
        one = self.rows[key]
        return one if isinstance(one, Record) else row_record(one)

    def __iter__(self) -> Iterator[Key]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


def follow(  # noqa: PLR0913, PLR0917 (the fields of an ArrivedBatch, which takes time to make)
    row: Row, reports: int, first: int, last: int, number: int, digest: bytes, series: int
) -> Row | None:
    """Return the row after a batch that counts and leaves no question, as nearly all do.

    It is what `seen_batches.place` and `accounts.account` make of the record. None: where a gap or
    an earlier series is open, or one would be, or the row is damaged.
    """
    # every field by its name: slices and stars take as long again
    (device, stream, highest, slot, floor, gaps, digests, own, earlier, lowest, counted,
     rejected, duplicates, conflicts, created, expired, begun, following, before) = row  # fmt: skip
    if gaps or earlier or series != own or first <= slot or len(digests) % DIGEST.size:
        return None
    if number != highest + 1 and not highest < number <= floor:
        return None
    if number > (LAST_BATCH if own else last + 1):
        return None
    digests = (digests + DIGEST.pack(number, digest))[-_KEPT_BYTES:]
    lowest = first if lowest is None or first < lowest else lowest
    return (device, stream, number, last, floor, gaps, digests, own, earlier, lowest,
            counted + reports, rejected, duplicates, conflicts, created, expired, begun,
            following, before)  # fmt: skip


def record_row(key: Key, record: Record) -> Row:
    """Return the row of a record."""
    state, *rest = record
    highest, last_slot, floor, gaps, digests, series, earlier = state
    packed = pack_gaps(gaps), digests, series, pack_series(earlier)
    return *key, highest, last_slot, floor, *packed, *rest


def row_record(row: Row) -> Record:
    """Return the record in a row; raises RowError if it is damaged."""
    _, _, highest, last_slot, floor, gaps, digests, series, packed = row[:STATE_ENDS]
    try:
        found = unpack_gaps(gaps) if gaps else ()
        earlier = unpack_series(packed) if packed else ()
        torn = len(digests) % DIGEST.size
    except (struct.error, TypeError) as exc:
        raise RowError(DAMAGED) from exc
    if torn:
        raise RowError(DAMAGED)
    state = DeviceState(highest, last_slot, floor, found, digests, series, earlier)
    return Record(state, *row[STATE_ENDS:])


def pack_gaps(gaps: Iterable[Gap]) -> bytes:
    """Return 16 bytes a gap; slots counted lie below 2**32 - 1: none is let be in the future."""
    return b"".join(
        [
            _GAP.pack(
                g.first, g.last, min(g.after + 1, _U32), _U32 if g.before is None else g.before
            )
            for g in gaps
        ]
    )


def unpack_gaps(blob: bytes) -> tuple[Gap, ...]:
    """Return them; raises struct.error where the blob is cut."""
    return tuple(
        [
            Gap(first, last, after - 1, None if before == _U32 else before)
            for first, last, after, before in _GAP.iter_unpack(blob)
        ]
    )


def pack_series(earlier: Iterable[ClosedSeries]) -> bytes:
    """Each in 15 bytes, its gaps and its digests after it."""
    return b"".join(
        _SERIES.pack(s.series, s.highest, s.floor, len(s.gaps), len(s.digests) // DIGEST.size)
        + pack_gaps(s.gaps)
        + s.digests
        for s in earlier
    )


def unpack_series(blob: bytes) -> tuple[ClosedSeries, ...]:
    """Return them; raises struct.error where the blob is cut."""
    found, at = [], 0
    while at < len(blob):
        series, highest, floor, open_gaps, digests = _SERIES.unpack_from(blob, at)
        at += _SERIES.size
        ends = at + open_gaps * _GAP.size
        gaps = unpack_gaps(blob[at:ends])
        at = ends + digests * DIGEST.size
        if at > len(blob):
            raise struct.error
        found.append(ClosedSeries(series, highest, floor, gaps, blob[ends:at]))
    return tuple(found)
