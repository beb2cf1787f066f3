"""Simulated reports by their exact laws: supports need no report to be drawn one by one."""

import numpy as np

from edge_ldp.estimate.ahead import Ahead, ahead
from edge_ldp.estimate.hierarchy import regular_tree
from edge_ldp.estimate.pure import Supports, supports
from edge_ldp.ratio import floor_ratio


def oue_supports(items: np.ndarray, epsilon: float, rng: np.random.Generator) -> Supports:
    """Supports of `items` (true count of each) by OUE: bits are independent of one another."""
    other = 1 / (1 + float(floor_ratio(epsilon).num) / floor_ratio(epsilon).den)
    n = int(items.sum())
    counts = rng.binomial(items, 0.5) + rng.binomial(n - items, other)
    return supports(counts, n, own=0.5, other=other)


def grr_supports(items: np.ndarray, epsilon: float, rng: np.random.Generator) -> Supports:
    """Supports of `items` by GRR: true codes, and the others spread evenly over other items."""
    ratio = floor_ratio(epsilon).num / floor_ratio(epsilon).den
    own, other = ratio / (ratio + len(items) - 1), 1 / (ratio + len(items) - 1)
    honest = rng.binomial(items, own)
    counts = honest.copy()
    for item, lies in enumerate(items - honest):
        law = np.full(len(items), 1 / (len(items) - 1))
        law[item] = 0
        counts += rng.multinomial(lies, law)
    return supports(counts, int(items.sum()), own=own, other=other)


def cfo_supports(items: np.ndarray, epsilon: float, rng: np.random.Generator) -> Supports:
    """Supports by GRR or by an oracle of OLH's variance (OUE's is the same to a few per cent)."""
    ratio = floor_ratio(epsilon)
    small = len(items) < 3 * ratio.num / ratio.den + 2  # [SW] §2.1
    return (grr_supports if small else oue_supports)(items, epsilon, rng)


def hh_supports(
    values: np.ndarray, size: int, epsilon: float, rng: np.random.Generator
) -> list[Supports]:
    """Supports of each level of a 4-ary tree; values are categories, each reports on one level."""
    tree = regular_tree(size, 4)
    height = len(tree.parents)
    chosen = rng.integers(0, height, len(values))
    return [
        cfo_supports(
            np.bincount(values[chosen == level] // 4 ** (height - 1 - level), minlength=len(at)),
            epsilon,
            rng,
        )
        for level, at in enumerate(tree.parents)
    ]


def haar_counts(
    values: np.ndarray, size: int, epsilon: float, rng: np.random.Generator
) -> tuple[list[np.ndarray], float]:
    """Counts of (row, bit) on each level, and the probability of the own bit."""
    ratio = floor_ratio(epsilon).num / floor_ratio(epsilon).den
    height = (size - 1).bit_length()
    chosen = rng.integers(0, height, len(values))
    levels = []
    for level in range(height):
        mine = values[chosen == level]
        nodes = 1 << (height - 1 - level)
        rows = rng.integers(0, nodes, len(mine))
        bits = np.bitwise_count(rows & (mine >> (level + 1))) % 2 ^ (mine >> level & 1)
        bits = bits ^ (rng.random(len(mine)) >= ratio / (1 + ratio))
        levels.append(np.bincount(2 * rows + bits, minlength=2 * nodes).reshape(-1, 2))
    return levels, ratio / (1 + ratio)


def ahead_run(values: np.ndarray, size: int, epsilon: float, rng: np.random.Generator) -> Ahead:
    """AHEAD with one cohort a round, each value in one of them."""
    state = ahead(size)
    shuffled = rng.permutation(values)
    for cohort in np.array_split(shuffled, state.rounds):
        nodes = np.searchsorted(state.frontier, cohort, side="right") - 1
        items = np.bincount(nodes, minlength=len(state.frontier) - 1)
        state = state.grown(oue_supports(items, epsilon, rng))
    return state
