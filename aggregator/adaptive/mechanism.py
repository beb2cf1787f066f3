"""The mechanism of stream reports together with θ: by the variance expected, not the worst case.

A tuned table's variance depends on the value, the hybrid's does not; and a table can be made for
the density itself. So each candidate's variance over [−1, 1] is taken as a profile, expected under
every draw of the density for every θ, and (mechanism, θ) chosen as θ alone is: by least expected
square root of the regret, which is counted from the cheapest pair of all.
Sources: METHODS §2 (expected instead of worst-case variance), `regret`; measured:
docs/adaptive-theta.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from aggregator.adaptive.regret import Aim, costs_on
from aggregator.errors import ArgumentError
from aggregator.tuning import tune

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from aggregator.adaptive.decide import State
    from aggregator.adaptive.posterior import Posterior
    from edge_ldp import Mechanism, Tuned
    from edge_ldp.ratio import Epsilon

    Floats = NDArray[np.float64]

POINTS = 257  # of a profile: between the knots of a table the variance is a parabola
CELLS = 64  # equal ones of [low, θ], that a table is made for


class Choice(NamedTuple):
    """The candidate's name, its θ, and the expected ln(cost / least cost of any candidate)."""

    name: str
    theta: int
    regret: float


def aim_of(mechanism: Mechanism, horizon: int, inclusion: float = 1.0) -> Aim:
    """Return the aim of sums by this mechanism, for any θ: its variance by input, on [−1, 1].

    The mechanism's range must be at least 256 wide; scaled to another θ its profile is the same but
    for the lattice's rounding. Cost: 257 exact variances. Raises ArgumentError.
    """
    span = mechanism.high - mechanism.low
    if span < POINTS - 1:
        raise ArgumentError("mechanism", f"a range of at least {POINTS - 1}")
    values = mechanism.low + np.linspace(0, span, POINTS).round().astype(int)
    profile = tuple(mechanism.variance(int(v)) / (span / 2) ** 2 for v in values)
    return Aim(max(profile), horizon, inclusion, profile)


def choose_mechanism(state: State, candidates: Mapping[str, Aim]) -> Choice:
    """Return the candidate, and its θ, of least expected regret under the state's posterior.

    Raises ArgumentError before the first reports, or without candidates.
    """
    posterior = _posterior(state)
    if not candidates:
        raise ArgumentError("candidates", "at least one")
    costs = {name: costs_on(posterior.edges, aim) for name, aim in candidates.items()}
    priced = {name: cost.of(posterior.samples) for name, cost in costs.items()}
    least = np.min([prices.min(axis=0) for prices in priced.values()], axis=0)
    found = []
    for name, prices in priced.items():
        regrets = np.maximum(np.log(prices / least), 0)
        by_theta = np.sqrt(regrets).mean(axis=1)
        at = int(by_theta.argmin())
        choice = Choice(name, int(costs[name].thetas[at]), float(regrets[at].mean()))
        found.append((float(by_theta[at]), choice))
    return min(found, key=lambda pair: pair[0])[1]


def gain(state: State, old: tuple[Aim, int], new: tuple[Aim, int]) -> float:
    """Return the expected ln(cost of `old` / cost of `new`), both an aim and its θ.

    Raises ArgumentError before the first reports.
    """
    posterior = _posterior(state)
    logs = []
    for aim, theta in (old, new):
        costs = costs_on(posterior.edges, aim)
        mean = np.log(costs.of(posterior.samples)).mean(axis=1)
        logs.append(float(np.interp(theta, costs.thetas, mean)))
    return logs[0] - logs[1]


def tuned_for(
    state: State, theta: int, epsilon: Epsilon, *, bits: int = 4, even_share: float = 0.1
) -> Tuned:
    """Return the table of least variance expected under the state's density, for this θ.

    The density comes from reports alone, so it is public. Cost: seconds. Raises ArgumentError,
    TableError.
    """
    posterior = _posterior(state)
    low = int(posterior.edges[0])
    ends = np.linspace(low, theta, CELLS + 1)
    below = np.interp(ends, posterior.edges, np.append(0, np.cumsum(posterior.mean)))
    below[-1] = 1  # what lies above θ is reported as θ
    mass = np.maximum(np.diff(below), 0)
    return tune(
        epsilon=epsilon,
        low=low,
        high=theta,
        bits=bits,
        density=mass / mass.sum(),
        even_share=even_share,
    )


def _posterior(state: State) -> Posterior:
    if state.posterior is None:
        raise ArgumentError("state", "one that has seen reports")
    return state.posterior
