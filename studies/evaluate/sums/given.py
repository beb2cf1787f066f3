"""Runs, and what is asked of them: a week, a day, an hour of the day, a range, a group of homes.

Weeks, days and hours of the day are strata of the run; a range and a group of homes are asked for
alone, as `query` does. Every truth is the mean of these very homes' readings in the slots in which
they were there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edge_ldp.sums import estimate_means
from edge_ldp.sums.clustered import widened
from studies.evaluate.sums.fleet import (
    HOURS,
    DrawnCodes,
    ReportingSlots,
    Setting,
    coded,
    epochs,
    given_setting,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from edge_ldp.sums import Epoch, MeanEstimate
    from studies.evaluate.sums.fleet import StudiedHomes

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


class Stretch(NamedTuple):
    """What came in the times first ≤ t < end, under one setting."""

    first: int
    end: int
    setting: Setting
    reports: ReportingSlots
    codes: DrawnCodes


def possible(horizon: str, fleet: StudiedHomes) -> bool:
    """Say whether a fleet is large and long enough to be asked so; of groups there are two."""
    if horizon in GROUPS:
        return len(fleet.readings) >= 2 * GROUPS[horizon]
    least = {WEEKS: 2 * WEEK, DAYS: 2, HOUR: 1}.get(horizon, 0)
    days = len(fleet.times) // fleet.slots_per_day
    return days >= least and (horizon != HOUR or fleet.a_day == HOURS)


def run_given(fleet: StudiedHomes, rng: np.random.Generator) -> list[Stretch]:
    """Return one run with θ and the share of surveys given: only the intervals are on trial."""
    setting = given_setting(fleet)
    reports = fleet.drawn(rng)
    codes = coded(setting, reports.value, rng)
    return [Stretch(0, int(fleet.times[-1]) + 1, setting, reports, codes)]


def answers_of(
    horizon: str, fleet: StudiedHomes, of: Sequence[Stretch], rng: np.random.Generator
) -> list[AskedInterval]:
    """Return the answers of a run: one a stratum; `rng` chooses what is asked for at random."""
    begin, end = of[0].first, of[-1].end
    homes = np.ones(len(fleet.readings) * fleet.copies, np.bool_)
    which, strata = np.zeros(end - begin, np.int64), 1
    if horizon in GROUPS:
        homes = rng.permutation(len(homes)) < GROUPS[horizon]
    elif horizon == RANGE:
        which = some_range(end - begin, rng)
    else:
        which, strata = strata_of(horizon, np.arange(begin, end), fleet)
    at = fleet.times - begin
    stratum = np.where(at >= 0, which[np.maximum(at, 0)], -1)
    parts = [
        epochs(
            part.setting,
            part.codes,
            np.where(homes[part.reports.home], stratum[part.reports.slot], -1),
            strata,
        )
        for part in of
    ]
    return answers([*zip(*parts, strict=True)], _truths(fleet, homes, stratum, strata), fleet)


def _truths(
    fleet: StudiedHomes, homes: NDArray[np.bool_], stratum: Ints, strata: int
) -> list[float]:
    """Return each stratum's mean of all readings of these homes, each as often as it is one."""
    if homes.all():
        n, sums = fleet.every
    else:
        times = homes.reshape(fleet.copies, -1).sum(axis=0).astype(np.float64)
        some = times.nonzero()
        n, sums = (times[some] @ part[some] for part in fleet.counted)
    kept = stratum >= 0
    counted, total = (np.bincount(stratum[kept], of[kept], strata) for of in (n, sums))
    return list((total / counted).tolist())


def answers(
    strata: Sequence[Sequence[Epoch]], truths: Sequence[float], fleet: StudiedHomes
) -> list[AskedInterval]:
    """Return what is found of each stratum, of a single one as the whole."""
    means = estimate_means(strata, ceiling=fleet.ceiling)
    found = means.strata if len(strata) > 1 else [means.whole]
    return [
        AskedInterval(widened(mean, of, effect=fleet.schedule, ceiling=fleet.ceiling), truth)
        for mean, of, truth in zip(found, strata, truths, strict=True)
        if mean is not None
    ]


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
