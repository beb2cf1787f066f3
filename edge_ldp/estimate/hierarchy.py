"""HH: a tree of noisy frequencies made consistent, so that every parent is the sum of its children.

The nearest consistent tree, each node's square weighted by its precision, takes one pass up and one
down. With equal precisions and a regular tree these are eqs 10 and 11 of [ToPS], their root being
known here: all frequencies add up to 1. Nodes known to be empty have variance 0.
HH-ADMM minimises ½·‖x̂ − x̃‖² over all levels' nodes, parents being sums of their children, nothing
negative, the root 1: a strictly convex quadratic programme, solved by the alternating direction
method of multipliers.
Sources: [ToPS] Appendix C, eqs 10 and 11; [SW] §4.2 (HH), §4.3 and Appendix B, Algorithm 2, ρ = 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edge_ldp.arrays import Floats
from edge_ldp.checks import SIZE, SUPPORTS, TRUTH, each, finite, integer_in, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.errors import CountsError
from edge_ldp.estimate.density import Density, category_edges, density
from edge_ldp.estimate.pure import Supports, norm_sub, projection

Indices = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class FrequencyTree:
    """Which node of the level above each node belongs to; level 0 is below the root.

    `empty`: nodes without a category below them. Build a regular one with `regular_tree`.
    """

    parents: tuple[Indices, ...]
    empty: tuple[NDArray[np.bool_], ...]

    def sums(self, level: int, x: Floats) -> Floats:
        """Return the sums over siblings on a level, one a node of the level above."""
        above = len(self.parents[level - 1]) if level else 1
        return np.asarray(np.bincount(self.parents[level], x, above), dtype=np.float64)

    def totals(self, leaves: Floats) -> list[Floats]:
        """Return the consistent tree that has these leaves."""
        levels = [leaves]
        for level in range(len(self.parents) - 1, 0, -1):
            levels.append(self.sums(level, levels[-1]))
        return levels[::-1]


def regular_tree(size: int, fanout: int) -> FrequencyTree:
    """Return the tree of `fanout` children a node with at least `size` leaves, 0..size−1 in use.

    Raises ParameterError.
    """
    if {type(size), type(fanout)} != {int} or size < 1 or fanout < 2:  # noqa: PLR2004
        raise ParameterError("size, fanout", "integers, size >= 1, fanout >= 2")
    widths = [1]
    while widths[-1] * fanout < size:
        widths.append(widths[-1] * fanout)
    height = len(widths)
    nodes = [np.arange(fanout ** (level + 1)) for level in range(height)]
    return FrequencyTree(
        parents=tuple(at // fanout for at in nodes),
        empty=tuple(at * width >= size for at, width in zip(nodes, widths[::-1], strict=True)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Consistency:
    """The projection on the consistent trees with a given root, for one tree and its variances.

    `trust`: the share of a node's own estimate against its children's sum; `claims`: its share of
    what its parent has more or less than all children.
    """

    tree: FrequencyTree
    trust: tuple[Floats, ...]
    claims: tuple[Floats, ...]

    def of(self, estimates: Sequence[Floats], root: float = 1.0) -> list[Floats]:
        """Return the nearest consistent levels: parents are sums, empty nodes 0. Cost: O(nodes)."""
        tree = self.tree
        up = list(estimates)
        up[-1] = np.where(tree.empty[-1], 0, up[-1])
        for level in range(len(up) - 2, -1, -1):
            below = tree.sums(level + 1, up[level + 1])
            up[level] = below + self.trust[level] * (up[level] - below)
        above = np.array([root])
        for level, claims in enumerate(self.claims):
            missing = above - tree.sums(level, up[level])
            above = up[level] + claims * missing[tree.parents[level]]
            up[level] = above
        return up


def consistency(tree: FrequencyTree, variances: Sequence[ArrayLike]) -> Consistency:
    """Return the projection for estimates of these variances: a number a level, or one a node."""
    trust, claims = [], []
    below: Floats | None = None
    for level in range(len(tree.parents) - 1, -1, -1):
        own = np.where(tree.empty[level], 0.0, variances[level])
        share = np.ones_like(own) if below is None else _share(below, own)
        both = own * share
        siblings = tree.sums(level, both)[tree.parents[level]]
        trust.append(share)
        claims.append(np.divide(both, siblings, out=np.zeros_like(own), where=siblings > 0))
        below = tree.sums(level, both)
    return Consistency(tree, tuple(trust[::-1]), tuple(claims[::-1]))


def _share(below: Floats, own: Floats) -> Floats:
    total = below + own
    return np.divide(below, total, out=np.zeros_like(total), where=total > 0)


def hh_levels(
    levels: Sequence[Supports], size: int, *, fanout: int = 4, weighted: bool = True
) -> list[Floats]:
    """Return consistent frequencies of every level's nodes; unbiased, so some may be negative.

    `levels`: the supports of each level's nodes, below the root first; they have fanout, fanout², …
    nodes. `weighted`: by each level's own variance, else all alike as in the papers. The last
    level's first `size` entries are the categories: sums of them answer range queries.
    Raises CountsError for levels of other sizes, ParameterError.
    """
    tree = regular_tree(size, fanout)
    if [level.size for level in levels] != [len(at) for at in tree.parents]:
        raise CountsError("not of one level after another of the tree")
    variances = [level.variance if weighted else 1.0 for level in levels]
    return consistency(tree, variances).of([level.frequencies() for level in levels])


@taking(
    levels=each(SUPPORTS),
    size=SIZE,
    fanout=integer_in(2, 1 << 16),
    weighted=TRUTH,
)
def hh(
    levels: Sequence[Supports],
    size: int,
    *,
    fanout: int = 4,
    weighted: bool = True,
    edges: ArrayLike | None = None,
) -> Density:
    """Return HH with constrained inference as a density: its leaves by Norm-Sub.

    Arguments as of `hh_levels`. The leaves' noise is large and Norm-Sub pushes it into the tails;
    use `hh_levels` for range queries, `hh_admm` for a density. Category k is cell k unless `edges`
    are given.
    """
    leaves = hh_levels(levels, size, fanout=fanout, weighted=weighted)[-1][:size]
    n = sum(level.n for level in levels)
    return density(norm_sub(leaves), category_edges(size, edges), n=n)


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
