"""The cells a data set is estimated in, its true density, and its values as the methods take them.

Source: [SW] §6.1 (256 buckets for Beta(5,2), 1024 for the others).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.device.lattice import bucket_edge
from edge_ldp.estimate.density import density

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edge_ldp.estimate import Density
    from studies.evaluate.study import Values

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

BUCKETS = 1024
_BETA_BUCKETS = 256


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """A data set in `size` buckets: bucket k holds the integers edges[k] ≤ v < edges[k + 1]."""

    values: Values
    size: int
    items: Ints
    edges: Floats
    truth: Density

    @property
    def shares(self) -> Floats:
        """Return the values on [0, 1], each in the middle of its unit: what R-B randomises."""
        span = self.values.ceiling - self.values.low + 1
        return np.asarray((self.values.values - self.values.low + 0.5) / span)


def size_of(values: Values) -> int:
    """Return the paper's number of buckets; where that would cut integers unevenly, one each."""
    if values.name == "beta":
        return _BETA_BUCKETS
    span = values.ceiling - values.low + 1
    return span if span <= 2 * BUCKETS else BUCKETS


def cells_of(values: Values, size: int | None = None) -> Cells:
    """Return the values in `size` buckets (`size_of` unless given; never more than integers)."""
    low, span = values.low, values.ceiling - values.low + 1
    count = min(size or size_of(values), span)
    items = (values.values - low) * count // span
    edges = [bucket_edge(k, low, values.ceiling, count) for k in range(count + 1)]
    counted = np.bincount(items, minlength=count) / len(items)
    at = np.array(edges, np.float64)
    return Cells(values, count, items, at, density(counted, at, n=len(items)))
