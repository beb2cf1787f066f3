"""EM and EMS: the density under randomised codes, by (smoothed) maximum likelihood.

Both start from the uniform density and stop early by a rule that is part of the estimator: the
exact maximum of the likelihood is a worse estimate than an early stop (docs/methods.md, Densities).
Sources: [SW] §5.5 (EM, EMS); docs/methods.md, Decided readings (stopping rules, smoothing at the
ends). Leaps are squared extrapolation (SQUAREM).
"""

from dataclasses import dataclass
from functools import cache
from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from edge_ldp.arrays import Floats
from edge_ldp.checks import MODELLED, TRUTH, finite, integer_in, is_masked, optional, taking
from edge_ldp.errors import CountsError, NoReportsError
from edge_ldp.estimate.density import Density, density
from edge_ldp.estimate.operator import Model, Modelled, Operator, model_of
from edge_ldp.estimate.pure import MAX_REPORTS
from edge_ldp.gateway.ems import BLURRED, CAPPED, MAX_ITERATIONS, NARROW, ONE_CODE, TOLERANCE

FIXED_POINT = 1e-6  # accelerated EMS: how far an iteration may still move mass in all
MAX_STRENGTH = 100
NOTHING = 1e-30  # reports in all: below, likelihoods underflow
STRENGTH = 0.5  # of the papers' smoothing: the kernel (¼, ½, ¼)
_GROWTH = 4.0  # of the longest leap
_MAX_GROWTH = 10  # of the residual by one leap; 2 refuses good leaps, 100 gains nothing


@taking(mechanism=MODELLED, tolerance=optional(finite(least=0)), max_iterations=integer_in(least=1))
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
    return climb(_problem(model, counts, 0.0), tolerance, max_iterations)


@taking(
    mechanism=MODELLED,
    tolerance=optional(finite(least=0)),
    max_iterations=integer_in(least=1),
    accelerate=TRUTH,
    early=TRUTH,
    strength=finite(0, MAX_STRENGTH),
)
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

    Smoothing assumes that neighbouring cells hold about as much: where half of the mass lies within
    fewer than NARROW cells (at strength ½; it goes with the root of the strength) it is spread, and
    the density's warnings say so; `auto` finds a strength. As `em` in all else; tolerance is 10⁻³
    unless given. `accelerate` returns the fixed point of the smoothed iteration, to `tolerance`
    (10⁻⁶) in the mass that one iteration would still move, by squared extrapolation: about a third
    of the work, and no early stop. With `early` too, the leaps stop by the plain rule, near where
    the plain iteration does: an eighth to a tenth of its work. `strength` l, 0 to 100, makes the
    step (l/2, 1 − l, l/2), in several passes above ½ (see `smooth`); `held_out` chooses it.
    """
    problem = _problem(model_of(mechanism), counts, strength)
    if tolerance is None:
        tolerance = FIXED_POINT if accelerate and not early else TOLERANCE
    if accelerate:
        return leap(problem, tolerance, max_iterations, early=early)
    return climb(problem, tolerance, max_iterations)


def checked_counts(operator: Operator, counts: ArrayLike) -> Floats:
    """Return counts as floats; raises CountsError, or NoReportsError when all are 0.

    Expected and filtered counts need not be whole, but less than 10⁻³⁰ in all is nothing. More than
    2^53 are refused: floats would no longer count them; truth values are a mask and no counts.
    """
    if is_masked(counts):
        raise CountsError("masked")
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


def smooth(x: Floats, strength: float = STRENGTH) -> Floats:
    """Return x under the kernel (l/2, 1 − l, l/2), l = strength; the sum may change at the ends.

    There the kernel is cut off and scaled to add up to 1: (⅔, ⅓) for l = ½. A strength, the
    kernel's variance in cells², above ½ is shared out over as many passes as it holds halves.
    """
    passes = max(1, ceil(strength / STRENGTH))
    side = strength / passes / 2
    if 1 < passes <= len(x) // 4:  # all of them at once
        kernel, end = _at_once(passes, side)
        middle = np.convolve(x, kernel, "valid")
        tail = end @ x[: -2 * passes - 1 : -1]
        return np.concatenate([end @ x[: 2 * passes], middle, tail[::-1]])
    return _passed(x, passes, side)


@cache
def _at_once(passes: int, side: float) -> tuple[Floats, Floats]:
    """Return the kernel of so many passes, and the matrix of as many cells at an end."""
    columns = [_passed(row, passes, side)[:passes] for row in np.eye(4 * passes)[: 2 * passes]]
    one = np.zeros(4 * passes + 1)
    one[2 * passes] = 1
    return _passed(one, passes, side)[passes : 3 * passes + 1], np.array(columns).T


def _passed(x: Floats, passes: int, side: float) -> Floats:
    for _ in range(passes):
        beside = x[2:] + x[:-2]
        beside *= side
        out = (1 - 2 * side) * x
        inner = out[1:-1]
        inner += beside
        out[0] = (out.item(0) + side * x.item(1)) / (1 - side)
        out[-1] = (out.item(-1) + side * x.item(-2)) / (1 - side)
        x = out
    return x


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Counts and the likelihood's shape: the factor of each code cancels, and is left out.

    Densities add up to `total`, the number of reports, so that an EM step keeps their sum.
    """

    model: Model
    operator: Operator
    counts: Floats
    total: float
    strength: float

    def start(self) -> Floats:
        """Return the uniform density."""
        if self.model.uneven:
            width = np.diff(self.model.edges)
            return np.asarray(width * (self.total / width.sum()))
        return np.full(self.operator.inputs, self.total / self.operator.inputs)

    def step(self, x: Floats, pull: Floats) -> Floats:
        """Return the density after x; `pull`: counts over the law of x."""
        following = self.operator.adjoint(pull)
        following *= x
        if self.strength:
            if self.model.uneven:
                width = np.diff(self.model.edges)
                following = smooth(following / width, self.strength) * width
            else:
                following = smooth(following, self.strength)
            following *= self.total / np.add.reduce(following)
        return following

    def settled(
        self, law: Floats, pull: Floats, new: Floats, next_pull: Floats, tolerance: float
    ) -> bool:
        """Say whether the log-likelihood changes by less than `tolerance` from law to new.

        It does by Σ n·ln(new/law), between Σ n·(1 − law/new) and Σ n·(new/law − 1): logarithms are
        taken only where these two leave it open. `pull`, `next_pull`: counts over law and new.
        """
        return bool(
            self.total - next_pull @ law < tolerance
            and pull @ new - self.total > -tolerance
            and abs(self.counts @ np.log(new / law)) < tolerance
        )

    def estimate(self, x: Floats, iterations: int, *, capped: bool) -> Density:
        """Return the result, with the likelihood under the mechanism's own law."""
        probabilities = x / x.sum()
        seen = self.counts > 0
        law = self.model.operator.apply(probabilities)[seen]
        below = np.concatenate([[0.0], np.cumsum(probabilities)])
        first, last = np.interp((0.25, 0.75), below, np.arange(len(below)))
        narrow = last - first < NARROW * (self.strength / STRENGTH) ** 0.5  # none at 0
        told = (
            (ONE_CODE, seen.sum() == 1),
            (CAPPED, capped),
            (BLURRED, seen.sum() > 1 and narrow and not self.model.uneven),  # of even cells
        )
        return density(
            probabilities,
            self.model.edges,
            lattice=self.model.lattice,
            n=round(self.total),
            iterations=iterations,
            log_likelihood=float(self.counts[seen] @ np.log(law)),
            warnings=tuple(warning for warning, is_so in told if is_so),
        )


