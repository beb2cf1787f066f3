"""Runs with θ and the share of surveys given: only the intervals are on trial.

Weeks, days and hours of the day are strata of the run; a range and a group of homes are asked for
alone, as `query` does. Every truth is the mean of these very homes' readings in these slots.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edge_ldp.evaluate.sums.fleet import HOURS, epoch, given_setting
from edge_ldp.sums import estimate_means

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from edge_ldp.evaluate.sums.fleet import HomeCells, StudiedHomes
    from edge_ldp.sums import Epoch, MeanEstimate

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

WHOLE, WEEKS, DAYS, HOUR, RANGE = "whole run", "week", "day", "hour of day", "random range"
GROUPS = {"group of 30": 30, "group of 100": 100}
HORIZONS = (WHOLE, WEEKS, DAYS, HOUR, RANGE, *GROUPS)
WEEK = 7  # days
_LEAST_RANGE = 1 / 50  # of the run


class AskedInterval(NamedTuple):
    """An answer and the truth, both in the unit."""

    found: MeanEstimate
    truth: float


def possible(horizon: str, fleet: StudiedHomes) -> bool:
    """Say whether a fleet is large and long enough to be asked so; of groups there are two."""
    if horizon in GROUPS:
        return len(fleet.readings) >= 2 * GROUPS[horizon]
    least = {WEEKS: 2 * WEEK, DAYS: 2, HOUR: 1}.get(horizon, 0)
    days = len(fleet.times) // fleet.slots_per_day
    return days >= least and (horizon != HOUR or fleet.a_day == HOURS)


def drawn_answers(
    horizon: str, fleet: StudiedHomes, rng: np.random.Generator
) -> list[AskedInterval]:
    """Return the answers of one run, drawn anew: one a stratum."""
    setting = given_setting(fleet)
    if horizon in GROUPS:
        cells = _homes(fleet).merged(group(horizon, fleet, rng), 1)
        expected = cells.expected(setting, 1)
    elif horizon == RANGE:
        times = _times(fleet)
        cells = times.merged(some_range(len(times.n), rng), 1)
        expected = cells.expected(setting, fleet.copies)
    else:
        cells, expected = _strata(horizon, fleet)
    drawn = zip(*(rng.poisson(means) for means in expected), strict=True)
    strata = [[epoch(setting, *codes)] for codes in drawn]
    return answers(strata, (cells.sums / cells.n).tolist(), fleet.ceiling)


def answers(
    strata: Sequence[Sequence[Epoch]], truths: Sequence[float], ceiling: int
) -> list[AskedInterval]:
    """Return what is found of each stratum, of a single one as the whole."""
    means = estimate_means(strata, ceiling=ceiling)
    found = means.strata if len(strata) > 1 else [means.whole]
    pairs = zip(found, truths, strict=True)
    return [AskedInterval(mean, truth) for mean, truth in pairs if mean is not None]


def strata_of(horizon: str, times: Ints, fleet: StudiedHomes) -> tuple[Ints, int]:
    """Return the stratum of every time (−1: none; weeks and days are whole ones), and how many."""
    if horizon == HOUR:
        return times % fleet.a_day, fleet.a_day
    length = {WEEKS: WEEK * fleet.a_day, DAYS: fleet.a_day}.get(horizon, len(times))
    at = times - times[0]
    return np.where(at < len(at) // length * length, at // length, -1), len(at) // length


def some_range(times: int, rng: np.random.Generator) -> Ints:
    """Return 0 for the times of a range of any length from some per cent of the run, else −1."""
    length = max(1, round(times * rng.uniform(_LEAST_RANGE, 1)))
    first = rng.integers(0, times - length, endpoint=True)
    at = np.arange(times)
    return np.where((at >= first) & (at < first + length), 0, -1)


def group(horizon: str, fleet: StudiedHomes, rng: np.random.Generator) -> Ints:
    """Return 0 for the homes of a random group, else −1."""
    return np.where(rng.permutation(len(fleet.readings)) < GROUPS[horizon], 0, -1)


@lru_cache(maxsize=16)
def _strata(horizon: str, fleet: StudiedHomes) -> tuple[HomeCells, tuple[Floats, Floats]]:
    times = _times(fleet)
    cells = times.merged(*strata_of(horizon, np.arange(len(times.n)), fleet))
    return cells, cells.expected(given_setting(fleet), fleet.copies)


@lru_cache(maxsize=2)
def _times(fleet: StudiedHomes) -> HomeCells:
    return fleet.by_time(given_setting(fleet).stream.high)


@lru_cache(maxsize=2)
def _homes(fleet: StudiedHomes) -> HomeCells:
    return fleet.by_home(given_setting(fleet).stream.high)
