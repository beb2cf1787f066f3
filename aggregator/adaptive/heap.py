"""A heap at the ceiling: what lies beyond it is clamped to it, and so is what a broken meter says.

A few readings in a thousand at the very end of the range decide over θ, and no density that goes on
as it began foretells them. So the hypotheses are fitted with the ceiling as a cell of its own too,
of free mass. Reports tell little of so few readings, and a θ for a heap that is none costs more
than anything else: where reports would not tell a heap of the usual mass there is none, one that is
likely is looked for by the next survey, and only of one that is sure θ takes notice.
What a heap would add to the evidence of a fit is guessed from the likelihood's slope and curvature,
and looked up where that matters: where the rest of a density would have to follow far, a guess may
promise e²⁰ too much.
Source: derived here; measured: docs/adaptive-theta.md.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit, logit, logsumexp, ndtri

from aggregator.adaptive.fit import Fit, Target, fit
from aggregator.adaptive.likelihood import reports_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from aggregator.estimate.joint import Evidence

    Floats = NDArray[np.float64]

BELIEF = 0.1  # that there is one, before any report
USUAL, SPREAD = 0.004, 1.0  # median of its mass, standard deviation of the mass's logarithm
STANDS_OUT = 1.5  # of the usual mass's standard deviations, by all reports, that it must be
LIKELY, SURE = 0.1, 0.7  # least probability of a heap that is looked for, and that is believed
NEGLIGIBLE = 4.0  # below the best evidence: a guess is good enough
_MASSES = USUAL * np.exp(SPREAD * ndtri((np.arange(64) + 0.5) / 64))


class Heap(NamedTuple):
    """The probability that readings heap up at the ceiling, and fits with a cell for them."""

    probability: float
    fits: list[Fit]

    def believed(self, chains: int) -> int:
        """Return how many of so many draws have it: none before it is sure."""
        return round(self.probability * chains) if self.probability >= SURE else 0

    def looked_for(self, chains: int) -> int:
        """Return how many draws with it to have beside so many without, where it is not sure."""
        if self.probability >= SURE:
            return 0
        return round(min(self.probability / (1 - self.probability), 1) * chains)


def heap_in(evidence: Sequence[Evidence], fits: Sequence[Fit]) -> Heap | None:
    """Return the heap at the ceiling that the reports allow and can tell, if any.

    `fits`: of those reports, all over the same cells, the likeliest first. Cost: 5 ms if there is
    none, some 0.1 s if there is.
    """
    priors = fits[0].target.priors
    ceiling = priors.edges[-1:] - 1
    if np.isin(ceiling, priors.atoms):
        return None
    edges = np.unique(np.append(priors.edges, ceiling))
    reports = reports_of(evidence, edges)
    column = reports.expected[:, -1:]
    if USUAL * float(fits[0].scores(column)[1][0]) ** 0.5 < STANDS_OUT:
        return None
    odds = logit(BELIEF) - logsumexp([found.evidence for found in fits])
    guesses = np.array([found.evidence + _gain(found, column) for found in fits])
    if expit(odds + logsumexp(guesses)) < LIKELY / 2:
        return None
    order, best = np.argsort(-guesses), -np.inf
    cells = np.searchsorted(priors.edges, edges[:-1], side="right") - 1
    prior, heaped = priors.cut(edges, ceiling, log(USUAL), SPREAD), list[Fit]()
    for which in order:
        if guesses[which] < best - NEGLIGIBLE:
            break
        old, psi = fits[which].target, fits[which].psi[cells]
        psi[-1] = log(USUAL)
        heaped.append(fit(Target(reports, prior, old.shape, old.price), psi))
        best = max(best, heaped[-1].evidence)
    known = [found.evidence for found in heaped]
    probability = float(expit(odds + logsumexp(np.append(known, guesses[order[len(heaped) :]]))))
    if probability < LIKELY:
        return None
    return Heap(probability, sorted(heaped, key=lambda each: -each.evidence))


def _gain(found: Fit, column: Floats) -> float:
    """Return about what a heap adds to the evidence of a fit, its mass integrated out."""
    (pull,), (told,) = found.scores(column)
    return float(logsumexp(_MASSES * (pull - told * _MASSES / 2))) - log(len(_MASSES))
