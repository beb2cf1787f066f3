"""How a device's record and a bucket's counts lie in a row, the same in every store.

Columns of a record are in the order of the store's table; blobs are little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregator.errors import RowError
from aggregator.receipts import DeviceState, Gap
from aggregator.records import Key, Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

_GAP = struct.Struct("<IIII")  # first, last, after + 1, before (all ones: none)
_DIGEST = struct.Struct("<I8s")
_U32 = (1 << 32) - 1
PAIR_BYTES = 10


def record_row(key: Key, record: Record) -> tuple[Any, ...]:
    """Return the row of a record, in the order of the table."""
    s = record.state
    return (
        *key,
        s.highest,
        s.last_slot,
        s.floor,
        _pack_gaps(s.gaps),
        b"".join(_DIGEST.pack(batch, digest) for batch, digest in s.digests),
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
        state = DeviceState(
            highest=highest,
            last_slot=last_slot,
            floor=floor,
            gaps=tuple(_unpack_gap(*fields) for fields in _GAP.iter_unpack(gaps)),
            digests=tuple((batch, digest) for batch, digest in _DIGEST.iter_unpack(digests)),
        )
    except (struct.error, TypeError) as exc:
        raise RowError("a device's record does not parse") from exc
    return Record(state, *rest)


def pack_pairs(codes: Ints, counts: Ints) -> bytes:
    """Return a bucket's histogram as stored: codes (u16, rising), then counts (u64)."""
    return codes.astype("<u2").tobytes() + counts.astype("<u8").tobytes()


def unpack_pairs(blob: bytes) -> tuple[Ints, Ints]:
    """Return (codes, counts) of a stored histogram; raises RowError when it is damaged."""
    size, rest = divmod(len(blob), PAIR_BYTES)
    codes = np.frombuffer(blob, "<u2", count=size).astype(np.int64)
    counts = np.frombuffer(blob[2 * size :], "<u8", count=size if not rest else 0).astype(np.int64)
    if rest or (np.diff(codes) <= 0).any() or (counts <= 0).any():
        raise RowError("a bucket's counts do not parse")
    return codes, counts


def _pack_gaps(gaps: Iterable[Gap]) -> bytes:
    """16 bytes a gap; counted slots lie below 2**32 - 1: the guard lets none be in the future."""
    return b"".join(
        _GAP.pack(g.first, g.last, min(g.after + 1, _U32), _U32 if g.before is None else g.before)
        for g in gaps
    )


def _unpack_gap(first: int, last: int, after: int, before: int) -> Gap:
    return Gap(first, last, after - 1, None if before == _U32 else before)
