"""What no rule can do for every law: a good median and a rare bad run, asked for together.

Take a law and a rival of it, such that no θ is both good for the one and bearable for the other
(good: a cost of at most so many times the least; bearable: of at most so many, more or less).
Whoever looks at the reports and then chooses a good θ for the law, has chosen unbearably for the
rival. A rule that does so in at most a share `rare` of its runs on the rival therefore is a test of
the rival at that level, and its share of good runs on the law is at most that test's power: Neyman
and Pearson's lemma. So what is asked for on all laws can be out of reach on each of them.

The affinity ρⁿ of the two laws' reports (`rivals`) is at most that of the rule's two answers:
ρⁿ ≤ √(αβ) + √((1−α)(1−β)), α = rare, β the share of good runs; so β ≤ sin²(asin √α + acos ρⁿ).
`sure` is that: a proof for every rule, whatever surveys it asks one after the other, for laws that
are even within the cells. `likely` takes the log-likelihood ratio as normal: Φ(d + Φ⁻¹(α)) with
d² = −8n·ln ρ, what the best test of the two laws reaches with many reports.
Sources: Neyman and Pearson 1933 [recalled]; derived here; measured: docs/adaptive-theta.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from aggregator.adaptive.nearest import FINE, LESS, MORE, REACHES, Nearest
from aggregator.adaptive.rivals import Law, affinity
from aggregator.errors import ArgumentError

if TYPE_CHECKING:
    from aggregator.adaptive.rivals import Ground


class Dilemma(NamedTuple):
    """The most of its runs in which a rule can be good on a law, and seldom unbearable on `rival`.

    `sure`, `likely`: that share, 0..1; see the module. `apart`: d, by how many standard deviations
    the reports tell the two apart. Where no rival was found: 1, 1, ∞, and the law itself.
    """

    sure: float
    likely: float
    apart: float
    rival: Law


def none_of(runs: int) -> float:
    """Return how rare a bad run must be, so that an even chance is that none of `runs` is one."""
    return float(-np.expm1(np.log(0.5) / runs))


def dilemma(ground: Ground, reports: float, good: float, bearable: float, rare: float) -> Dilemma:
    """Return the hardest dilemma found around a law, after so many reports in all.

    `good`, `bearable`: factors of the least cost, on the law and on its rival; `rare`: the most of
    the runs on the rival that may cost more than is bearable. Cost: 0.5 s. Raises ArgumentError.
    """
    if not (good > 1 and bearable > 1):
        raise ArgumentError("good", "above 1, as bearable")
    if not 0 < rare < 1:
        raise ArgumentError("rare", "a share between 0 and 1")
    taken = ground.costs.good(ground.masses, good)
    hardest = Dilemma(1.0, 1.0, np.inf, Law(ground.masses, "itself", 0, 0.0))
    for reach in REACHES:
        for side in (MORE, LESS):
            around = Nearest(ground.costs, ground.rows, ground.masses, FINE)
            found = around.rival(taken, bearable, side, reach)
            if not np.isfinite(found.told):
                continue
            least = affinity(ground.rows, np.stack([ground.masses, found.masses], axis=1))[0, 1]
            rival = Law.beside(ground.masses, found, side)
            new = Dilemma(*power(reports * float(np.log(least)), rare), rival)
            hardest = min(hardest, new, key=lambda one: one.apart)
    return hardest


def power(log_affinity: float, level: float) -> tuple[float, float, float]:
    """Return the power of the best test of two laws at a level: at most, and about; and d."""
    log = min(0.0, log_affinity)
    angle = np.arcsin(np.sqrt(level)) + np.arccos(np.exp(log))
    apart = float(np.sqrt(-8 * log))
    return (
        float(np.sin(min(np.pi / 2, angle)) ** 2),
        float(ndtr(apart + ndtri(level))),
        apart,
    )
