"""EM and EMS: the density under randomised codes, by (smoothed) maximum likelihood.

Both start from the uniform density and stop early by a rule that is part of the estimator: the
exact maximum of the likelihood is a worse estimate than an early stop (METHODS §3).
Sources: [SW] §5.5 (EM, EMS); METHODS §1 (stopping rules, smoothing at the ends).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from aggregator.errors import ArgumentError, CountsError, NoReportsError
from aggregator.estimate.density import Density, density, edges_of
from aggregator.estimate.operator import operator_of
from edge_ldp.device.randomizer import LATTICE

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from aggregator.estimate.operator import Operator
    from edge_ldp import Mechanism

    Floats = NDArray[np.float64]

TOLERANCE = 1e-3  # τ of EMS, absolute change of the log-likelihood; EM's is τ·e^ε
FIXED_POINT = 1e-6  # accelerated EMS: how far an iteration may still move mass in all
MAX_ITERATIONS = 10_000
_MAX_GROWTH = 10  # of the residual by one leap; 2 refuses good leaps, 100 gains nothing


def em(
    mechanism: Mechanism,
    counts: ArrayLike,
    *,
    tolerance: float | None = None,
    max_iterations: int = MAX_ITERATIONS,
) -> Density:
    """Return the EM estimate of the density of the values behind `counts` (reports per code).

    Shape: counts has mechanism.code_count entries. Stops when an iteration changes the
    log-likelihood by less than `tolerance` (10⁻³·e^ε unless given) or at the cap; same counts,
    same result. One report is enough. Cost: O(size) an iteration, typically 1,000 to 2,000 of
    them. Raises CountsError (damaged counts), NoReportsError, ArgumentError.
    """
    if tolerance is None:
        tolerance = TOLERANCE * float(mechanism.max_ratio)
    problem = _problem(mechanism, counts, smoothing=False)
    return _climb(problem, *_checked(tolerance, max_iterations))


def ems(
    mechanism: Mechanism,
    counts: ArrayLike,
    *,
    tolerance: float | None = None,
    max_iterations: int = MAX_ITERATIONS,
    accelerate: bool = False,
) -> Density:
    """Return the EMS estimate: EM with a smoothing step (¼, ½, ¼) after each iteration.

    As `em` in all else; tolerance is 10⁻³ unless given. `accelerate` returns the fixed point of
    the smoothed iteration, to `tolerance` (10⁻⁶) in the mass that one iteration would still move,
    by squared extrapolation: about a fifth of the work, and no early stop.
    """
    problem = _problem(mechanism, counts, smoothing=True)
    if accelerate:
        return _leap(problem, *_checked(tolerance or FIXED_POINT, max_iterations))
    return _climb(problem, *_checked(TOLERANCE if tolerance is None else tolerance, max_iterations))


def smooth(x: Floats) -> Floats:
    """Return x under the kernel (¼, ½, ¼), at the ends (⅔, ⅓); the sum may change there."""
    pairs = x[1:] + x[:-1]
    out = np.empty_like(x)
    np.add(pairs[1:], pairs[:-1], out=out[1:-1])
    out *= 0.25
    out[0] = (2 * x[0] + x[1]) / 3
    out[-1] = (x[-2] + 2 * x[-1]) / 3
    return out


def checked_counts(operator: Operator, counts: ArrayLike) -> Floats:
    """Return counts as floats; raises CountsError, or NoReportsError when all are 0."""
    try:
        n = np.asarray(counts, dtype=np.float64)
    except (TypeError, ValueError) as exc:
        raise CountsError("not numbers") from exc
    if n.shape != (operator.codes,):
        raise CountsError(f"not {operator.codes} of them, one a code")
    if not np.isfinite(n).all():
        raise CountsError("not finite")
    if n.min() < 0:
        raise CountsError("negative")
    if n[~operator.possible].any():
        raise CountsError("reports of a code that has probability 0")
    if not n.any():
        raise NoReportsError
    return n


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """Counts and the likelihood's shape: the factor of each code cancels, and is left out.

    Densities add up to `total`, the number of reports, so that an EM step keeps their sum.
    """

    mechanism: Mechanism
    operator: Operator
    counts: Floats
    total: float
    smoothing: bool

    def start(self) -> Floats:
        """Return the uniform density."""
        return np.full(self.operator.inputs, self.total / self.operator.inputs)

    def step(self, x: Floats, pull: Floats) -> Floats:
        """Return the density after x; `pull`: counts over the law of x."""
        following = self.operator.adjoint(pull)
        following *= x
        if self.smoothing:
            following = smooth(following)
            following *= self.total / np.add.reduce(following)
        return following

    def after(self, x: Floats) -> Floats:
        """Return the density after x."""
        return self.step(x, self.counts / self.operator.apply(x))

    def estimate(self, x: Floats, iterations: int) -> Density:
        """Return the result, with the likelihood under the mechanism's own law."""
        probabilities = x / x.sum()
        seen = self.counts > 0
        law = operator_of(self.mechanism).apply(probabilities)[seen]
        return density(
            probabilities,
            edges_of(self.mechanism),
            lattice=self.mechanism.encoder == LATTICE,
            n=round(self.total),
            iterations=iterations,
            log_likelihood=float(self.counts[seen] @ np.log(law)),
        )


