"""Made-up fleets of 400 homes over 49 days of hours, in W: laws that nobody tuned the sums to.

A law is a quantile function. A home's readings have its own level, an hour of the day its own, and
each reading its own part (a Gaussian copula), so that the law of all readings is the one named
while tails sit with few homes and in few hours, as chargers and heat pumps do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy

from edge_ldp.evaluate.study import Values

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Law = Callable[[Floats], Floats]

HOMES, DAYS, SLOTS = 400, 49, 24
CEILING = 43_499  # W: three phases of 63 A
FEED_IN = -20_000
_OF_HOME, _OF_HOUR = 0.4, 0.2  # of a reading's variance, before it is mapped to the law
_SEED = 12_345


def _exponential(u: Floats) -> Floats:
    return -2000 * np.log1p(-u)


def _lognormal(u: Floats) -> Floats:
    found: Floats = np.exp(7 + scipy.special.ndtri(u))
    return found


def _lomax(u: Floats) -> Floats:
    return 1000 * ((1 - u) ** (-1 / 1.8) - 1)


def _pareto(u: Floats) -> Floats:
    return 300 * (1 - u) ** (-1 / 1.3)


def _mixed(*parts: tuple[float, float, float]) -> Law:
    """Return normal humps: (share, middle, standard deviation), from low to high."""

    def law(u: Floats) -> Floats:
        found = np.zeros_like(u)
        start = 0.0
        for share, middle, deviation in parts:
            inside = (u >= start) & (u < start + share)
            inner = np.clip((u - start) / share, 1e-9, 1 - 1e-9)
            found = np.where(inside, middle + deviation * scipy.special.ndtri(inner), found)
            start += share
        return found

    return law


def _atom(share: float, at: float, rest: Law) -> Law:
    """Return a law whose highest share lies within 1 % of one value."""

    def law(u: Floats) -> Floats:
        inner = np.minimum(u / (1 - share), 1 - 1e-9)
        far = at * (1 + 0.01 * ((u - (1 - share)) / share - 0.5))
        return np.where(u < 1 - share, rest(inner), far)

    return law


def _idle(u: Floats) -> Floats:
    return 100_000 * np.maximum(u - 0.9, 0)


def _small(u: Floats) -> Floats:
    return -600 * np.log1p(-u)


def _round(u: Floats) -> Floats:
    return np.round(_lognormal(u) / 1000) * 1000


def _ends(u: Floats) -> Floats:
    return CEILING * np.ceil(u - 0.7)


def _even(u: Floats) -> Floats:
    return CEILING * u


_LAWS: dict[str, tuple[str, Law]] = {
    "exponential": ("exponential, mean 2 kW", _exponential),
    "lognormal": ("lognormal(7, 1)", _lognormal),
    "lomax": ("Lomax, shape 1.8, scale 1 kW", _lomax),
    "pareto": ("Pareto, shape 1.3, from 300 W", _pareto),
    "far-atom": ("exponential of 0.6 kW, 0.3 % near 35 kW", _atom(0.003, 35_000, _small)),
    "chargers": ("exponential of 0.6 kW, 2 % near 22 kW", _atom(0.02, 22_000, _small)),
    "heap": ("exponential of 2 kW, 1 % at the ceiling", _atom(0.01, 2 * CEILING, _exponential)),
    "two-stuck": ("exponential of 0.6 kW, 0.05 % at the ceiling", _atom(5e-4, 1e5, _small)),
    "humps": (
        "normal humps at 0.3, 2.5, 7 and 15 kW",
        _mixed((0.6, 300, 80), (0.25, 2500, 400), (0.1, 7000, 500), (0.05, 15_000, 800)),
    ),
    "narrow": ("normal, 500 W ± 20 W", _mixed((1, 500, 20))),
    "idle": ("90 % zero, the others even up to 10 kW", _idle),
    "round": ("lognormal(7, 1), in whole kW", _round),
    "ends": ("70 % zero, the others at the ceiling", _ends),
    "even": ("even over the whole range", _even),
    "feed-in": (
        "normal humps at −15, −4, 0.5 and 6 kW",
        _mixed((0.05, -15_000, 1500), (0.15, -4000, 1500), (0.6, 500, 200), (0.2, 6000, 1500)),
    ),
}
NAMES = tuple(_LAWS)


def made_fleet(name: str) -> Values:
    """Return a fleet of NAMES: always the same values."""
    about, law = _LAWS[name]
    rng = np.random.default_rng([_SEED, NAMES.index(name)])
    home = rng.normal(size=(HOMES, 1, 1))
    hour = rng.normal(size=(1, 1, SLOTS))
    own = rng.normal(size=(HOMES, DAYS, SLOTS))
    rest = 1 - _OF_HOME - _OF_HOUR
    # an even grid of levels in the order of the draws: the law is met exactly
    order = (_OF_HOME**0.5 * home + _OF_HOUR**0.5 * hour + rest**0.5 * own).ravel().argsort()
    levels = np.empty(len(order))
    levels[order] = (np.arange(len(order)) + 0.5) / len(order)
    low = FEED_IN if name == "feed-in" else 0
    values = np.clip(np.rint(law(levels)), low, CEILING).astype(np.int64)
    source = f"made: {about}; {HOMES} homes, {DAYS} days of hours"
    return Values(name, values, low, CEILING, "W", source, homes=HOMES, slots_per_day=SLOTS)
