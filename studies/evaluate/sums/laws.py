"""Made-up fleets of 400 homes, in W: laws that nobody tuned the sums to.

Fifteen over 49 days of hours are laws of single readings, five over 28 days of quarter hours are
loads that are on in all homes at once, by day and by week.

A law is a quantile function. A home's readings have its own level, an hour of the day its own, and
each reading its own part (a Gaussian copula), so that the law of all readings is the one named
while tails sit with few homes and in few hours, as chargers and heat pumps do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy

from studies.evaluate.study import Values

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Law = Callable[[Floats], Floats]
    Load = Callable[[np.random.Generator, Floats, Ints], Floats]

HOMES, DAYS, SLOTS = 400, 49, 24
CEILING = 43_499  # W: three phases of 63 A
FEED_IN = -20_000
_OF_HOME, _OF_HOUR = 0.4, 0.2  # of a reading's variance, before it is mapped to the law
_WORKDAYS = 5
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


def _every(nth: int, first: int = 0) -> Floats:
    """Return 1 for the homes that have a load, every nth, in a column."""
    return np.where(np.arange(HOMES)[:, None] % nth == first, 1.0, 0.0)


def _on(hour: Floats, begins: float, hours: float) -> Floats:
    """Return 1 where a clock has a load on."""
    return np.where((hour - begins) % 24 < hours, 1.0, 0.0)


def _heaters(_rng: np.random.Generator, hour: Floats, _day: Ints) -> Floats:
    return 5800 * (1 - _every(3)) * _on(hour, 22, 8)


def _wall_boxes(rng: np.random.Generator, hour: Floats, day: Ints) -> Floats:
    used = rng.integers(0, 2, (HOMES, day.max() + 1)).astype(np.float64)[:, day]
    return 11_000 * (_every(5, 0) + _every(5, 1)) * used * _on(hour, 22, 2)


def _inverters(rng: np.random.Generator, hour: Floats, day: Ints) -> Floats:
    sky = rng.uniform(0.2, 1, day.max() + 1)[day]
    sun: Floats = np.maximum(0.0, 1 - ((hour - 12.5) / 5) ** 2)
    size: Floats = rng.uniform(4000, 9000, (HOMES, 1)) * _every(2)
    found: Floats = -size * sky * sun
    return found


def _boilers(_rng: np.random.Generator, hour: Floats, _day: Ints) -> Floats:
    first, second, third = (_every(3, n) * _on(hour, 22 + 2 * n, 2) for n in range(3))
    return 4000 * (first + second + third)


def _workdays(rng: np.random.Generator, hour: Floats, day: Ints) -> Floats:
    size = rng.uniform(1000, 9000, (HOMES, 1))
    return size * _on(hour, 8, 10) * np.where(day % 7 < _WORKDAYS, 1.0, 0.0)


IN_PHASE: dict[str, tuple[str, int, int, Load]] = {
    "storage-heaters": ("5.8 kW from 22 to 6 in two homes of three", 0, 6000, _heaters),
    "wall-boxes": ("11 kW from 22 to 24, every other night, 160 homes", 0, 14_000, _wall_boxes),
    "inverters": ("up to 9 kW fed in about noon by 200 homes", -10_000, 5000, _inverters),
    "boilers": ("4 kW for 2 hours of a night, in three groups", 0, 6000, _boilers),
    "workdays": ("shops, from 8 to 18 on five days of seven", 0, 12_000, _workdays),
}
IN_PHASE_DAYS, IN_PHASE_SLOTS = 28, 96
NAMES = (*_LAWS, *IN_PHASE)


def made_fleet(name: str) -> Values:
    """Return a fleet of NAMES: always the same values."""
    rng = np.random.default_rng([_SEED, NAMES.index(name)])
    return _in_phase(name, rng) if name in IN_PHASE else _of_law(name, rng)


def _in_phase(name: str, rng: np.random.Generator) -> Values:
    about, low, ceiling, load = IN_PHASE[name]
    at = np.arange(IN_PHASE_DAYS * IN_PHASE_SLOTS)
    watts = load(rng, at % IN_PHASE_SLOTS / 4, at // IN_PHASE_SLOTS)
    watts = watts + rng.exponential(150, (HOMES, len(at)))
    values = np.clip(np.rint(watts), low, ceiling).astype(np.int64).ravel()
    source = f"made: {about}; {HOMES} homes, {IN_PHASE_DAYS} days of quarter hours"
    slots = IN_PHASE_SLOTS
    return Values(name, values, low, ceiling, "W", source, homes=HOMES, slots_per_day=slots)


def _of_law(name: str, rng: np.random.Generator) -> Values:
    about, law = _LAWS[name]
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
