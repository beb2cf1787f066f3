"""EM and EMS: the density under randomised codes, by (smoothed) maximum likelihood.

Both start from the uniform density and stop early by a rule that is part of the estimator: the
exact maximum of the likelihood is a worse estimate than an early stop (docs/methods.md, Densities).
Sources: [SW] §5.5 (EM, EMS); docs/methods.md, Decided readings (stopping rules, smoothing at the
ends).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.device.errors import ParameterError
from edge_ldp.errors import CountsError, NoReportsError
from edge_ldp.estimate.iterations import STRENGTH, Problem, climb, leap
from edge_ldp.estimate.model import model_of
from edge_ldp.estimate.pure import MAX_REPORTS

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from edge_ldp.estimate.density import Density
    from edge_ldp.estimate.model import Model, Modelled
    from edge_ldp.estimate.operator import Operator

    Floats = NDArray[np.float64]

TOLERANCE = 1e-3  # τ of EMS, absolute change of the log-likelihood; EM's is τ·e^ε
FIXED_POINT = 1e-6  # accelerated EMS: how far an iteration may still move mass in all
MAX_ITERATIONS = 10_000
MAX_STRENGTH = 100
NOTHING = 1e-30  # reports in all: below, likelihoods underflow


def em(
    mechanism: Modelled,
    counts: ArrayLike,
    *,
    tolerance: float | None = None,
    max_iterations: int = MAX_ITERATIONS,
) -> Density:
    """Return the EM estimate of the density of the values behind `counts` (reports per code).

    Shape: counts has mechanism.code_count entries. Stops when an iteration changes the
    log-likelihood by less than `tolerance` (10⁻³·e^ε unless given) or at the cap; same counts,
    same result. One report is enough; a density from reports of one code, or from the cap, carries
    a warning. Cost: O(size) an iteration, typically 1,000 to 2,000 of them. Raises CountsError
    (damaged counts), NoReportsError, ParameterError.
    """
    model = model_of(mechanism)
    if tolerance is None:
        tolerance = TOLERANCE * model.max_ratio
    problem = _problem(model, counts, 0.0)
    return climb(problem, *_checked(tolerance, max_iterations))


def ems(  # noqa: PLR0913 (keywords)
    mechanism: Modelled,
    counts: ArrayLike,
    *,
    tolerance: float | None = None,
    max_iterations: int = MAX_ITERATIONS,
    accelerate: bool = False,
    early: bool = False,
    strength: float = STRENGTH,
) -> Density:
    """Return the EMS estimate: EM with a smoothing step (¼, ½, ¼) after each iteration.

    As `em` in all else; tolerance is 10⁻³ unless given. `accelerate` returns the fixed point of
    the smoothed iteration, to `tolerance` (10⁻⁶) in the mass that one iteration would still move,
    by squared extrapolation: about a third of the work, and no early stop. With `early` too, the
    leaps stop by the plain rule, near where the plain iteration does: an eighth to a tenth of its
    work. `strength` l, 0 to 100, makes the step (l/2, 1 − l, l/2), in several passes above ½ (see
    `smooth`); `held_out` chooses it.
    """
    if not 0 <= strength <= MAX_STRENGTH:
        raise ParameterError("strength", f"0..{MAX_STRENGTH}")
    problem = _problem(model_of(mechanism), counts, strength)
    if tolerance is None:
        tolerance = FIXED_POINT if accelerate and not early else TOLERANCE
    limits = _checked(tolerance, max_iterations)
    return leap(problem, *limits, early=early) if accelerate else climb(problem, *limits)


def checked_counts(operator: Operator, counts: ArrayLike) -> Floats:
    """Return counts as floats; raises CountsError, or NoReportsError when all are 0.

    Expected and filtered counts need not be whole, but less than 10⁻³⁰ in all is nothing. More than
    2^53 are refused: floats would no longer count them; truth values are a mask and no counts.
    """
    try:
        given = np.asarray(counts)
        if given.dtype.kind not in "iufO":  # O: integers too large for NumPy's
            raise CountsError("not numbers")
        n = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as exc:
        raise CountsError("not numbers") from exc
    if n.shape != (operator.codes,):
        raise CountsError(f"not {operator.codes} of them, one a code")
    if not np.isfinite(n).all():
        raise CountsError("not finite")
    if n.min() < 0:
        raise CountsError("negative")
    if n[~operator.possible].any():
        raise CountsError("reports of a code that has probability 0")
    if n.sum() < NOTHING:
        raise NoReportsError
    if n.sum() > MAX_REPORTS:
        raise CountsError("more than 2**53 reports")
    return n


def _problem(model: Model, counts: ArrayLike, strength: float) -> Problem:
    n = checked_counts(model.operator, counts)
    return Problem(model, model.operator.unscaled(), n, float(n.sum()), strength)


def _checked(tolerance: float, max_iterations: int) -> tuple[float, int]:
    if not tolerance >= 0 or max_iterations < 1:
        raise ParameterError("tolerance, max_iterations", "tolerance >= 0, max_iterations >= 1")
    return tolerance, max_iterations