def _problem(mechanism: Mechanism, counts: ArrayLike, *, smoothing: bool) -> _Problem:
    operator = operator_of(mechanism)
    n = checked_counts(operator, counts)
    return _Problem(mechanism, operator.unscaled(), n, float(n.sum()), smoothing)


def _checked(tolerance: float, max_iterations: int) -> tuple[float, int]:
    if not tolerance >= 0 or max_iterations < 1:
        raise ArgumentError("tolerance, max_iterations", "tolerance >= 0, max_iterations >= 1")
    return tolerance, max_iterations


def _climb(problem: _Problem, tolerance: float, max_iterations: int) -> Density:
    """Iterate plainly, as the papers do.

    The log-likelihood changes by Σ n·ln(new/law), between Σ n·(1 − law/new) and Σ n·(new/law − 1):
    logarithms are taken only where these two leave it open whether to stop.
    """
    counts, total, operator = problem.counts, problem.total, problem.operator
    x = problem.start()
    law, new = operator.apply(x), np.empty(operator.codes)
    pull = counts / law
    for iteration in range(1, max_iterations + 1):
        x = problem.step(x, pull)
        operator.apply(x, out=new)
        next_pull = counts / new
        if (
            iteration > 1
            and total - next_pull @ law < tolerance
            and pull @ new - total > -tolerance
            and abs(counts @ np.log(new / law)) < tolerance
        ):
            break
        law, new, pull = new, law, next_pull
    return problem.estimate(x, iteration)


def _leap(problem: _Problem, tolerance: float, max_iterations: int) -> Density:
    """Iterate to the fixed point by squared extrapolation (SQUAREM), safeguarded.

    Two plain steps give a direction and a length. A leap that leaves the positive densities is
    cut back cell by cell; one after which a step moves far more than before is undone in favour of
    the two plain steps.
    """
    x = problem.start()
    safe, last, done = x, np.inf, 0
    while done < max_iterations:
        first = problem.after(x)
        moved = first - x
        residual = float(np.abs(moved).sum()) / problem.total
        done += 1
        if residual < tolerance:
            x = first
            break
        if residual > _MAX_GROWTH * last:
            x, last = safe, np.inf
            continue
        second = problem.after(first)
        done += 1
        safe, last = second, residual
        x = _extrapolated(x, moved, second - first - moved, second)
    else:
        x = safe
    return problem.estimate(x, done)


def _extrapolated(x: Floats, moved: Floats, bent: Floats, second: Floats) -> Floats:
    curvature = float(bent @ bent)
    length = (float(moved @ moved) / curvature) ** 0.5 if curvature > 0 else 1.0
    if length <= 1:
        return second
    there: Floats = x + 2 * length * moved + length * length * bent
    if there.min() <= 0:
        there = np.where(there > 0, there, 0.1 * np.minimum(x, second))
        there *= x.sum() / there.sum()
    return there
