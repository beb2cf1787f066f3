"""Counts of codes per (stream, epoch, group, class, time bucket): integers, merged by addition.

A bucket is `slot // bucket_slots`, so no clock and no time zone is in it. n, Σ and Σ² of decoded
codes follow from the counts exactly. Merging is commutative and associative: the order of frames
never matters. A plan's codes are its stream codes, then its survey codes (docs/design.md,
Messages); reports of one mechanism have one likelihood, whatever their epoch, so their counts add
up. Source: docs/design.md, Estimation.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggregator.counting.classes import CLASS_BITS, Weights, unweighted
from edge_ldp import Mechanism
from edge_ldp.arrays import Ints
from edge_ldp.errors import CountsError
from edge_ldp.protocol.plan import Plan

Part = tuple[int, int, int, int]  # stream, epoch, group, class
CODE_BITS = 16
MOST = (1 << 63) - 1  # of a count
_SAFE_BITS = 40  # sums of 2**23 smaller counts fit
_HALF_BITS = 32
_NEAR = 4  # cells a report: fewer take less time to look through than reports to sort
_CODE_MASK = (1 << CODE_BITS) - 1
CELL_BITS = 48
_CELL_MASK = (1 << CELL_BITS) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """Counts above zero: `cells` (bucket << 16 | code) rise strictly, with one count each."""

    cells: Ints
    counts: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Counts of codes by (stream, epoch, group of devices, their class)."""

    parts: Mapping[Part, Sparse] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """How many reports were counted."""
        return sum(exact_sum(part.counts) for part in self.parts.values())

    def rows(self) -> Iterator[tuple[int, ...]]:
        """Yield (stream, epoch, group, class, bucket, code, count), rising."""
        for *place, codes, counts in self.buckets():
            for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
                yield *place, code, count

    def buckets(self) -> Iterator[tuple[int, int, int, int, int, Ints, Ints]]:
        """Yield (stream, epoch, group, class, bucket, codes, counts), rising; codes rise."""
        for key, part in sorted(self.parts.items(), key=lambda item: item[0]):
            codes = part.cells & _CODE_MASK
            buckets, starts = np.unique(part.cells >> CODE_BITS, return_index=True)
            ends = [*starts[1:].tolist(), len(codes)]
            for bucket, start, end in zip(buckets.tolist(), starts.tolist(), ends, strict=True):
                yield *key, bucket, codes[start:end], part.counts[start:end]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tally) and list(self.rows()) == list(other.rows())

    __hash__ = None  # type: ignore[assignment]


def count_columns(
    parts: Sequence[Part], of: Ints, buckets: Ints, codes: Ints
) -> dict[Part, Sparse]:
    """Return the counts of reports in columns, by part; `of`: the place of each one's part.

    Slots below 2**32, codes below 2**16, at most 2**15 parts, a report of each. Cost: O(reports)
    where they lie near each other, else one sort.
    """
    first, size = int(buckets.min()), int(codes.max()) + 1
    span = int(buckets.max()) - first + 1
    if len(parts) * span * size <= _NEAR * len(codes):
        every = np.bincount(((of * span) + buckets - first) * size + codes)
        cells = np.flatnonzero(every)
        times, (rows, code) = every[cells], np.divmod(cells, size)
        part, bucket = np.divmod(rows, span)
        found = bucket + first << CODE_BITS | code | part << CELL_BITS
    else:
        cells = buckets << CODE_BITS | codes | of << CELL_BITS
        found, times = np.unique(cells, return_counts=True)
    cuts = np.searchsorted(found, np.arange(1, len(parts)) << CELL_BITS)
    pairs = zip(np.split(found & _CELL_MASK, cuts), np.split(times, cuts), strict=True)
    return {part: Sparse(*pair) for part, pair in zip(parts, pairs, strict=True)}


def merge(tallies: Iterable[Tally]) -> Tally:
    """Return the sum of tallies; of none, the empty tally."""
    found: dict[Part, list[Sparse]] = {}
    for tally in tallies:
        for key, part in tally.parts.items():
            found.setdefault(key, []).append(part)
    return Tally({key: _add(parts) for key, parts in found.items()})


def without_classes(tally: Tally) -> Tally:
    """Return the tally with all classes added up, as 0."""
    return merge(Tally({(*key[:3], 0): part}) for key, part in tally.parts.items())


