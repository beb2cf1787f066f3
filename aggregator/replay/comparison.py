"""Counts of the archive against counts of the store: equal to the bit, or which cells are not."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2s

import numpy as np

from aggregator.counting.period_totals import PeriodTotal, TotalKey, totals_of
from aggregator.counting.records import UNNAMED, KeptSums
from aggregator.counting.retention import GONE, SUMMED, RolledUp
from aggregator.counting.tally import (
    CODE_BITS,
    CountRows,
    Part,
    Sparse,
    Tally,
    dense,
    merge,
)
from aggregator.store.rows import HeldRow
from edge_ldp.arrays import Ints

_NONE = Sparse(np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True)
class Difference:
    """A cell whose counts differ."""

    stream: int
    epoch: int
    group: int
    bucket: int
    code: int
    archive: int
    store: int


@dataclass(frozen=True, slots=True)
class Compared:
    """Cells (stream, epoch, group, bucket, code) with reports: all, equal, and those that differ.

    `moving`: the store counted into them while the archive was read, so they say nothing.
    """

    cells: int
    equal: int
    moving: int
    differ: tuple[Difference, ...]


def compare_archive(archive: Tally, before: Tally, after: Tally) -> Compared:
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
            differ.append(Difference(*key[:3], bucket, code, mine, theirs))
    return Compared(cells, equal, moving, tuple(differ))


@dataclass(frozen=True, slots=True)
class ComparedSums:
    """Homes' sums of a period: all, and those that only one side has, or that differ.

    Those of erased homes, which only the store has, are of nobody. `totals_differ`: periods whose
    total in the store is not what its releases add up to.
    """

    releases: int
    differ: int
    totals_differ: int


def compare_releases(
    archive: Iterable[KeptSums],
    before: Iterable[KeptSums],
    after: Iterable[KeptSums],
    totals: Mapping[TotalKey, PeriodTotal],
) -> ComparedSums:
    """Compare the archive's releases with the store's, read before and after; `totals`: after."""
    ours = {one._replace(held=False) for one in archive}
    kept = list(after)
    now, then = (
        {one._replace(held=False) for one in found if not one.device.startswith(UNNAMED)}
        for found in (kept, before)
    )
    known = totals_of(kept)
    wrong = {key for key in known.keys() | totals.keys() if known.get(key) != totals.get(key)}
    differ = (ours - now) | (then - ours)
    return ComparedSums(len(ours | now), len(differ), len(wrong))


def explained(compared: Compared, reports: int) -> bool:
    """Say whether at most so many reports are missing in the archive, and there is none too many.

    Those of erased devices stay in the store's counts, and nobody knows any more which they were.
    """
    missing = [one.store - one.archive for one in compared.differ]
    return all(more > 0 for more in missing) and sum(missing) <= reports


def tally_of_rows(streams: Mapping[int, CountRows], group: int = 0) -> Tally:
    """Return the tally of counts of a group as a store gives them, by stream."""
    parts: dict[Part, Sparse] = {}
    for stream, rows in streams.items():
        for epoch in np.unique(rows.epoch).tolist():
            mine = rows.epoch == epoch
            cells = rows.bucket[mine] << CODE_BITS | rows.code[mine]
            cells, where = np.unique(cells, return_inverse=True)
            counts = dense(where.reshape(-1), rows.count[mine], len(cells))
            parts[stream, epoch, group, 0] = Sparse(cells, counts)
    return Tally(parts)


def tally_of_held(rows: Iterable[HeldRow]) -> Tally:
    """Return the tally of what a store keeps apart of some devices."""
    return merge(
        Tally({(*row[1:4], 0): Sparse(row.bucket << CODE_BITS | row.codes, row.counts)})
        for row in rows
    )


def tally_of_columns(columns: Sequence[Ints]) -> tuple[Tally, Tally]:
    """Return the tallies of `n` and `left_out` of a replay's COLUMNS, one row for each cell."""
    *keys, bucket, code, count, left_out = columns
    found, of = np.unique(np.stack(keys), axis=1, return_inverse=True)
    parts: dict[Part, Sparse] = {}
    left: dict[Part, Sparse] = {}
    for at, key in enumerate(zip(*found.tolist(), strict=True)):
        mine = np.flatnonzero(of == at)
        cells = bucket[mine] << CODE_BITS | code[mine]
        order = np.argsort(cells)
        cells, mine = cells[order], mine[order]
        parts[key] = Sparse(cells, count[mine])
        some = left_out[mine] > 0
        if some.any():
            left[key] = Sparse(cells[some], left_out[mine][some])
    return Tally(parts), Tally(left)


def rolled(tally: Tally, rolled_up: Mapping[int, RolledUp]) -> Tally:
    """Return the tally as a store keeps it that has added up or deleted old buckets, by stream."""
    parts: dict[Part, Sparse] = {}
    for key, part in tally.parts.items():
        until = rolled_up[key[0]].until
        bucket = part.cells >> CODE_BITS
        first = bucket.copy()
        for span in sorted(span for span in until if span > SUMMED):  # the longest is last
            first = np.where(bucket < until[span], bucket - bucket % span, first)
        stays = bucket >= until.get(GONE, 0)
        cells = (first << CODE_BITS | part.cells & (1 << CODE_BITS) - 1)[stays]
        if len(cells):
            union, where = np.unique(cells, return_inverse=True)
            counts = np.zeros(len(union), np.int64)
            np.add.at(counts, where, part.counts[stays])
            parts[key] = Sparse(union, counts)
    return Tally(parts)


def digest_of(tally: Tally) -> str:
    """Return the same text for the same counts, whatever they were counted by; else another."""
    found = blake2s(digest_size=16)
    for key, part in sorted(tally.parts.items(), key=_key):
        if len(part.cells):
            found.update(np.array([*key[:3], len(part.cells)], "<i8").tobytes())
            found.update(part.cells.astype("<i8").tobytes() + part.counts.astype("<i8").tobytes())
    return found.hexdigest()


def subtract(tally: Tally, part: Tally) -> Tally:
    """Return a tally without some of its reports; cells that become empty are gone."""
    parts = {}
    for key, whole in tally.parts.items():
        counts = whole.counts - _spread(part.parts.get(key, _NONE), whole.cells)
        left = counts > 0
        if left.any():
            parts[key] = Sparse(whole.cells[left], counts[left])
    return Tally(parts)


def _spread(part: Sparse, union: Ints) -> Ints:
    counts = np.zeros(len(union), np.int64)
    counts[np.searchsorted(union, part.cells)] = part.counts
    return counts


def only_group(tally: Tally, group: int) -> Tally:
    """Return the counts of one group of devices."""
    return Tally({key: part for key, part in tally.parts.items() if key[2] == group})


def _key(pair: tuple[Part, Sparse]) -> Part:
    return pair[0]
