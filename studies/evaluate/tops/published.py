"""The authors' published code, as it behaves: to compare with, never to release anything by.

Float noise from NumPy's generator is not differentially private (gaps between doubles tell
inputs apart), and h is 6 where the tree has 5 levels. Source: the published code (dp-cont) at
commit 7a1e85a, `nm_mse`, `hierarchy`, `smooth_hierarchy`, as read in our notes of its behaviour.
"""

from __future__ import annotations

from math import log, sqrt
from typing import TYPE_CHECKING

import numpy as np

from studies.evaluate.tops.release import before

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Floats = NDArray[np.float64]

FANOUT = 16
TUNING = 60


def height(chunk: int, fanout: int = FANOUT) -> int:
    """Return ⌈log_b r⌉."""
    levels = 1
    while fanout**levels < chunk:
        levels += 1
    return levels


def published_noisy_max(
    readings: Integers, ceiling: int, epsilon: float, chunk: int, rng: np.random.Generator
) -> int:
    """Return NM-E's θ in 0..ceiling: its score with one level too many, plus Lap(1/ε)."""
    counts = np.bincount(np.minimum(readings, ceiling), minlength=ceiling + 1)
    above = len(readings) - np.cumsum(counts)
    h = height(chunk) + 1
    slope = 3 * len(readings) / (TUNING * chunk * epsilon) * sqrt(2 * (FANOUT - 1) * h**3)
    scores = -slope * np.arange(ceiling + 1) - above
    return int(np.argmax(scores + rng.laplace(0, 1 / epsilon, ceiling + 1)))


def pruning(chunk: int, epsilon: float) -> int:
    """Return s as the code finds it: eq 7 minimised over real s, and only then rounded.

    (b-1)(h-s)³·2/ε² + 16^(2s)/36 by bisection of its derivative, which rises where s < h. Where r
    is no power of 16, the next smaller s whose blocks divide it.
    """
    h = height(chunk)
    low, high = 0.0, float(h - 1)
    for _ in range(60):
        s = (low + high) / 2
        slope = log(FANOUT) * FANOUT ** (2 * s) / 18 - 6 * (FANOUT - 1) * (h - s) ** 2 / epsilon**2
        low, high = (s, high) if slope < 0 else (low, s)
    best = round((low + high) / 2)
    return next(s for s in range(best, -1, -1) if chunk % FANOUT**s == 0)


def consistent_sums(
    stream: Integers, pairs: Integers, theta: int, epsilon: float, rng: np.random.Generator
) -> Floats:
    """Return the released range sums of Ĥ16c with the Recent smoother, in floats."""
    s = pruning(len(stream), epsilon)
    block = FANOUT**s
    levels = height(len(stream)) - s
    sums = before(np.minimum(stream, theta))
    blocks = np.diff(sums[::block]) + _consistent(len(stream) // block, levels, theta, epsilon, rng)
    total = np.concatenate([[0.0], np.cumsum(blocks)])
    recent = np.concatenate([[block * theta / 2], blocks])  # the block before each
    whole, rest = np.divmod(pairs, block)
    ends = total[whole] + rest / block * recent[whole]
    return np.asarray(ends[:, 1] - ends[:, 0])


def binary_sums(
    stream: Integers, pairs: Integers, theta: int, epsilon: float, rng: np.random.Generator
) -> Floats:
    """Return the range sums of H2 by walking its noisy nodes, in floats."""
    levels = height(len(stream), 2)
    scale = theta * levels / epsilon
    sums = before(np.minimum(stream, theta))
    found = (sums[pairs[:, 1]] - sums[pairs[:, 0]]).astype(np.float64)
    first, end = pairs[:, 0].copy(), pairs[:, 1].copy()
    for level in range(levels):
        noise = rng.laplace(0, scale, -(-len(stream) // 2**level))
        is_top = level == levels - 1
        for at in np.flatnonzero((first < end) & ((first % 2 == 1) | is_top)).tolist():
            found[at] += noise[int(first[at])]
            first[at] += 1
        for at in np.flatnonzero((first < end) & ((end % 2 == 1) | is_top)).tolist():
            end[at] -= 1
            found[at] += noise[int(end[at])]
        first //= 2
        end //= 2
    return found


def _consistent(
    blocks: int, levels: int, theta: int, epsilon: float, rng: np.random.Generator
) -> Floats:
    """Return consistent noise of the leaves: eqs 10 and 11 in floats."""
    b = FANOUT
    scale = theta * levels / epsilon
    size = b ** (levels - 1)
    tops = -(-blocks // size)
    tree = [rng.laplace(0, scale, tops * size // b**level) for level in range(levels)]
    for at in range(1, levels):
        upper, lower = b ** (at + 1) - 1, b**at - 1
        below = tree[at - 1].reshape(-1, b).sum(axis=1)
        tree[at] = (upper - lower) / upper * tree[at] + lower / upper * below
    for at in range(levels - 2, -1, -1):
        own = tree[at].reshape(-1, b)
        tree[at] = (own + (tree[at + 1] - own.sum(axis=1))[:, None] / b).ravel()
    return np.asarray(tree[0][:blocks])
