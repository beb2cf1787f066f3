"""How far an estimated density would scatter if the same fleet reported again.

A parametric multinomial bootstrap: counts are drawn again from the law of the estimate, and the
estimator runs on each draw from its own start. Its spread is the estimator's standard error; its
mean minus the estimate shows the estimator's bias (a density cannot be negative, so noise pushes
tails up). Reuse the densities for as many functionals as you like: one draw, jointly distributed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from aggregator.errors import ArgumentError, NoReportsError
from aggregator.estimate.em import ems
from aggregator.estimate.model import model_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from aggregator.estimate.density import Density
    from aggregator.estimate.model import Modelled

MIN_RESAMPLES = 2


class Estimator(Protocol):
    """What turns the counts of a mechanism's codes into a density: `em`, `ems`, a partial."""

    def __call__(self, mechanism: Modelled, counts: ArrayLike, /) -> Density:
        """Return the estimate."""
        ...


def _fixed_point(mechanism: Modelled, counts: ArrayLike, /) -> Density:
    return ems(mechanism, counts, accelerate=True)


def resample(
    mechanism: Modelled,
    estimate: Density,
    *,
    rng: np.random.Generator,
    resamples: int = 32,
    estimator: Estimator = _fixed_point,
) -> tuple[Density, ...]:
    """Return `resamples` densities, each estimated from `estimate.n` reports drawn from `estimate`.

    Use the estimator that gave `estimate` (accelerated EMS unless given). `rng` draws sampling
    noise, never privacy noise; same state, same result. Cost: `resamples` estimates. Raises
    ArgumentError, NoReportsError.
    """
    model = model_of(mechanism)
    operator = model.operator
    if estimate.probabilities.shape != (operator.inputs,):
        raise ArgumentError("estimate", f"{operator.inputs} probabilities, one an input")
    if resamples < MIN_RESAMPLES:
        raise ArgumentError("resamples", f"at least {MIN_RESAMPLES}")
    if estimate.n < 1:
        raise NoReportsError
    law = np.maximum(operator.apply(estimate.probabilities), 0)
    drawn = rng.multinomial(estimate.n, law / law.sum(), size=resamples)
    return tuple(estimator(model, counts) for counts in drawn)
