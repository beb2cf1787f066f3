"""HH-ADMM: the nearest tree of frequencies that is consistent and not negative.

Minimises ½·‖x̂ − x̃‖² over all levels' nodes, parents being sums of their children, nothing negative,
the root 1: a strictly convex quadratic programme, solved by the alternating direction method of
multipliers. Source: [SW] §4.3 and Appendix B, Algorithm 2, ρ = 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.checks import SIZE, SUPPORTS, each, finite, integer_in, taking
from edge_ldp.errors import CountsError
from edge_ldp.estimate.density import Density, category_edges, density
from edge_ldp.estimate.hierarchy import FrequencyTree, consistency, regular_tree
from edge_ldp.estimate.norm_sub import projection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from edge_ldp.estimate.pure import Supports

    Floats = NDArray[np.float64]

TOLERANCE = 1e-8  # of any node's frequency
MAX_ITERATIONS = 20_000
CAPPED = "stopped at the cap of iterations, short of the optimum"


@taking(
    levels=each(SUPPORTS),
    size=SIZE,
    fanout=integer_in(2, 1 << 16),
    tolerance=finite(0, inner=True),
    max_iterations=integer_in(least=1),
)
def hh_admm(  # noqa: PLR0913 (keywords)
    levels: Sequence[Supports],
    size: int,
    *,
    fanout: int = 4,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
    edges: ArrayLike | None = None,
) -> Density:
    """Return HH-ADMM's density over the categories 0..size−1 (cell k, or by `edges`).

    `levels` as of `hh`, which it improves on by using that no frequency is negative. Stops when no
    node differs by `tolerance` between the two constraints or moved by it. Warns at the cap.
    Cost: O(nodes) an iteration but for sorting. Raises CountsError, ParameterError.
    """
    tree = regular_tree(size, fanout)
    if [level.size for level in levels] != [len(at) for at in tree.parents]:
        raise CountsError("not of one level after another of the tree")
    estimates = [level.frequencies() for level in levels]
    leaves, iterations, done = nearest(tree, estimates, tolerance, max_iterations)
    return density(
        leaves[:size] / leaves[:size].sum(),
        category_edges(size, edges),
        n=sum(level.n for level in levels),
        iterations=iterations,
        warnings=() if done else (CAPPED,),
    )


def nearest(
    tree: FrequencyTree, estimates: Sequence[Floats], tolerance: float, max_iterations: int
) -> tuple[Floats, int, bool]:
    """Return (leaves of the nearest consistent tree not below 0, iterations, whether it got there).

    Levels lie one after another in one array; empty nodes stay 0 throughout.
    """
    cuts = np.cumsum([len(level) for level in estimates])[:-1]
    used = ~np.concatenate(tree.empty)
    consistent = consistency(tree, [1.0] * len(estimates))
    noisy = np.where(used, np.concatenate(estimates), 0)
    levels_used = np.split(used, cuts)
    x, before = noisy, noisy
    mu, nu, eta = np.zeros((3, len(noisy)))
    w = x
    for iteration in range(1, max_iterations + 1):
        y = (x - noisy + mu) / 2
        z = np.concatenate(consistent.of(np.split(x + nu, cuts)))
        w = _probabilities(x + eta, cuts, levels_used)
        x = (y + noisy - mu + z - nu + w - eta) / 3
        mu += x - noisy - y
        nu += x - z
        eta += x - w
        if _largest_difference(z, w) < tolerance and _largest_difference(x, before) < tolerance:
            return np.split(w, cuts)[-1], iteration, True
        before = x
    return np.split(w, cuts)[-1], max_iterations, False


def _probabilities(x: Floats, cuts: NDArray[np.intp], used: Sequence[NDArray[np.bool_]]) -> Floats:
    """Return Norm-Sub of each level's used nodes."""
    out = np.zeros_like(x)
    for level, into, of_level in zip(np.split(x, cuts), np.split(out, cuts), used, strict=True):
        into[of_level] = projection(level[of_level], 1.0)
    return out


def _largest_difference(one: Floats, two: Floats) -> float:
    return float(np.abs(one - two).max())
