"""Draws from a log-posterior near its Gaussian fit: Hamiltonian Monte Carlo, many chains at once.

All chains start at the most likely point, where the reports allow a density to be: draws of the
Gaussian fit may lie where they exclude it by hundreds of nats, and chains of small steps do not
come back from there in a look's time. Coordinates are whitened by the fit, so that one length of a
leap suits all of them. Leaps that end where no number is are refused like other bad ones.
Sources: Duane et al. 1987; Neal, arXiv 1206.1901 [both recalled, not opened].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from scipy.linalg import solve_triangular

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

TURNS, LEAPS, KEPT = 16, 8, 4
_ACCEPTED = 0.7
_FIRST, _LONGEST, _JITTER = 0.25, 1.0, 0.3  # a leap's length, in standard deviations of the fit


class LogDensity(Protocol):
    """A log-density of ψ, and the masses that ψ stands for; columns are chains."""

    def masses(self, psi: Floats) -> Floats:
        """Return the masses of each column."""

    def both(self, psi: Floats, masses: Floats) -> tuple[Floats, Floats]:
        """Return value and gradient of each column."""


def walk(
    target: LogDensity, psi: Floats, lower: Floats, chains: int, rng: np.random.Generator
) -> Floats:
    """Return KEPT states of each chain, as masses; a leap's length is settled before the first.

    `psi`: most likely point; `lower`: Cholesky factor of the precision there.
    """
    space = _Whitened(target, psi, lower)
    here = space.at(np.zeros((len(psi), chains)))
    length, kept = _FIRST, list[np.ndarray]()
    for turn in range(TURNS):
        jitter = rng.uniform(1 - _JITTER, 1 + _JITTER)
        there, gain = space.glide(here, rng.standard_normal(here.z.shape), length * jitter)
        taken = np.log(rng.random(chains)) < gain  # not where gain is no number
        here = _State(*(np.where(taken, new, old) for new, old in zip(there, here, strict=True)))
        if turn < TURNS - KEPT:
            length = min(_LONGEST, length * float(np.exp(taken.mean() - _ACCEPTED)))
        else:
            kept.append(here.masses)
    return np.concatenate(kept, axis=1)


class _State(NamedTuple):
    z: Floats
    value: Floats  # log-density
    slope: Floats  # its gradient along z
    masses: Floats


class _Whitened:
    """The log-density over z, whose Gaussian fit is the standard normal law."""

    def __init__(self, target: LogDensity, psi: Floats, lower: Floats) -> None:
        self.target, self.psi = target, psi[:, None]
        self.back: Floats = solve_triangular(lower.T, np.eye(len(psi)), check_finite=False)

    def at(self, z: Floats) -> _State:
        psi = self.psi + self.back @ z
        masses = self.target.masses(psi)
        value, gradient = self.target.both(psi, masses)
        return _State(z, value, self.back.T @ gradient, masses)

    def glide(self, here: _State, speed: Floats, length: float) -> tuple[_State, Floats]:
        """Return the states after LEAPS leapfrog steps, and what each gains of log-probability."""
        energy = here.value - (speed * speed).sum(axis=0) / 2
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # a leap off the edge
            speed = speed + length / 2 * here.slope
            for leap in range(1, LEAPS + 1):
                here = self.at(here.z + length * speed)
                speed = speed + (length if leap < LEAPS else length / 2) * here.slope
            return here, here.value - (speed * speed).sum(axis=0) / 2 - energy
