"""The truncation correction together with θ: add back what truncation takes off, where known.

Corrected by b̂(θ), the posterior mean of the truncation bias, a sum keeps the bias's variance under
the posterior instead of its square: b̂ is shrunk by the posterior itself, so no further weight is
needed. A lower θ then costs less where the tail is known, and the same as before where it is not.
Sources: METHODS §3 (truncation correction, θ and weight chosen together), DESIGN §7; measured:
docs/adaptive-theta.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from aggregator.adaptive.regret import costs_on
from aggregator.errors import ArgumentError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from aggregator.adaptive.decide import Setting, State
    from aggregator.adaptive.regret import Aim, Costs

    Floats = NDArray[np.float64]


class Corrected(NamedTuple):
    """θ for corrected sums, the correction and what it gains.

    `bias`: what to add to each value's mean, and `sd` its standard deviation under the posterior,
    in the stream's unit; `cost`, `plain`: expected squared error of a range sum, unit², with the
    correction at `theta`, and without at the θ that is then best.
    """

    theta: int
    bias: float
    sd: float
    cost: float
    plain: float


def corrected(setting: Setting, state: State) -> Corrected:
    """Return θ and correction of least expected cost; raises ArgumentError before any reports."""
    costs, with_it, without = _expected(setting.aim, state)
    at = int(with_it.argmin())
    bias = costs.cut[at] @ _samples(state)
    return Corrected(
        theta=int(costs.thetas[at]),
        bias=float(bias.mean()),
        sd=float(np.std(bias)),
        cost=float(with_it[at]),
        plain=float(without.min()),
    )


def corrected_gain(state: State, old: tuple[Aim, int], new: tuple[Aim, int]) -> float:
    """Return ln(expected cost of `old` / that of `new`), both aim and θ, sums corrected.

    Raises ArgumentError before any reports.
    """
    logs = []
    for aim, theta in (old, new):
        costs, with_it, _ = _expected(aim, state)
        logs.append(float(np.interp(theta, costs.thetas, np.log(with_it))))
    return logs[0] - logs[1]


def _expected(aim: Aim, state: State) -> tuple[Costs, Floats, Floats]:
    """Return the costs, and what each θ is expected to cost with the correction and without."""
    samples = _samples(state)
    assert state.posterior is not None  # noqa: S101 (it has samples)
    costs = costs_on(state.posterior.edges, aim)
    noise, bias = costs.scatter(samples).mean(axis=1), costs.cut @ samples
    with_it: Floats = noise + costs.weights[1] * bias.var(axis=1)
    without: Floats = noise + costs.weights[1] * (bias**2).mean(axis=1)
    return costs, with_it, without


def _samples(state: State) -> Floats:
    if state.posterior is None:
        raise ArgumentError("state", "one that has seen reports")
    return state.posterior.samples
