"""CFO with binning: a categorical oracle over coarse bins, made a density by Norm-Sub.

Inside a bin the density is uniform, which a `Density` is anyhow. Source: [SW] §4.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from edge_ldp.checks import SUPPORTS, taking
from edge_ldp.estimate.density import Density, category_edges, density
from edge_ldp.estimate.pure import norm_sub

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from edge_ldp.estimate.pure import Supports


@taking(given=SUPPORTS)
def cfo(given: Supports, *, edges: ArrayLike | None = None) -> Density:
    """Return the density over the bins whose supports were counted.

    Bin k is [edges[k], edges[k+1]), category k unless `edges` are given. Negative frequencies are
    taken out by Norm-Sub: the result is no longer unbiased. Raises ArgumentError for edges.
    """
    mass = norm_sub(given.frequencies())
    return density(mass, category_edges(given.size, edges), n=given.n)
