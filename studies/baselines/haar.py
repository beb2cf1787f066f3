"""HaarHRR: frequencies from the Haar coefficients, each level's from its own reports by HRR.

A node's coefficient is its left half's share less its right half's; with the whole known to be 1,
halving from the top gives every category, and any range query few coefficients. Source: [SW] §4.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.checks import finite, integer_in, iterable, kept, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.errors import CountsError, NoReportsError
from edge_ldp.estimate.density import Density, category_edges, density
from edge_ldp.estimate.pure import MAX_REPORTS, integer_counts, norm_sub

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


def haar_frequencies(
    levels: Sequence[ArrayLike], size: int, *, own: float | Fraction
) -> tuple[Floats, int]:
    """Return (unbiased frequencies of the categories 0..size−1, reports); some may be negative.

    `levels`: counts of (row, bit), level l of shape (2^(h−1−l), 2), h the least with 2^h ≥ size; a
    bit is the sign's own with probability `own` = E/(E + 1). A level without reports is taken to be
    even. Categories above size − 1 are empty, and the coefficients that say so are known.
    Cost: O(size·log size). Raises CountsError, NoReportsError, ParameterError.
    """
    if not 0.5 < own <= 1:
        raise ParameterError("own", "above 1/2, at most 1")
    height = max(size - 1, 1).bit_length()
    tables = [integer_counts(level) for level in levels]
    shapes = [(1 << (height - 1 - level), 2) for level in range(height)]
    if size < 2 or [table.shape for table in tables] != shapes:
        raise CountsError("not two a row, a power of two of rows a level")
    n = sum(int(table.sum()) for table in tables)
    if not n:
        raise NoReportsError
    if n > MAX_REPORTS:
        raise CountsError("more than 2**53 reports")
    mass = np.ones(1)
    for level in range(height - 1, -1, -1):
        mass = _halved(mass, _coefficients(tables[level], float(own)), level, size)
    return mass[:size], n


@taking(levels=iterable, size=integer_in(2, 1 << 24), own=kept(finite(0.5, 1)))
def haar_hrr(
    levels: Sequence[ArrayLike],
    size: int,
    *,
    own: float | Fraction,
    edges: ArrayLike | None = None,
) -> Density:
    """Return `haar_frequencies` as a density, by Norm-Sub; category k is cell k or by `edges`."""
    frequencies, n = haar_frequencies(levels, size, own=own)
    return density(norm_sub(frequencies), category_edges(size, edges), n=n)


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


def _coefficients(table: Ints, own: float) -> Floats:
    reports = table.sum()
    signs = hadamard(table[:, 0] - table[:, 1])
    coefficients: Floats = signs / (max(reports, 1) * (2 * own - 1))
    return coefficients


def _halved(mass: Floats, coefficients: Floats, level: int, size: int) -> Floats:
    """Return each node's left and right half, next to each other."""
    right_start = (2 * np.arange(len(mass)) + 1) << level
    left = np.where(right_start < size, (mass + coefficients) / 2, mass)
    return np.stack([left, mass - left], axis=1).ravel()
