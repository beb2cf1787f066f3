"""Reports as a small matrix: what a posterior over some hundred cells looks at thousands of times.

Neighbouring codes of one branch are added up to at most 128 groups: a wave's window is wider than
a group, so little is lost, and a look costs groups × cells whatever the mechanism's size.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from aggregator.errors import NoReportsError
from aggregator.estimate.joint import checked_counts_of, view_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from aggregator.estimate.joint import Evidence
    from edge_ldp import Mechanism

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

GROUPS = 128


class Rows(NamedTuple):
    """P(group of codes | cell), groups × cells, and the first code of each group."""

    matrix: Floats
    starts: NDArray[np.intp]

    def add_up(self, counts: Floats) -> Floats:
        """Return counts by group from counts by code."""
        return np.add.reduceat(counts, self.starts)


class Reports(NamedTuple):
    """All evidence: `expected` @ masses of the cells = expected counts; `counts` by group."""

    expected: Floats
    counts: Floats


def rows_of(mechanism: Mechanism, edges: Ints, groups: int = GROUPS) -> Rows:
    """Return the mechanism's grouped likelihood; the last 512 are kept, 32 of the finest."""
    rows = _rows if groups <= GROUPS else _fine_rows
    return rows(mechanism, np.ascontiguousarray(edges, np.int64).tobytes(), groups)


def reports_of(evidence: Sequence[Evidence], edges: Ints, groups: int = GROUPS) -> Reports:
    """Return all evidence, counts of equal mechanisms added; NoReportsError, CountsError."""
    counted: dict[Mechanism, Floats] = {}
    for part in evidence:
        counts = checked_counts_of(part)
        if counts.any():
            counted[part.mechanism] = counted.get(part.mechanism, np.zeros(1)) + counts
    if not counted:
        raise NoReportsError
    expected, grouped = [], []
    for mechanism, counts in counted.items():
        rows = rows_of(mechanism, edges, groups)
        possible = rows.matrix.any(axis=1)
        expected.append(rows.matrix[possible] * counts.sum())
        grouped.append(rows.add_up(counts)[possible])
    return Reports(np.vstack(expected), np.concatenate(grouped))


def _made(mechanism: Mechanism, edges: bytes, groups: int) -> Rows:
    view = view_of(mechanism, np.frombuffer(edges, np.int64))
    unit = np.eye(len(edges) // 8 - 1)
    full = np.stack([view.apply(cell) for cell in unit], axis=1)
    cuts = view.operator.cuts
    step = -(-mechanism.code_count // groups)
    starts = np.concatenate([np.arange(a, b, step) for a, b in pairwise(cuts) if b > a])
    return Rows(np.add.reduceat(full, starts, axis=0), starts)


_rows = lru_cache(maxsize=512)(_made)
_fine_rows = lru_cache(maxsize=32)(_made)
