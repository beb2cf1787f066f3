"""The iterations of EM and EMS: plain, as in the papers, or by leaps.

Source: [SW] §5.5; leaps are squared extrapolation (SQUAREM).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.estimate.density import Density, density

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edge_ldp.estimate.model import Model
    from edge_ldp.estimate.operator import Operator

    Floats = NDArray[np.float64]

STRENGTH = 0.5  # of the papers' smoothing: the kernel (¼, ½, ¼)
ONE_CODE = "all reports are of one code: the density says little more than where that is likely"
CAPPED = "stopped at the cap of iterations, before the stopping rule was met"
_GROWTH = 4.0  # of the longest leap
_MAX_GROWTH = 10  # of the residual by one leap; 2 refuses good leaps, 100 gains nothing


def smooth(x: Floats, strength: float = STRENGTH) -> Floats:
    """Return x under the kernel (l/2, 1 − l, l/2), l = strength; the sum may change at the ends.

    There the kernel is cut off and scaled to add up to 1: (⅔, ⅓) for l = ½. A strength, the
    kernel's variance in cells², above ½ is shared out over as many passes as it holds halves.
    """
    passes = max(1, ceil(strength / STRENGTH))
    side = strength / passes / 2
    for _ in range(passes):
        beside = x[2:] + x[:-2]
        beside *= side
        out = (1 - 2 * side) * x
        out[1:-1] += beside
        out[0] = (out[0] + side * x[1]) / (1 - side)
        out[-1] = (out[-1] + side * x[-2]) / (1 - side)
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
        told = ((ONE_CODE, seen.sum() == 1), (CAPPED, capped))
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
        residual = float(np.abs(moved).sum()) / problem.total
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
        length = min(_length(moved, bent), longest)
        if length == longest:
            longest *= _GROWTH
        x = _extrapolated(x, moved, bent, second, length)
    return problem.estimate(safe, done, capped=True)


def _length(moved: Floats, bent: Floats) -> float:
    curvature = float(bent @ bent)
    return (float(moved @ moved) / curvature) ** 0.5 if curvature > 0 else 1.0


def _extrapolated(x: Floats, moved: Floats, bent: Floats, second: Floats, length: float) -> Floats:
    if length <= 1:
        return second
    there: Floats = x + 2 * length * moved + length * length * bent
    if there.min() <= 0:
        there = np.where(there > 0, there, 0.1 * np.minimum(x, second))
        there *= x.sum() / there.sum()
    return there
