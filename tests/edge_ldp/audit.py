"""A statistical audit: how much ε a mechanism spends at least, judged by its reports alone.

Two extreme values are reported many times. The first half of the reports picks the codes that tell
them apart best; on the second half, Clopper–Pearson bounds of both probabilities give a lower bound
of ε that is wrong with probability `ALPHA` at most. A sound mechanism stays below its ε.
"""

from collections import Counter
from collections.abc import Callable
from math import inf, log

import scipy

ALPHA = 1e-6  # chance that one audit accuses a sound mechanism
Perturb = Callable[[int], int]


def epsilon_at_least(perturb: Perturb, values: tuple[int, int], count: int) -> float:
    """Return a lower bound of the ε spent, from `count` reports of each of two values."""
    halves = [[Counter(map(perturb, [v] * (count // 2))) for v in values] for _ in range(2)]
    codes = telling_codes(*halves[0])
    for_one, for_other = (sum(found[code] for code in codes) for found in halves[1])
    return bound(for_one, for_other, count // 2)


def telling_codes(one: Counter[int], other: Counter[int]) -> set[int]:
    """Return the set of codes, likelier under `one`, that separates the two best."""
    ranked = sorted(one, key=lambda code: (one[code] + 1) / (other[code] + 1), reverse=True)
    n = one.total()
    best, chosen = -inf, 1
    seen = [0, 0]
    for at, code in enumerate(ranked, 1):
        seen = [seen[0] + one[code], seen[1] + other[code]]
        if (found := bound(seen[0], seen[1], n)) > best:
            best, chosen = found, at
    return set(ranked[:chosen])


def bound(hits: int, other_hits: int, n: int) -> float:
    """Return ln(lower bound of one probability / upper bound of the other)."""
    quantile = scipy.special.betaincinv
    low = quantile(hits, n - hits + 1, ALPHA / 2) if hits else 0.0
    high = quantile(other_hits + 1, n - other_hits, 1 - ALPHA / 2) if other_hits < n else 1.0
    return log(low / high) if low > 0 else -inf