def climb(problem: Problem, tolerance: float, max_iterations: int) -> Density:
    """Iterate plainly, as the papers do."""
    operator = problem.operator
    x = problem.start()
    law, new = operator.apply(x), np.empty(operator.codes)
    pull = problem.counts / law
    for iteration in range(1, max_iterations + 1):
        x = problem.step(x, pull)
        operator.apply(x, out=new)
        next_pull = problem.counts / new
        if iteration > 1 and problem.settled(law, pull, new, next_pull, tolerance):
            return problem.estimate(x, iteration, capped=False)
        law, new, pull = new, law, next_pull
    return problem.estimate(x, max_iterations, capped=True)


def leap(problem: Problem, tolerance: float, max_iterations: int, *, early: bool) -> Density:
    """Iterate towards the fixed point by squared extrapolation (SQUAREM), safeguarded.

    Two plain steps give a direction and a length. A leap that leaves the positive densities is cut
    back cell by cell; one after which a step moves far more than before is undone in favour of the
    two plain steps. `tolerance` is of the share of the mass that a step moves; with `early` of its
    change of the likelihood, and leaps then may grow only fourfold at a time: without that bound
    weakly smoothed iterations leap over the end of the plain ones, some for ever.
    """
    operator, counts = problem.operator, problem.counts
    x = problem.start()
    safe, last, done, longest = x, np.inf, 0, _GROWTH if early else np.inf
    while done < max_iterations:
        law = operator.apply(x)
        pull = counts / law
        first = problem.step(x, pull)
        moved = first - x
        residual = float(np.add.reduce(np.abs(moved))) / problem.total
        done += 1
        if not early and residual < tolerance:
            return problem.estimate(first, done, capped=False)
        if residual > _MAX_GROWTH * last:
            x, last, longest = safe, np.inf, max(longest / _GROWTH, _GROWTH)
            continue
        new = operator.apply(first)
        next_pull = counts / new
        if early and done > 1 and problem.settled(law, pull, new, next_pull, tolerance):
            return problem.estimate(first, done, capped=False)
        second = problem.step(first, next_pull)
        done += 1
        safe, last = second, residual
        bent = second - first - moved
        curvature = float(bent @ bent)
        length = (float(moved @ moved) / curvature) ** 0.5 if curvature > 0 else 1.0
        length = min(length, longest)
        if length == longest:
            longest *= _GROWTH
        x = _extrapolated(x, moved, bent, second, length)
    return problem.estimate(safe, done, capped=True)


def _problem(model: Model, counts: ArrayLike, strength: float) -> Problem:
    n = checked_counts(model.operator, counts)
    return Problem(model, model.operator.unscaled(), n, float(n.sum()), strength)


def _extrapolated(x: Floats, moved: Floats, bent: Floats, second: Floats, length: float) -> Floats:
    if length <= 1:
        return second
    there: Floats = 2 * length * moved
    there += x
    there += length * length * bent
    if np.minimum.reduce(there) <= 0:
        there = np.where(there > 0, there, 0.1 * np.minimum(x, second))
        there *= np.add.reduce(x) / np.add.reduce(there)
    return there
