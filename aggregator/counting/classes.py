"""Classes of devices that report equally often, so that a home does not weigh by its reports.

How likely a slot of a stream reports follows from a home's window, its schedule's period and its
number of streams; the device's status tells them. Counts are kept by class, and a report of a class
stands for as many slots as its devices were there in for each report that came. A class is a step
of 2^(1/16) of that chance: within one, homes weigh alike to ± 2.2 %. Class 0: not told, by devices
that never did, or before it was kept; these count as of one class.
"""

from __future__ import annotations

from math import ceil, log2
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

UNTOLD = 0
STEPS = 16  # classes from a chance to its half
CLASS_BITS = 13
_CHANCE_BITS = 9  # the least chance, 1 slot in `ledger.MAX_CELLS`, is of class 257
_MOST_STEPS = 15  # of an effect, each √2: up to 181, more than 28 days at one time of day have
FEW = 100  # reports of a class in a group: fewer weigh as those of the class in such groups do
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
    class, in the same buckets. Without these every report stands for as much.
    """

    def __init__(self, whose: Ints, counts: Ints, slots: Mapping[int, int]) -> None:
        self._of, at = np.unique(whose, return_inverse=True)
        reports = self._reports = np.bincount(at.reshape(-1), counts, len(self._of))
        there = np.array([slots.get(one, 0) for one in self._of.tolist()], np.float64)
        few = (reports < FEW) | (there == 0)
        cells = np.where(few, self._of & (1 << CLASS_BITS) - 1, -1)
        for cls in np.unique(cells[few]).tolist():
            mine = cells == cls
            there[mine] = there[mine].sum() * reports[mine] / reports[mine].sum()
        known = there > 0
        each = np.ones(len(self._of))
        each[known] = there[known] / reports[known]
        each[known] *= reports[known].sum() / max(1, there[known].sum())
        self.differ = bool((abs(each - 1) > _ROUNDING).any())  # else every report stands for one
        self._each = each

    @property
    def untold(self) -> float:
        """The share of reports of devices that did not tell how often they report, beside others.

        0 where none did: then they count as of one class.
        """
        told = self._of & (1 << CLASS_BITS) - 1 != UNTOLD
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
