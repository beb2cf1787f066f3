"""GRR: the exact maximum of the likelihood, in closed form instead of by EM; CFO with binning.

Source: arXiv 2601.08603 as given in docs/methods.md, Densities: with the counts falling, S the
largest set of leading items whose entries are all positive, x_i = (c_i·(|S|·q + p − q)/C_S − q)/(p
− q), else 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.checks import SUPPORTS, a, taking
from edge_ldp.errors import CountsError, NoReportsError
from edge_ldp.estimate.density import Density, category_edges, density
from edge_ldp.estimate.pure import MAX_REPORTS, integer_counts, norm_sub
from edge_ldp.gateway.ems import ONE_CODE

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from edge_ldp.device.channel import Wave
    from edge_ldp.estimate.pure import Supports


@taking(channel=a("edge_ldp.device.channel.Wave"))
def grr(channel: Wave, counts: ArrayLike, *, edges: ArrayLike | None = None) -> Density:
    """Return the density that maximises the likelihood of GRR's codes.

    Shape: counts and the cells have channel.d entries (one code a category: c is 0); cell k is
    category k unless `edges` are given. Warns where all reports are of one code. Cost:
    O(d·log d). Raises CountsError, NoReportsError.
    """
    codes = integer_counts(counts)
    if channel.c or codes.shape != (channel.d,):
        raise CountsError(f"not {channel.code_count} of them, one a category")
    n = sum(codes.tolist())
    if n > MAX_REPORTS:
        raise CountsError("more than 2**53 reports")
    if not n:
        raise NoReportsError
    p, q = channel.r_num / channel.total, channel.r_den / channel.total
    falling = np.sort(codes)[::-1]
    sizes = np.arange(1, channel.d + 1)
    # the sign of the least entry of each leading set
    positive = falling * (sizes * q + (p - q)) > q * np.cumsum(falling)
    kept = int(np.flatnonzero(positive)[-1]) + 1
    scale = (kept * q + (p - q)) / falling[:kept].sum()
    mass = np.maximum(codes * scale - q, 0) / (p - q)
    mass /= mass.sum()
    seen = codes > 0
    warnings = (ONE_CODE,) if seen.sum() == 1 else ()
    likelihood = float(codes[seen] @ np.log(q + (p - q) * mass[seen]))
    cells = category_edges(channel.d, edges)
    return density(mass, cells, n=n, log_likelihood=likelihood, warnings=warnings)


@taking(given=SUPPORTS)
def cfo(given: Supports, *, edges: ArrayLike | None = None) -> Density:
    """Return the density over the bins whose supports were counted.

    Bin k is [edges[k], edges[k+1]), category k unless `edges` are given. Negative frequencies are
    taken out by Norm-Sub: the result is no longer unbiased. Raises ArgumentError for edges.
    """
    mass = norm_sub(given.frequencies())
    return density(mass, category_edges(given.size, edges), n=given.n)
