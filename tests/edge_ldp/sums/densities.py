"""Distributions of values 0..CEILING that bands are tested on: heaps, humps, atoms, long tails."""

from collections.abc import Callable
from functools import cache

import numpy as np
import scipy
from numpy.typing import NDArray

from firmware_stubs.data import load_swiss

Floats = NDArray[np.float64]


CEILING = 43_470  # W: 3 × 63 A at 230 V
COUNTS = 1657  # items in a basket at most
LAWS = (  # their names; to compute them takes a second
    *("homes", "0.3 % near 35 kW", "2 % near 22 kW", "0.2 % at the ceiling", "lognormal"),
    *("exponential", "pareto", "four atoms", "even", "beta(5, 2)", "counts"),
)


@cache
def laws() -> dict[str, Floats]:
    """Return the probability of every integer from 0, by name."""
    homes = np.bincount(np.clip(load_swiss().ravel(), 0, CEILING), minlength=CEILING + 1)
    home = homes / homes.sum()
    at = np.arange(COUNTS + 1)
    return {
        "homes": home,
        "0.3 % near 35 kW": 0.997 * home + 0.003 * _cut(_normal_law(35_000, 300)),
        "2 % near 22 kW": 0.98 * home + 0.02 * _cut(_normal_law(22_000, 500)),
        "0.2 % at the ceiling": 0.998 * home + 0.002 * _atom(CEILING),
        "lognormal": _cut(lambda x: scipy.special.ndtr(-np.log(np.maximum(x, 0.5) / 1097))),
        "exponential": _cut(lambda x: np.exp(-x / 2000)),
        "pareto": _cut(lambda x: (1 + np.maximum(x, 0) / 1000) ** -1.5),
        "four atoms": sum(
            (m * _atom(x) for m, x in ((0.5, 60), (0.3, 2300), (0.15, 11_000), (0.05, 22_000))),
            np.zeros(CEILING + 1),
        ),
        "even": np.full(CEILING + 1, 1 / (CEILING + 1)),
        "beta(5, 2)": _cut(lambda x: scipy.special.betaincc(5, 2, x.clip(0) / (CEILING + 1))),
        "counts": _normal(
            (at + 1) * 0.25**2 * 0.75**at + 1e-3 * (at + 1) * (at + 2) / 2 * 0.02**3 * 0.98**at
        ),
    }


def _normal_law(mean: float, deviation: float) -> Callable[[Floats], Floats]:
    return lambda x: np.asarray(scipy.special.ndtr((mean - x) / deviation))


def _atom(value: int) -> Floats:
    return np.asarray(np.arange(CEILING + 1) == value, np.float64)


def _normal(mass: Floats) -> Floats:
    return np.asarray(mass / mass.sum())


def _cut(survival: Callable[[Floats], Floats]) -> Floats:
    """Return what lies around each integer; the first and last also hold what lies beyond."""
    above = np.array(survival(np.arange(CEILING + 2, dtype=np.float64) - 0.5), np.float64)
    above[0], above[-1] = 1, 0
    return np.asarray(-np.diff(above))
