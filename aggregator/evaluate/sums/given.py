"""Runs with θ and the share of surveys given: only the intervals are on trial.

Weeks, days and hours of the day are strata of the run; a range and a group of homes are asked for
alone, as `query` does. Every truth is the mean of these very homes' readings in these slots.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from aggregator.evaluate.sums.fleet import HOURS, epochs, given_setting
from edge_ldp.sums import estimate_means

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from aggregator.evaluate.sums.fleet import Cells, Fleet
    from edge_ldp.sums import MeanEstimate

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

WHOLE, WEEKS, DAYS, HOUR, RANGE = "whole run", "week", "day", "hour of day", "random range"
GROUPS = {"group of 30": 30, "group of 100": 100}
HORIZONS = (WHOLE, WEEKS, DAYS, HOUR, RANGE, *GROUPS)
WEEK = 7  # days
_LEAST_RANGE = 1 / 50  # of the run


class Asked(NamedTuple):
    """An answer and the truth, both in the unit."""

    found: MeanEstimate
    truth: float


def possible(horizon: str, fleet: Fleet) -> bool:
    """Say whether a fleet is large and long enough to be asked so; of groups there are two."""
    homes, slots = fleet.readings.shape
    days = slots // fleet.slots_per_day
    if horizon in GROUPS:
        return homes >= 2 * GROUPS[horizon]
    least = {WEEKS: 2 * WEEK, DAYS: 2, HOUR: 1}.get(horizon, 0)
    return days >= least and (horizon != HOUR or fleet.slots_per_day >= HOURS)


def asked(horizon: str, fleet: Fleet, rng: np.random.Generator) -> list[Asked]:
    """Return the answers of one run, drawn anew: one a stratum."""
    setting = given_setting(fleet)
    if horizon in GROUPS:
        chosen = rng.permutation(len(fleet.readings)) < GROUPS[horizon]
        cells = _homes(fleet).merged(np.where(chosen, 0, -1), 1)
        expected = cells.expected(setting, 1)
    elif horizon == RANGE:
        cells = _slots(fleet).merged(_range(fleet.readings.shape[1], rng), 1)
        expected = cells.expected(setting, fleet.copies)
    else:
        cells, expected = _strata(horizon, fleet)
    streams, surveys = (rng.poisson(means) for means in expected)
    strata = [[epoch] for epoch in epochs(setting, streams, surveys)]
    means = estimate_means(strata, ceiling=fleet.ceiling)
    found = means.strata if len(strata) > 1 else [means.whole]
    truths = (cells.sums / cells.n).tolist()
    pairs = zip(found, truths, strict=True)
    return [Asked(mean, truth) for mean, truth in pairs if mean is not None]


@lru_cache(maxsize=16)
def _strata(horizon: str, fleet: Fleet) -> tuple[Cells, tuple[Floats, Floats]]:
    cells = _slots(fleet).merged(*slots_of(horizon, fleet))
    return cells, cells.expected(given_setting(fleet), fleet.copies)


@lru_cache(maxsize=2)
def _slots(fleet: Fleet) -> Cells:
    return fleet.by_slot(given_setting(fleet).stream.high)


@lru_cache(maxsize=2)
def _homes(fleet: Fleet) -> Cells:
    return fleet.by_home(given_setting(fleet).stream.high)


def _range(slots: int, rng: np.random.Generator) -> Ints:
    """Return 0 for the slots of a range of any length from some per cent of the run, else −1."""
    length = max(1, round(slots * rng.uniform(_LEAST_RANGE, 1)))
    first = rng.integers(0, slots - length, endpoint=True)
    at = np.arange(slots)
    return np.where((at >= first) & (at < first + length), 0, -1)


def slots_of(horizon: str, fleet: Fleet) -> tuple[Ints, int]:
    """Return the stratum of every slot (−1: none; weeks and days are whole ones), and how many."""
    slots, day = fleet.readings.shape[1], fleet.slots_per_day
    at = np.arange(slots)
    if horizon == HOUR:
        return at % day * HOURS // day, HOURS
    length = {WEEKS: WEEK * day, DAYS: day}.get(horizon, slots)
    return np.where(at < slots // length * length, at // length, -1), slots // length
