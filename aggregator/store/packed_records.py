"""A device's record as one small blob, where a store has no use for its columns (PostgreSQL).

Bytes a device are what the size of such a store is made of.
"""

import struct
from collections.abc import Iterator
from itertools import chain
from operator import attrgetter

import msgspec
import numpy as np

from aggregator.counting.record_rows import (
    DAMAGED,
    STATE_ENDS,
    Row,
    pack_gaps,
    record_row,
    row_record,
    unpack_gaps,
)
from aggregator.counting.records import Key, Record
from aggregator.counting.seen_batches import DIGEST, DIGEST_BYTES, KEPT_DIGESTS, Gap
from edge_ldp.errors import RowError

_ANY = ("", 0)  # of no matter
_DIGEST = DIGEST.format.removeprefix("<")
_DIGESTS = [struct.Struct("<" + n * _DIGEST) for n in range(KEPT_DIGESTS + 1)]
_PARTS = [struct.Struct(f"{DIGEST_BYTES}s" * n) for n in range(KEPT_DIGESTS + 1)]
_SAFE_BITS = 40  # sums of 2**23 smaller numbers fit


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
    earlier: bytes | None = None  # neither is in a record of a version before
    series: int = 0


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Packed)
_EVERY = msgspec.msgpack.Decoder(list[_Packed])
_SUMMED = (
    *("last_slot", "counted", "rejected", "duplicates", "conflicts"),
    *("uncounted", "expired", "before", "series"),
)
_summed = attrgetter(*_SUMMED)
_LIST = struct.Struct(">BI")  # how MessagePack begins a list of so many


def pack_record(record: Record) -> bytes:
    """Return a record in about 110 bytes, 96 of 8 digests, where no gap is open."""
    return pack_row(record_row(_ANY, record))


def pack_row(row: Row) -> bytes:
    """Return the same of a record's row."""
    _, _, highest, last_slot, floor, gaps, digests, series, earlier = row[:STATE_ENDS]
    first, counted, rejected, duplicates, conflicts, created, expired, begun, following, before = (
        row[STATE_ENDS:]
    )
    kept = _DIGESTS[len(digests) // DIGEST.size].unpack(digests)
    return _ENCODER.encode(
        _Packed(
            highest,
            last_slot,
            floor,
            tuple([highest - batch for batch in kept[::2]]),
            b"".join(kept[1::2]),
            unpack_gaps(gaps) if gaps else (),
            None if first is None else last_slot - first,
            counted,
            rejected,
            duplicates,
            conflicts,
            created - counted,
            expired,
            begun,
            following - highest,
            before,
            earlier or None,
            series,
        )
    )


def unpack_record(blob: bytes) -> Record:
    """Return a packed record; raises RowError when it is damaged."""
    return row_record(unpack_row(_ANY, blob))


def unpack_row(key: Key, blob: bytes) -> Row:
    """Return a packed record as the row of a device and stream; raises RowError.

    Not of a damaged `earlier`: `row_record` does.
    """
    try:
        p = _DECODER.decode(blob)
    except msgspec.MsgspecError as exc:
        raise RowError(DAMAGED) from exc
    back, digests, highest, last_slot = p.back, p.digests, p.highest, p.last_slot
    if len(digests) != len(back) * DIGEST_BYTES:
        raise RowError("a device's record has digests without batches")
    pairs = zip([highest - one for one in back], _PARTS[len(back)].unpack(digests), strict=True)
    return (
        *key,
        highest,
        last_slot,
        p.floor,
        pack_gaps([Gap(*gap) for gap in p.gaps]) if p.gaps else b"",
        _DIGESTS[len(back)].pack(*chain.from_iterable(pairs)),
        p.series,
        p.earlier or b"",
        None if p.span is None else last_slot - p.span,
        p.counted,
        p.rejected,
        p.duplicates,
        p.conflicts,
        p.counted + p.uncounted,
        p.expired,
        p.first,
        highest + p.ahead,
        p.before,
    )


def sum_records(blobs: bytes, records: int) -> Iterator[tuple[int | None, int, list[int]]]:
    """Yield first slot, last slot and sums of packed records alike in these; blobs are joined.

    Sums: how many, then counted, rejected, given up, pending, duplicates and conflicts, as
    `Record` has them. Raises RowError where a record is damaged, or these are not so many.
    """
    try:
        found = _EVERY.decode(_LIST.pack(0xDD, records) + blobs)
        firsts = [-1 if p.span is None else p.last_slot - p.span for p in found]
        slots = np.array(firsts, np.int64) + 1 << 32  # each below 2**32, or -1
        many = len(found) * len(_SUMMED)
        flat = np.fromiter(chain.from_iterable(map(_summed, found)), np.int64, many)
    except (msgspec.MsgspecError, OverflowError) as exc:
        raise RowError(DAMAGED) from exc
    columns = flat.reshape(-1, len(_SUMMED)).T
    last, counted, rejected, duplicates, conflicts, uncounted, expired, before, _ = columns
    open_ = np.maximum(0, counted + uncounted - (counted + rejected - before))
    given_up = np.minimum(expired, open_)
    values = (np.ones_like(open_), counted, rejected, given_up, open_ - given_up)
    keys, of = np.unique(slots | last + 1, return_inverse=True)
    rows = np.stack([*values, duplicates, conflicts], axis=1)
    sums = np.zeros((len(keys), 7), object if rows.max(initial=0) >> _SAFE_BITS else np.int64)
    np.add.at(sums, of, rows)
    for key, row in zip(keys.tolist(), sums.tolist(), strict=True):
        first, final = divmod(key, 1 << 32)
        yield first - 1 if first else None, final - 1, row
