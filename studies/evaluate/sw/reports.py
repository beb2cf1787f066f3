"""Reports of categorical oracles, drawn by the product's own clients, counted into supports.

OUE's supports are drawn from their law instead: its bits are independent, so an item's count is a
sum of two binomials, exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.estimate.pure import olh_counts, supports
from edge_ldp.oracles import Grr, HaarHrr, Hierarchy, Olh, Oue
from edge_ldp.vectorized import perturb_oracle_many

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edge_ldp.estimate.pure import Supports

    Ints = NDArray[np.int64]


def categorical(items: Ints, size: int, epsilon: float, rng: np.random.Generator) -> Supports:
    """Return supports by GRR or OLH, whichever has the smaller variance ([SW] §2.1)."""
    oracle = Hierarchy(epsilon=epsilon, size=size, fanout=size).levels[0]
    return _counted(oracle, perturb_oracle_many(oracle, items, entropy=rng.bytes))


def tree(items: Ints, size: int, epsilon: float, rng: np.random.Generator) -> list[Supports]:
    """Return the supports of each level of a 4-ary tree, each device on one level ([SW] §4.2)."""
    oracle = Hierarchy(epsilon=epsilon, size=size)
    made = perturb_oracle_many(oracle, items, entropy=rng.bytes)
    return [
        _counted(level, made[made[:, 0] == at, 1 : 1 + level.report_length])
        for at, level in enumerate(oracle.levels)
    ]


def haar(
    items: Ints, size: int, epsilon: float, rng: np.random.Generator
) -> tuple[list[Ints], float]:
    """Return HaarHRR's counts of (row, bit) on each level, and the own bit's probability."""
    oracle = HaarHrr(epsilon=epsilon, size=size)
    level, row, bit = perturb_oracle_many(oracle, items, entropy=rng.bytes).T
    counts = [
        np.bincount(2 * row[level == at] + bit[level == at], minlength=2 * nodes).reshape(-1, 2)
        for at, nodes in enumerate(oracle.nodes)
    ]
    ratio = float(oracle.max_ratio)
    return counts, ratio / (ratio + 1)


def unary(items: Ints, size: int, epsilon: float, rng: np.random.Generator) -> Supports:
    """Return OUE's supports of `size` items from their exact law."""
    oracle = Oue(epsilon=epsilon, size=size)
    own, other = float(oracle.own), float(oracle.other)
    held = np.bincount(items, minlength=size)
    counts = rng.binomial(held, own) + rng.binomial(len(items) - held, other)
    return supports(counts, len(items), own=own, other=other)


def _counted(oracle: Grr | Olh, reports: NDArray[np.generic]) -> Supports:
    if isinstance(oracle, Grr):
        counts = np.bincount(reports[:, 0].astype(np.int64), minlength=oracle.size)
    else:
        counts = olh_counts(reports, oracle.size, oracle.client.channel.d)
    return supports(counts, len(reports), own=oracle.own, other=oracle.other)