def add_pairs(first: tuple[Ints, Ints], second: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """Return the sum of two sparse histograms (codes rising, counts); neither is empty."""
    summed = np.zeros(1 + max(first[0][-1], second[0][-1]), np.int64)
    for codes, counts in (first, second):
        summed[codes] = saturated(summed[codes], counts)
    found = np.flatnonzero(summed)
    return found, summed[found]


def dense(codes: Ints, counts: Any, code_count: int) -> Any:
    """Return counts of length `code_count` from pairs (code, count); equal codes add up.

    Of the type of `counts`: int64, or float64 where they are weighted.
    """
    summed = np.zeros(code_count, counts.dtype)
    if counts.dtype == np.int64 and int(counts.max(initial=0)) >> _SAFE_BITS:  # the sum may not fit
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            summed[code] = min(int(summed[code]) + count, MOST)
        return summed
    np.add.at(summed, codes, counts)
    return summed


def saturated(first: Ints, second: Ints) -> Ints:
    """Return the sums of counts of 0 or more; what would wrap stays at the largest there is."""
    summed: Ints = first + second
    return np.where(summed < first, MOST, summed)


def exact_sum(counts: Ints) -> int:
    """Return the sum of fewer than 2**31 counts, which may be more than an array can hold."""
    high = int((counts >> _HALF_BITS).sum())
    return (high << _HALF_BITS) + int((counts & (1 << _HALF_BITS) - 1).sum())


def _add(parts: list[Sparse]) -> Sparse:
    cells, where = np.unique(np.concatenate([part.cells for part in parts]), return_inverse=True)
    return Sparse(cells, dense(where, np.concatenate([p.counts for p in parts]), len(cells)))


def whose_of(group: int, cls: int) -> int:
    """Return a group and class as one number."""
    return group << CLASS_BITS | cls


@dataclass(frozen=True, slots=True, eq=False)
class CountRows:
    """Counts above zero as columns of equal length; `bucket` is 0 where buckets were added up.

    `reporters`: who reported, by bucket (counting.reporters), where that was asked for; `whose`:
    group and class (`whose_of`) that each count is of, left out: of any.
    """

    epoch: Ints
    bucket: Ints
    code: Ints
    count: Ints
    reporters: Mapping[int, bytes] = field(default_factory=dict)
    whose: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        if not len(self.whose):
            object.__setattr__(self, "whose", np.zeros(len(self.code), np.int64))

    def some(self, chosen: NDArray[np.bool_] | Ints) -> "CountRows":
        """Return some of the rows, without who reported."""
        epoch, bucket, code, count, whose = (
            one[chosen] for one in (self.epoch, self.bucket, self.code, self.count, self.whose)
        )
        return CountRows(epoch, bucket, code, count, whose=whose)


def rows_of(tally: Tally, stream: int, first_bucket: int, last_bucket: int) -> CountRows:
    """Return a stream's counts in the buckets first..last, all groups, as a store gives them."""
    nothing = np.zeros(0, np.int64)
    found = [[nothing] * 4]
    for (of, epoch, group, cls), part in sorted(tally.parts.items(), key=lambda item: item[0]):
        bucket = part.cells >> CODE_BITS
        mine = (of == stream) & (first_bucket <= bucket) & (bucket <= last_bucket)
        head = np.full((2, int(mine.sum())), [[epoch], [whose_of(group, cls)]], np.int64)
        found.append([*head, part.cells[mine], part.counts[mine]])
    epochs, whose, cells, counts = (np.concatenate(one) for one in zip(*found, strict=True))
    by_bucket = np.argsort(cells >> CODE_BITS, kind="stable")
    order = by_bucket[np.argsort(epochs[by_bucket], kind="stable")]
    rows = CountRows(epochs, cells >> CODE_BITS, cells & _CODE_MASK, counts, whose=whose)
    return rows.some(order)


def split_epochs(
    plans: Mapping[int, Plan], epochs: Ints, codes: Ints, counts: Any
) -> dict[int, tuple[Any, Any]]:
    """Return {epoch: (stream counts, survey counts)} for the epochs that have counts, rising.

    An entry for each code; or weights. Raises CountsError for an epoch that is no plan's, or a code
    that is not its plan's: the table is damaged.
    """
    found = {}
    for epoch in sorted(set(epochs.tolist())):
        if epoch not in plans:
            raise CountsError(f"of epoch {epoch}, which was never issued")
        here, plan = epochs == epoch, plans[epoch]
        mine, border = codes[here], plan.stream_mechanism.code_count
        code_count = border + plan.survey_mechanism.code_count
        if not 0 <= mine.min() <= mine.max() < code_count:
            raise CountsError(f"a code outside those of epoch {epoch}")
        together = dense(mine, counts[here], code_count)
        found[epoch] = together[:border], together[border:]
    return found


def weigh_epochs(
    plans: Mapping[int, Plan], rows: CountRows, weights: Weights
) -> dict[int, list[list[Any]]]:
    """Return [stream counts, survey counts] of epochs, each a list: counts, and what they weigh.

    Beside counts stand the sums of their reports' weights and of these squared, where weights
    differ. Whole reports are added up first, so that it is the same to the bit however rows were.
    Raises CountsError.
    """
    found: dict[int, list[list[Any]]] = {}
    whose = rows.whose if weights.differ else np.zeros(len(rows.whose), np.int64)
    order = np.argsort(whose, kind="stable")
    for at in np.split(order, np.flatnonzero(np.diff(whose[order])) + 1):
        mine = rows.some(at)
        for epoch, pair in split_epochs(plans, mine.epoch, mine.code, mine.count).items():
            powers = [weights.powers(mine.whose[:1], counts) for counts in pair]
            found[epoch] = _plus(found[epoch], powers) if epoch in found else powers
    return {epoch: found[epoch] for epoch in sorted(found)}


def _plus(some: list[list[Any]], more: list[list[Any]]) -> list[list[Any]]:
    return [list(map(saturated, *both)) for both in zip(some, more, strict=True)]


def merge_epochs(
    plans: Mapping[int, Plan], rows: CountRows, weights: Weights | None = None
) -> dict[Mechanism, list[Any]]:
    """Return the counts of every mechanism, sums and surveys, of equal ones added up.

    In lists, as in `weigh_epochs`. In order of first use; none that counted nothing. Raises
    CountsError.
    """
    merged: dict[Mechanism, list[Any]] = {}
    for epoch, parts in weigh_epochs(plans, rows, weights or unweighted()).items():
        plan = plans[epoch]
        for mechanism, powers in zip(
            (plan.stream_mechanism, plan.survey_mechanism), parts, strict=True
        ):
            if powers[0].any():
                so_far = merged.get(mechanism, [np.zeros_like(one) for one in powers])
                merged[mechanism] = list(map(saturated, so_far, powers))
    return merged
