"""HRR: the supports of items from counts of its reports, by one Walsh-Hadamard transform."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.checks import chance, integer_in, kept, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.errors import CountsError
from edge_ldp.estimate.pure import Supports, integer_counts, supports

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import ArrayLike, NDArray

    Ints = NDArray[np.int64]


def hadamard(sums: ArrayLike) -> Ints:
    """Return the Walsh-Hadamard transform: entry x is Σ over rows of sums·(−1)^|row & x|.

    The length is a power of two; integers, exactly. Cost: O(length·log length).
    """
    entries = np.array(sums, dtype=np.int64)
    if entries.ndim != 1 or not len(entries) or len(entries) & (len(entries) - 1):
        raise ParameterError("sums", "a list whose length is a power of two")
    step = 1
    while step < len(entries):
        pairs = entries.reshape(-1, 2, step)
        entries = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).ravel()
        step *= 2
    return entries


@taking(size=integer_in(least=1), own=kept(chance))
def hrr_supports(counts: ArrayLike, size: int, *, own: float | Fraction) -> Supports:
    """Return the supports of items 0..size−1 from HRR's counts of (row, bit) reports.

    Shape: (rows, 2), rows the power of two that is not below size. A report supports the items
    whose entry in its row it agrees with: the own one with `own` = E/(E + 1), others with ½.
    """
    table = integer_counts(counts)
    if table.ndim != 2 or table.shape[1] != 2 or not 0 < size <= len(table):
        raise CountsError("not two counts a row, of no fewer rows than items")
    n = int(table.sum())
    agree = (n + hadamard(table[:, 0] - table[:, 1])[:size]) // 2  # the two have one parity
    return supports(agree, n, own=own, other=0.5)
