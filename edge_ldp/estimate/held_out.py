"""EMS with its smoothing chosen by the likelihood of reports that were held out.

The papers' kernel (¼, ½, ¼) blurs peaks and leaves wide, smooth densities noisy. Half of the
reports choose: for each strength, how likely are they under the other half's estimate, and the
other way round. Another strength than the papers' is taken only if it is better by more than 1.65
standard errors of that comparison (one case in twenty by chance): without this, weak data lose by
an unlucky choice what they gain by a lucky one. From the papers' strength outwards, none is tried
beyond one that is as clearly worse. The best is fitted to all, by the same leaps (`ems`,
`accelerate` and `early`) as it was judged by. Source: docs/methods.md, Densities.

`auto` says what that calls for. EMS with the papers' smoothing is the rule; held-out reports may
ask for another strength; and where they clearly bear hardly any, mass sits on few values, and
AHEAD's growing tree beats every smoother. That holds for surveys still to come, as devices must
report otherwise. How clearly the held-out reports speak decides; measured: docs/results/bands.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from edge_ldp.arrays import Floats, Ints
from edge_ldp.checks import GENERATOR, MODELLED, each, finite, integer_in, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.estimate.density import Density
from edge_ldp.estimate.em import MAX_STRENGTH, STRENGTH, checked_counts, ems
from edge_ldp.estimate.operator import Model, Modelled, model_of
from edge_ldp.estimate.pure import integer_counts
from edge_ldp.gateway.ems import MAX_ITERATIONS

STRENGTHS = (0.0, 0.01, 0.03, 0.1, 0.25, STRENGTH, 1.0, 2.0, 4.0, 8.0)
CLEARLY = 1.65  # standard errors
PEAKED = 0.03  # at most this strength,
VERY_CLEARLY = 4.0  # and by so many standard errors: survey by AHEAD


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """The estimate, the strength it was made with, and what spoke for it.

    `gains`: for each of `strengths` the log-likelihood of the held-out reports above that of the
    usual strength, natural log, both halves together; `errors`: its standard errors. A strength
    that was not tried, beyond one that is clearly worse, has gain −∞ and error 0.
    """

    density: Density
    strength: float
    strengths: tuple[float, ...]
    gains: tuple[float, ...]
    errors: tuple[float, ...]


@taking(
    mechanism=MODELLED,
    rng=GENERATOR,
    strengths=each(finite(0, MAX_STRENGTH)),
    max_iterations=integer_in(least=1),
)
def held_out(
    mechanism: Modelled,
    counts: ArrayLike,
    *,
    rng: "np.random.Generator",
    strengths: Sequence[float] = STRENGTHS,
    max_iterations: int = MAX_ITERATIONS,
) -> HeldOut:
    """Return the EMS estimate of the strength under which held-out reports are likeliest.

    Each report falls in either half with probability ½, by `rng` (sampling noise, never privacy
    noise; same state, same result). The usual strength is the one nearest to the papers' ½; one
    report cannot be halved and gets it. Strength 0 is EM with EMS's stopping rule. Cost:
    about twice that of `ems`. Raises CountsError (counts that are not whole, too),
    NoReportsError, ParameterError.
    """
    if not strengths:
        raise ParameterError("strengths", "at least one")
    model = model_of(mechanism)
    whole = integer_counts(checked_counts(model.operator, counts))
    half = rng.binomial(whole, 0.5)
    halves = (half, whole - half), (whole - half, half)
    usual = int(np.argmin(np.abs(np.array(strengths) - STRENGTH)))
    gains, errors = np.zeros((2, len(strengths)))
    if all(asked.any() for _, asked in halves):
        gains, errors = _compared(model, halves, strengths, usual, max_iterations)
    clear = gains > CLEARLY * errors  # never the usual one: its gain and error are 0
    best = int(np.argmax(np.where(clear, gains, 0))) if clear.any() else usual
    found = _fitted(model, whole, strengths[best], max_iterations)
    told = tuple(gains.tolist()), tuple(errors.tolist())
    return HeldOut(found, strengths[best], tuple(strengths), *told)


def _compared(
    model: Model,
    halves: Sequence[tuple[Ints, Ints]],
    strengths: Sequence[float],
    usual: int,
    iterations: int,
) -> tuple[Floats, Floats]:
    """Return gains and errors as HeldOut has them; `halves`: counts to fit and counts to ask."""
    gains, errors = np.full(len(strengths), -np.inf), np.zeros(len(strengths))
    gains[usual] = 0
    plain = [_log_law(model, fitted, strengths[usual], iterations) for fitted, _ in halves]
    order = sorted(range(len(strengths)), key=strengths.__getitem__)
    place = order.index(usual)
    for outward in (order[place + 1 :], order[:place][::-1]):
        for at in outward:
            gain = square = 0.0
            for (fitted, asked), log_law in zip(halves, plain, strict=True):
                apart = _log_law(model, fitted, strengths[at], iterations) - log_law
                gained = float(apart @ asked)
                gain += gained
                square += float(apart**2 @ asked) - gained**2 / float(asked.sum())
            gains[at], errors[at] = gain, max(square, 0.0) ** 0.5
            if gain < -CLEARLY * errors[at]:
                break
    return gains, errors


def _log_law(model: Model, counts: Ints, strength: float, iterations: int) -> Floats:
    """Return the log-probability of each code under a strength's estimate."""
    found = _fitted(model, counts, strength, iterations)
    law = model.operator.apply(found.probabilities)
    return np.asarray(np.log(np.where(model.operator.possible, law, 1.0)))


def _fitted(model: Model, counts: Ints, strength: float, iterations: int) -> Density:
    return ems(
        model, counts, strength=strength, max_iterations=iterations, accelerate=True, early=True
    )


@dataclass(frozen=True, slots=True, eq=False)
class EstimatorChoice:
    """What to use, and why.

    `density`: the estimate from the reports at hand, by EMS of `strength`. `method`: "ems" (the
    papers' strength), "tuned" (another one), or "ahead" (another one, and survey by AHEAD next).
    """

    method: Literal["ems", "tuned", "ahead"]
    density: Density
    strength: float
    reason: str


@taking(mechanism=MODELLED, rng=GENERATOR)
def auto(mechanism: Modelled, counts: ArrayLike, *, rng: "np.random.Generator") -> EstimatorChoice:
    """Return the choice for counts of a survey's codes; arguments, cost and errors of `held_out`.

    `rng` halves the reports, and is never privacy noise; same state, same choice.
    """
    tuned = held_out(mechanism, counts, rng=rng)
    if tuned.strength == STRENGTH:
        reason = "no other smoothing makes held-out reports clearly likelier than the papers'"
        return EstimatorChoice("ems", tuned.density, STRENGTH, reason)
    at = tuned.strengths.index(tuned.strength)
    gain, error = tuned.gains[at], tuned.errors[at]
    reason = (
        f"smoothing {tuned.strength:g} instead of {STRENGTH:g} makes held-out reports likelier by "
        f"{gain:.1f} ± {error:.1f} in the logarithm"
    )
    if tuned.strength <= PEAKED and gain > VERY_CLEARLY * error:
        reason += ": mass on few values, so survey by AHEAD next"
        return EstimatorChoice("ahead", tuned.density, tuned.strength, reason)
    return EstimatorChoice("tuned", tuned.density, tuned.strength, reason)
