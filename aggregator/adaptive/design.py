"""The next survey's range: the one that is expected to leave least doubt about θ.

A range may start above low: its lowest bucket then holds "at or below". What a survey of m reports
would tell about ln θ is predicted from the posterior's draws: the part of the variance of each
draw's best ln(θ − low) that a linear estimate from the survey's expected counts, with their
multinomial noise, would explain. No constant but the ranges looked at: powers of two.
Source: Bayesian linear (c-optimal) design, derived here; METHODS §3 (2.2·θ, the rule it replaces).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from aggregator.adaptive.likelihood import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from aggregator.adaptive.posterior import Posterior
    from aggregator.adaptive.regret import Costs
    from edge_ldp import Mechanism

    Floats = NDArray[np.float64]

STARTS = (0, 8, 4, 2)  # a range starts at low, or at an eighth, a quarter, half of its top
GROUPS = 16  # of codes: fewer than draws, or the prediction would flatter itself
_NARROWEST = 4
_LOWEST = 0.1  # no top below this quantile of the best θ: it would not see the tail


class Design(NamedTuple):
    """A survey's range, and the share of the variance of ln θ that it is expected to leave."""

    low: int
    high: int
    left: float


def next_survey(
    posterior: Posterior,
    costs: Costs,
    make: Callable[[int, int], Mechanism],
    reports: float,
    *,
    from_low: bool = False,
) -> Design:
    """Return the most telling range for a survey of `reports` reports by `make(low, high)`.

    `from_low`: only of those that start at low. Cost: some 30 ranges, 10 ms once their likelihoods
    are known.
    """
    low, high = int(posterior.edges[0]), int(posterior.edges[-1]) - 1
    draws = posterior.explored
    best = costs.best(draws)
    unknown = np.log(best - low)
    unknown -= unknown.mean()
    designs = [Design(low, high, 1.0)]
    least = float(np.quantile(best, _LOWEST)) - low
    for start, top in _ranges(high - low, least):
        if from_low and start:
            continue
        mechanism = make(low + start, low + top)
        law = rows_of(mechanism, posterior.edges, GROUPS).matrix @ draws
        designs.append(Design(low + start, low + top, _left(law, unknown, reports)))
    return min(designs, key=lambda design: design.left)


def _ranges(span: int, least: float) -> Iterator[tuple[int, int]]:
    top = _NARROWEST
    while True:
        top = min(top, span)
        if top >= min(least, span):
            for part in STARTS:
                start = top // part if part else 0
                if top - start >= min(_NARROWEST, span):
                    yield start, top
        if top >= span:
            return
        top *= 2


def _left(law: Floats, unknown: Floats, reports: float) -> float:
    """Return the share of the variance of `unknown` left by counts with these laws (columns)."""
    variance = float(unknown @ unknown) / len(unknown)
    mean = law.mean(axis=1)
    seen = mean > 0
    signal = (law[seen] - mean[seen, None]) / np.sqrt(mean[seen, None] / reports)
    covariance = signal @ signal.T / len(unknown) + np.eye(int(seen.sum()))
    shared = signal @ unknown / len(unknown)
    explained = float(shared @ np.linalg.solve(covariance, shared))
    return 1 - explained / variance if variance > 0 else 1.0
