"""The chooser: which estimator a stream's density calls for, with the reason in words.

Three are on offer. EMS with the papers' smoothing is the rule; held-out reports may ask for another
strength; and where they clearly bear hardly any, mass sits on few values, and AHEAD's growing tree
beats every smoother. That holds for surveys still to come, as devices must report otherwise.

How clearly the held-out reports speak decides; measured: docs/results/bands.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from edge_ldp.checks import GENERATOR, MODELLED, taking
from edge_ldp.estimate.em import STRENGTH
from edge_ldp.estimate.held_out import HeldOut, held_out

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

    from edge_ldp.estimate.density import Density
    from edge_ldp.estimate.operator import Modelled

PEAKED = 0.03  # at most this strength,
CLEARLY = 4.0  # and by so many standard errors: survey by AHEAD


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
def auto(mechanism: Modelled, counts: ArrayLike, *, rng: np.random.Generator) -> EstimatorChoice:
    """Return the choice for counts of a survey's codes; arguments, cost and errors of `held_out`.

    `rng` halves the reports, and is never privacy noise; same state, same choice.
    """
    tuned = held_out(mechanism, counts, rng=rng)
    if tuned.strength == STRENGTH:
        reason = "no other smoothing makes held-out reports clearly likelier than the papers'"
        return EstimatorChoice("ems", tuned.density, STRENGTH, reason)
    gain, error = _spoken(tuned)
    reason = (
        f"smoothing {tuned.strength:g} instead of {STRENGTH:g} makes held-out reports likelier by "
        f"{gain:.1f} ± {error:.1f} in the logarithm"
    )
    if tuned.strength <= PEAKED and gain > CLEARLY * error:
        reason += ": mass on few values, so survey by AHEAD next"
        return EstimatorChoice("ahead", tuned.density, tuned.strength, reason)
    return EstimatorChoice("tuned", tuned.density, tuned.strength, reason)


def _spoken(tuned: HeldOut) -> tuple[float, float]:
    at = tuned.strengths.index(tuned.strength)
    return tuned.gains[at], tuned.errors[at]
