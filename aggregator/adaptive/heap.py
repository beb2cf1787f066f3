"""A heap at the ceiling: what lies beyond it is clamped to it, and so is what a broken meter says.

A few readings in a thousand at the very end of the range decide over θ, and no density that goes on
as it began foretells them. So draws are shared between the hypotheses as they are and the same with
the ceiling as a cell of its own, of free mass. As reports tell little of so few readings, a heap of
the usual mass has to stand out and to be likely: else there is none, or noise and humps would be
heaps wherever reports are few or ε is low.
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

BELIEF = 0.2  # that there is one, before any report
USUAL, SPREAD = 0.004, 1.0  # median of its mass, standard deviation of the mass's logarithm
STANDS_OUT = 1.5  # of the usual mass's standard deviations, by all reports, that it must be
LIKELY = 0.25  # least probability of a heap that draws have
MOST = 12  # hypotheses with a heap
_MASSES = USUAL * np.exp(SPREAD * ndtri((np.arange(64) + 0.5) / 64))


class Heap(NamedTuple):
    """The probability that readings heap up at the ceiling, and fits with a cell for them."""

    probability: float
    fits: list[Fit]


def heap_in(evidence: Sequence[Evidence], fits: Sequence[Fit]) -> Heap | None:
    """Return the heap at the ceiling that the reports allow and can tell, if any.

    `fits`: of those reports, all over the same cells, the likeliest first. Cost: 5 ms if there is
    none, some 50 ms if there is.
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
    plain = np.array([found.evidence for found in fits])
    heaped = plain + [_gain(found, column) for found in fits]
    probability = float(expit(logsumexp(heaped) - logsumexp(plain) + logit(BELIEF)))
    if probability < LIKELY:
        return None
    prior = priors.cut(edges, ceiling, log(USUAL), SPREAD)
    cells = np.searchsorted(priors.edges, edges[:-1], side="right") - 1
    found = list[Fit]()
    for which in np.argsort(-heaped)[:MOST]:
        old, psi = fits[which].target, fits[which].psi[cells]
        psi[-1] = log(USUAL)
        found.append(fit(Target(reports, prior, old.shape, old.price), psi))
    return Heap(probability, sorted(found, key=lambda each: -each.evidence))


def _gain(found: Fit, column: Floats) -> float:
    """Return what a heap adds to the evidence of a fit, its mass integrated out."""
    (pull,), (told,) = found.scores(column)
    return float(logsumexp(_MASSES * (pull - told * _MASSES / 2))) - log(len(_MASSES))
