"""A device's record as one small blob, where a store has no use for its columns (PostgreSQL).

Bytes a device are what the size of such a store is made of.
"""

from __future__ import annotations

import struct
from itertools import chain
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from aggregator.counting.records import Record
from aggregator.counting.seen_batches import DIGEST, KEPT_DIGESTS, DeviceState, Gap
from aggregator.store.forms import DAMAGED, pack_series, unpack_series
from edge_ldp.errors import RowError

if TYPE_CHECKING:
    from collections.abc import Iterator

_DIGEST_BYTES = 8
_DIGEST = DIGEST.format.removeprefix("<")
_DIGESTS = [struct.Struct("<" + n * _DIGEST) for n in range(KEPT_DIGESTS + 1)]
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
_LIST = struct.Struct(">BI")  # how MessagePack begins a list of so many


def pack_record(record: Record) -> bytes:
    """Return a record in about 110 bytes, 96 of 8 digests, where no gap is open."""
    s = record.state
    digests = _DIGESTS[len(s.digests) // DIGEST.size].unpack(s.digests)
    first = record.first_slot
    return _ENCODER.encode(
        _Packed(
            s.highest,
            s.last_slot,
            s.floor,
            tuple([s.highest - batch for batch in digests[::2]]),
            b"".join(digests[1::2]),
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
            pack_series(s.earlier) or None,
            s.series,
        )
    )


def unpack_record(blob: bytes) -> Record:
    """Return a packed record; raises RowError when it is damaged."""
    try:
        p = _DECODER.decode(blob)
    except msgspec.MsgspecError as exc:
        raise RowError(DAMAGED) from exc
    if len(p.digests) != len(p.back) * _DIGEST_BYTES:
        raise RowError("a device's record has digests without batches")
    parts = struct.unpack(f"{_DIGEST_BYTES}s" * len(p.back), p.digests)
    pairs = [(p.highest - back, part) for back, part in zip(p.back, parts, strict=True)]
    digests = _DIGESTS[len(p.back)].pack(*chain.from_iterable(pairs))
    gaps = tuple([Gap(*gap) for gap in p.gaps]) if p.gaps else ()
    try:
        earlier = unpack_series(p.earlier) if p.earlier else ()
    except struct.error as exc:
        raise RowError(DAMAGED) from exc
    return Record(
        DeviceState(*(p.highest, p.last_slot, p.floor, gaps, digests, p.series, earlier)),
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
                    p.series,
                )
                for p in found
            ],
            np.int64,
        ).reshape(-1, 10)
    except (msgspec.MsgspecError, OverflowError) as exc:
        raise RowError(DAMAGED) from exc
    counted, rejected, duplicates, conflicts, uncounted, expired, before = columns.T[2:9]
    open_ = np.maximum(0, counted + uncounted - (counted + rejected - before))
    given_up = np.minimum(expired, open_)
    values = (np.ones_like(open_), counted, rejected, given_up, open_ - given_up)
    slots = columns[:, 0] + 1 << 32 | columns[:, 1] + 1  # each below 2**32, or -1
    keys, of = np.unique(slots, return_inverse=True)
    rows = np.stack([*values, duplicates, conflicts], axis=1)
    sums = np.zeros((len(keys), 7), object if rows.max(initial=0) >> _SAFE_BITS else np.int64)
    np.add.at(sums, of, rows)
    for key, row in zip(keys.tolist(), sums.tolist(), strict=True):
        first, last = divmod(key, 1 << 32)
        yield first - 1 if first else None, last - 1, row
