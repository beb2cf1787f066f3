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
    from aggregator.adaptive.decide import Setting, State


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
    if state.posterior is None:
        raise ArgumentError("state", "one that has seen reports")
    costs = costs_on(state.posterior.edges, setting.aim)
    samples = state.posterior.samples
    noise, bias = costs.scatter(samples).mean(axis=1), costs.cut @ samples
    with_it = noise + costs.weights[1] * bias.var(axis=1)
    without = noise + costs.weights[1] * (bias**2).mean(axis=1)
    at = int(with_it.argmin())
    return Corrected(
        theta=int(costs.thetas[at]),
        bias=float(bias[at].mean()),
        sd=float(np.std(bias[at])),
        cost=float(with_it[at]),
        plain=float(without.min()),
    )
