"""Frequencies from supports: what every categorical oracle's reports come to.

A report supports some items: its reporter's own with probability `own`, any other with `other`. So
the count of reports that support an item has a mean linear in the item's frequency, whatever the
oracle (Wang et al., USENIX Security 2017, "pure" protocols; [SW] §2.1). Norm-Sub makes
probabilities of estimates, some of which may be negative: one number is taken from all, and what
falls below 0 is set to 0, so that the rest adds up to 1: the Euclidean projection on the simplex
([SW] §4.1; Wang et al., NDSS 2020).

OLH's supports, the reports whose hash of an item is their code, are n·d hashes. They are followed
item by item, by adding a modulo the prime instead of multiplying, in blocks of reports that stay in
the processor's cache ([SW] §2.1).
"""

from dataclasses import dataclass
from fractions import Fraction
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edge_ldp.arrays import Floats, Ints
from edge_ldp.checks import SIZE, array, chance, finite, floats, integer_in, is_masked, kept, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.errors import CountsError, NoReportsError

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


@taking(estimates=floats, total=finite(0, inner=True))
def norm_sub(estimates: ArrayLike, total: float = 1.0) -> Floats:
    """Return max(estimates − δ, 0) with the δ for which it adds up to `total` > 0.

    Where the positive estimates add up to less than `total`, δ is negative. Cost: O(d·log d).
    Raises ParameterError for what is not a list of finite numbers.
    """
    x = np.asarray(estimates, dtype=np.float64)
    if x.ndim != 1 or not x.size or not isfinite(float(np.abs(x).max()) * len(x)):
        raise ParameterError("estimates", "a list of finite numbers, of a finite sum")
    projected = projection(x, total)
    projected *= total / projected.sum()  # takes rounding away
    return projected


def projection(x: Floats, total: float) -> Floats:
    """Return the nearest vector of numbers of at least 0 whose sum is `total`, unchecked."""
    falling = np.sort(x)[::-1]
    excess = np.add.accumulate(falling)
    excess -= total
    # entry k stays positive if the δ of the k + 1 largest alone leaves it so
    kept = np.count_nonzero(falling * np.arange(1, len(x) + 1) > excess)
    nearest: Floats = np.maximum(x - excess[kept - 1] / kept, 0)
    return nearest


PRIME = 2**31 - 1
_BLOCK = 1 << 13
_FIELDS = 3


@taking(size=SIZE, g=integer_in(2, PRIME))
def olh_counts(reports: ArrayLike, size: int, g: int) -> Ints:
    """Return for each item 0..size−1 how many reports (a, b, code) support it.

    Shape: reports is (n, 3), integers: 1 ≤ a < p, 0 ≤ b < p = 2^31 − 1, 0 ≤ code < g. Item x is
    supported if ((a·x + b) mod p) mod g is the code. Cost: n·size steps of about 2 ns; memory
    O(size) beside the reports. Raises CountsError for what is no report, ParameterError.
    """
    try:
        given = array("reports", reports)
    except ParameterError as exc:
        raise CountsError("not reports of three integers") from exc
    if given.dtype.kind not in "iu" or given.ndim != 2 or given.shape[1] != _FIELDS:  # noqa: PLR2004
        raise CountsError("not reports of three integers")
    if len(given) and ((given < (1, 0, 0)) | (given >= (PRIME, PRIME, g))).any():
        raise CountsError("reports with a field out of its range")
    counts = np.zeros(size, np.int64)
    for at in range(0, len(given), _BLOCK):
        a, b, code = given[at : at + _BLOCK].T.astype(np.uint32)
        _add(counts, a, b, code, np.uint32(g))
    return counts


def _add(
    counts: Ints,
    a: NDArray[np.uint32],
    b: NDArray[np.uint32],
    code: NDArray[np.uint32],
    g: np.uint32,
) -> None:
    """Add one block's supports. Sums stay below 2^32, and taking p from less than p wraps high."""
    value = b.copy()
    other = np.empty_like(value)
    prime = np.uint32(PRIME)
    for item in range(len(counts)):
        np.floor_divide(value, g, out=other)
        other *= g
        np.subtract(value, other, out=other)
        counts[item] += np.count_nonzero(other == code)
        value += a
        np.subtract(value, prime, out=other)
        np.minimum(value, other, out=value)
