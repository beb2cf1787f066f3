"""Counts of the archive against counts of the store: equal to the bit, or which cells are not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from aggregator.records import CountRows
from aggregator.tally import CODE_BITS, Sparse, Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

_NONE = Sparse(np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True)
class Difference:
    """A cell whose counts differ."""

    stream: int
    epoch: int
    bucket: int
    code: int
    archive: int
    store: int


@dataclass(frozen=True, slots=True)
class Compared:
    """Cells (stream, epoch, bucket, code) with reports: all, equal, and those that differ.

    `moving`: the store counted into them while the archive was read, so they say nothing.
    """

    cells: int
    equal: int
    moving: int
    differ: tuple[Difference, ...]


def compare(archive: Tally, before: Tally, after: Tally) -> Compared:
    """Compare the archive with the store, read before and after the archive was."""
    cells = equal = moving = 0
    differ: list[Difference] = []
    for key in sorted({*archive.parts, *before.parts, *after.parts}):
        parts = [tally.parts.get(key, _NONE) for tally in (archive, before, after)]
        union = np.unique(np.concatenate([part.cells for part in parts]))
        ours, then, now = (_spread(part, union) for part in parts)
        moved = then != now
        wrong = ~moved & (ours != then)
        cells += len(union)
        moving += int(moved.sum())
        equal += int((~moved & ~wrong).sum())
        rows = zip(union[wrong].tolist(), ours[wrong].tolist(), then[wrong].tolist(), strict=True)
        for cell, mine, theirs in rows:
            bucket, code = divmod(cell, 1 << CODE_BITS)
            differ.append(Difference(*key, bucket, code, mine, theirs))
    return Compared(cells, equal, moving, tuple(differ))


def tally_of_rows(streams: Mapping[int, CountRows]) -> Tally:
    """Return the tally of counts as a store gives them, by stream."""
    parts = {}
    for stream, rows in streams.items():
        for epoch in np.unique(rows.epoch).tolist():
            mine = rows.epoch == epoch
            cells = rows.bucket[mine] << CODE_BITS | rows.code[mine]
            order = np.argsort(cells)
            parts[stream, epoch] = Sparse(cells[order], rows.count[mine][order])
    return Tally(parts)


def tally_of_columns(columns: Iterable[Ints]) -> Tally:
    """Return the tally of columns stream, epoch, bucket, code and count, one row for each cell."""
    stream, epoch, bucket, code, count = columns
    parts = {}
    for key in sorted({*zip(stream.tolist(), epoch.tolist(), strict=True)}):
        mine = (stream == key[0]) & (epoch == key[1])
        cells = bucket[mine] << CODE_BITS | code[mine]
        order = np.argsort(cells)
        parts[key] = Sparse(cells[order], count[mine][order])
    return Tally(parts)


def _spread(part: Sparse, union: Ints) -> Ints:
    counts = np.zeros(len(union), np.int64)
    counts[np.searchsorted(union, part.cells)] = part.counts
    return counts


def rows_of(tally: Tally, stream: int, first_bucket: int, last_bucket: int) -> CountRows:
    """Return a stream's counts in the buckets first..last, as a store gives them."""
    epochs, cells, counts = [_NONE.cells], [_NONE.cells], [_NONE.counts]
    for (of, epoch), part in sorted(tally.parts.items(), key=lambda item: item[0]):
        bucket = part.cells >> CODE_BITS
        mine = (of == stream) & (first_bucket <= bucket) & (bucket <= last_bucket)
        epochs.append(np.full(int(mine.sum()), epoch, np.int64))
        cells.append(part.cells[mine])
        counts.append(part.counts[mine])
    cell = np.concatenate(cells)
    mask = (1 << CODE_BITS) - 1
    return CountRows(np.concatenate(epochs), cell >> CODE_BITS, cell & mask, np.concatenate(counts))


def totals_of(tally: Tally, stream: int) -> CountRows:
    """Return a stream's counts, all buckets added up, as a store gives them."""
    mask = (1 << CODE_BITS) - 1
    summed = {}
    for key, part in tally.parts.items():
        if key[0] == stream:
            codes, where = np.unique(part.cells & mask, return_inverse=True)
            counts = np.zeros(len(codes), np.int64)
            np.add.at(counts, where, part.counts)
            summed[key] = Sparse(codes, counts)
    return rows_of(Tally(summed), stream, 0, 0)
