"""The most likely density under one hypothesis, by Fisher scoring, and how well it foretold.

Its evidence is Laplace's approximation of the probability of the reports, times its weight before
them.
Source: derived here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from aggregator.adaptive.likelihood import Reports
    from aggregator.adaptive.shape import Prior, Shape

    Floats = NDArray[np.float64]

PRECISE = 5e-2  # of the log-posterior: how much a further step of a fit may still gain
_STEPS_OF_FIT = 10  # those of other bends may end before; docs/adaptive-theta.md
_LONGEST = 3.0  # the most that ψ may move in a step
_TOP = 50.0  # e⁵⁰ reports in a cell: keeps exp() finite on the way
_FLAT = 1e-9


class Fit(NamedTuple):
    """The most likely ψ of a target, and the logarithm of the target's evidence."""

    target: Target
    psi: Floats
    lower: Floats  # Cholesky factor of the precision at psi
    evidence: float

    def scores(self, ways: Floats) -> tuple[Floats, Floats]:
        """Return the log-likelihood's slope along each change of the law, and its curvature.

        `ways`: expected counts × changes. The curvature is what is left when the fitted ψ follows.
        """
        masses = self.target.masses(self.psi)
        law = self.target.reports.expected @ masses
        root = np.sqrt(law)[:, None]
        pull: Floats = ways.T @ (self.target.reports.counts / law) - ways.sum(axis=0)
        weighed, own = ways / root, self.target.reports.expected * masses / root
        shared = solve_triangular(self.lower, own.T @ weighed, lower=True, check_finite=False)
        plain = (weighed * weighed).sum(axis=0)
        told: Floats = np.maximum(plain - (shared * shared).sum(axis=0), _FLAT * plain)
        return pull, told


class Target:
    """The log-posterior of ψ under one shape, for one vector or for many columns."""

    def __init__(self, reports: Reports, priors: Prior, shape: Shape, price: float = 0.0) -> None:
        """`price`: what the hypothesis costs of its evidence besides its shape's weight."""
        self.reports, self.priors, self.shape, self.price = reports, priors, shape, price
        self.prior, self.log_width = priors.of(shape), priors.log_width
        self.sums = reports.expected.sum(axis=0)

    def bent(self, bend: float) -> Target:
        """Return the target of the same hypothesis with another bend."""
        return Target(self.reports, self.priors, self.shape._replace(bend=bend), self.price)

    def masses(self, psi: Floats) -> Floats:
        """Return the masses of the cells, of one vector or of each column."""
        width = self.log_width if psi.ndim == 1 else self.log_width[:, None]
        return np.asarray(np.exp(np.minimum(psi + width, _TOP)))

    def value(self, psi: Floats, masses: Floats) -> Floats:
        """Return the log-posterior up to a constant, of one vector or of each column."""
        law = self.reports.expected @ masses
        mean = self.prior.mean if psi.ndim == 1 else self.prior.mean[:, None]
        away = psi - mean
        prior = (away * (self.prior.precision @ away)).sum(axis=0)
        value: Floats = self.reports.counts @ np.log(law) - law.sum(axis=0) - prior / 2
        return value

    def both(self, psi: Floats, masses: Floats) -> tuple[Floats, Floats]:
        """Return value and gradient of many columns."""
        law = self.reports.expected @ masses
        counts = self.reports.counts[:, None]
        away = psi - self.prior.mean[:, None]
        pulled = self.prior.precision @ away
        value = (counts * np.log(law) - law).sum(axis=0) - (away * pulled).sum(axis=0) / 2
        gradient = (self.reports.expected.T @ (counts / law) - self.sums[:, None]) * masses
        return value, gradient - pulled

    def slope(self, psi: Floats, masses: Floats) -> tuple[Floats, Floats]:
        """Return the gradient, and the Cholesky factor of the expected precision."""
        law = self.reports.expected @ masses
        parts = self.reports.expected * masses
        gradient = parts.T @ (self.reports.counts / law) - self.sums * masses
        gradient -= self.prior.precision @ (psi - self.prior.mean)
        information = (parts.T / law) @ parts + self.prior.precision
        return gradient, cholesky(information, lower=True, check_finite=False)


def fit(target: Target, psi: Floats) -> Fit:
    """Climb to the most likely ψ by Fisher scoring with halved steps; Laplace's evidence there."""
    masses = target.masses(psi)
    value = target.value(psi, masses)
    for _ in range(_STEPS_OF_FIT):
        gradient, lower = target.slope(psi, masses)
        step = cho_solve((lower, True), gradient, check_finite=False)
        gain = float(gradient @ step)
        length = min(1.0, _LONGEST / float(np.abs(step).max() + 1e-300))
        while length > 1e-4:  # noqa: PLR2004 (then it stands still)
            there = psi + length * step
            there_masses = target.masses(there)
            there_value = target.value(there, there_masses)
            if there_value >= value + 1e-4 * length * gain:
                psi, masses, value = there, there_masses, there_value
                break
            length /= 2
        if gain < PRECISE:
            break
    lower = target.slope(psi, masses)[1]
    evidence = (
        float(value) + target.prior.log_determinant / 2 + target.shape.log_weight - target.price
    )
    return Fit(target, psi, lower, evidence - float(np.log(np.diag(lower)).sum()))
