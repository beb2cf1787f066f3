"""Frequencies from supports: what every categorical oracle's reports come to.

A report supports some items: its reporter's own with probability `own`, any other with `other`. So
the count of reports that support an item has a mean linear in the item's frequency, whatever the
oracle (Wang et al., USENIX Security 2017, "pure" protocols; [SW] §2.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.checks import chance, integer_in, is_masked, kept, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.errors import CountsError, NoReportsError

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

MAX_REPORTS = 1 << 53  # beyond, floats no longer count


@dataclass(frozen=True, slots=True, eq=False)
class Supports:
    """How many of n reports support each item; build it with `supports()`, which checks it.

    Also one level of a tree, whose items are the level's nodes.
    """

    counts: Ints
    n: int
    own: float
    other: float

    @property
    def size(self) -> int:
        """Items."""
        return len(self.counts)

    def frequencies(self) -> Floats:
        """Return each item's share of the reporters: unbiased, may be negative."""
        unbiased: Floats = (self.counts / self.n - self.other) / (self.own - self.other)
        return unbiased

    @property
    def variance(self) -> float:
        """Variance of the frequency of an item that no reporter has."""
        return self.other * (1 - self.other) / (self.n * (self.own - self.other) ** 2)


@taking(n=integer_in(0, MAX_REPORTS), own=kept(chance), other=kept(chance))
def supports(
    counts: ArrayLike, n: int, *, own: float | Fraction, other: float | Fraction
) -> Supports:
    """Return the checked Supports: counts are integers from 0 to n, one an item.

    `own` > `other`: the probabilities with which a report supports its reporter's item and any
    other one. Raises CountsError, NoReportsError (n = 0), ParameterError.
    """
    if not 0 <= other < own <= 1:
        raise ParameterError("own, other", "probabilities, own above other")
    whole = integer_counts(counts)
    if whole.ndim != 1 or not whole.size:
        raise CountsError("not a list, one an item")
    if whole.max() > n:
        raise CountsError("more supports of an item than reports")
    if not n:
        raise NoReportsError
    whole.setflags(write=False)
    return Supports(whole, n, float(own), float(other))


def integer_counts(counts: ArrayLike) -> Ints:
    """Return counts as an array of integers, 0 or more; raises CountsError.

    Floats are taken where they are whole numbers, as sums of counts often are.
    """
    if is_masked(counts):
        raise CountsError("masked")
    try:
        given = np.array(counts)
    except (TypeError, ValueError, OverflowError) as exc:
        raise CountsError("not numbers") from exc
    if given.dtype.kind not in "iuf":
        raise CountsError("not numbers below 2**63")
    if not np.isfinite(given).all():
        raise CountsError("not finite")
    if given.size and not 0 <= given.min() <= given.max() <= MAX_REPORTS:
        raise CountsError("negative, or above 2**53")
    whole = given.astype(np.int64)
    if (whole != given).any():
        raise CountsError("not whole numbers")
    return whole
