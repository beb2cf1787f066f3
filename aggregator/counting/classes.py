"""Classes of devices that report equally often, so that a home does not weigh by its reports.

How likely a slot of a stream reports follows from a home's window, its schedule's period and its
number of streams; the device's status tells them. Counts are kept by class, and a report of a class
stands for as many slots as its devices were there in for each report that came. A class is a step
of 2^(1/16) of that chance: within one, homes weigh alike to ± 2.2 %. Class 0: not told, by devices
that never did, or before it was kept; these count as of one class.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil, log2

import numpy as np

from edge_ldp.arrays import Floats, Ints

UNTOLD = 0
STEPS = 16  # classes from a chance to its half
CLASS_BITS = 13
_CHANCE_BITS = 9  # the least chance, 1 slot in `ledger.MAX_CELLS`, is of class 257
_MOST_STEPS = 15  # of an effect, each √2: up to 181, more than 28 days at one time of day have
FEW = 100  # reports of a class in a group: fewer weigh as those of the class in such groups do
_CLASS = (1 << CLASS_BITS) - 1
_ALIKE = 2 ** (-0.5 / STEPS)  # of what a class told, its devices may report so much less often
_ROUNDING = 1e-9


def class_of(chance: Fraction | None, effect: float = 1.0) -> int:
    """Return the class of devices of which a stream's slot reports with this chance, in (0, 1].

    `effect`: the design effect of their schedule (protocol.schedule), at least 1; rounded up.
    """
    if chance is None:
        return UNTOLD
    walk = min(_MOST_STEPS, ceil(2 * log2(max(1.0, effect))))
    return 1 + round(-STEPS * log2(chance)) | walk << _CHANCE_BITS


def effect_of(whose: Ints, counts: Ints) -> float:
    """Return how many times as much as of independent slots a mean of these counts varies."""
    walks = whose >> _CHANCE_BITS & _MOST_STEPS
    total = counts.sum()
    return float(counts @ 2.0 ** (walks / 2) / total) if total else 1.0


def slots_a_report(cls: int) -> float:
    """Return in how many slots a device of a class reports once; 0 where it did not tell."""
    chance = cls & (1 << _CHANCE_BITS) - 1
    return 0.0 if cls == UNTOLD else float(2 ** ((chance - 1) / STEPS))


class Weights:
    """What a report of each group and class (`tally.whose_of`) stands for, 1 on average.

    `counts`: of all groups, each entry's `whose` beside it; `slots`: device-slots by group and
    class, in the same buckets. Without these every report stands for as much. A class that reported
    less often than it told slept, or lost reports, in slots in which it counts as there: its
    reports stand for as many slots as it told, and its groups' other reports make up for the rest.
    """

    def __init__(
        self,
        whose: Ints,
        counts: Ints | Floats,
        slots: Mapping[int, int],
        *,
        in_parts: bool = False,
    ) -> None:
        self._slots = slots
        self._of, at = np.unique(whose, return_inverse=True)
        reports = self._reports = np.bincount(at, counts, len(self._of)).astype(np.float64)
        there = np.array([slots.get(one, 0) for one in self._of.tolist()], np.float64)
        group, cls = self._of >> CLASS_BITS, self._of & _CLASS
        few = (reports < FEW) | (there == 0)
        pooled = reports * _sums(there * few, cls) / np.maximum(1, _sums(reports * few, cls))
        there = np.where(few, pooled, there)
        known = there > 0
        every = _sums(there, cls) / np.maximum(1, _sums(reports * known, cls))  # slots a report
        told = np.array(list(map(slots_a_report, cls.tolist())))
        awake = told / np.where(known, every, 1.0)
        awake[(awake > _ALIKE) | (told == 0) | (_sums(reports, cls) < FEW)] = 1.0
        mine = there / np.maximum(1, reports)
        if in_parts:
            each = np.where(known & (told > 0), every * awake, mine)
        else:
            each = mine * awake * _sums(there, group)
            each /= np.maximum(1e-300, _sums(there * awake, group))
        known = each > 0
        mean = float(each @ reports) / max(1.0, float(reports[known].sum()))
        self._each = np.where(known, each / (mean or 1.0), 1.0)
        # else every report stands for one
        self.differ = bool((abs(self._each - 1) > _ROUNDING).any())

    @property
    def of_parts(self) -> "Weights":
        """Those of reports in a part of the time, as an hour: by class alone, where it is told.

        A group that slept at other hours must not count in this one for all that it was there.
        """
        return Weights(self._of, self._reports, self._slots, in_parts=True)

    @property
    def untold(self) -> float:
        """The share of reports of devices that did not tell how often they report, beside others.

        0 where none did: then they count as of one class.
        """
        told = self._of & _CLASS != UNTOLD
        return float(self._reports[~told].sum() / self._reports.sum()) if told.any() else 0.0

    def each(self, whose: Ints) -> Floats:
        """Return the weights of entries; those of whom nothing was counted weigh 1."""
        if not self.differ:
            return np.ones(len(whose))
        at = np.searchsorted(self._of, whose)
        at[at == len(self._of)] = 0
        return np.where(self._of[at] == whose, self._each[at], 1.0)

    def powers(self, whose: Ints, counts: Ints) -> list[Floats | Ints]:
        """Return counts, and where weights differ, times these, and times their squares."""
        if not self.differ:
            return [counts]
        each = self.each(whose)
        return [counts, counts * each, counts * each**2]


def _sums(column: Floats, kinds: Ints) -> Floats:
    """Return of each entry the sum of a column over all of its kind."""
    _, at = np.unique(kinds, return_inverse=True)
    found: Floats = np.bincount(at, column).astype(np.float64)[at]
    return found


def unweighted() -> Weights:
    """Return weights of 1."""
    nothing = np.zeros(0, np.int64)
    return Weights(nothing, nothing, {})


def effective(powers: Sequence[Floats | Ints]) -> Ints:
    """Return counts of as many equal reports as `powers`, of an entry a code, tell as much as.

    Their number is (Σ weight)² / Σ weight² (Kish 1965): for what takes whole reports alone.
    """
    if len(powers) == 1:
        return powers[0].astype(np.int64)
    _, sums, squares = powers
    scale = sums.sum() / max(squares.sum(), 1e-300)
    found: Ints = np.diff(np.rint(np.cumsum(sums * scale)), prepend=0).astype(np.int64)
    return found
