"""Runs of the whole pipeline: surveys, the choice of θ and share, streams, and then the intervals.

At first every report is a survey; once there are enough, θ and the share are chosen as the service
does (`edge_ldp.threshold.choice`) for hours of the day over 28 days, and looked at again after one
week, three and seven, by all reports so far. Sums begin where stream reports begin.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edge_ldp.evaluate.sums.fleet import Setting, epoch
from edge_ldp.evaluate.sums.given import (
    GROUPS,
    RANGE,
    WEEK,
    AskedInterval,
    answers,
    group,
    some_range,
    strata_of,
)
from edge_ldp.sums import Question
from edge_ldp.threshold.choice import Aim, outlook

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from edge_ldp import Mechanism
    from edge_ldp.evaluate.sums.fleet import HomeCells, StudiedHomes

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

ENOUGH = 4096  # survey reports
HORIZON_DAYS = 28
HYSTERESIS = 0.1


class Stretch(NamedTuple):
    """The times first ≤ t < end under one setting; counts of codes, times × codes."""

    first: int
    end: int
    setting: Setting
    streams: Ints
    surveys: Ints


def run_fleet(fleet: StudiedHomes, rng: np.random.Generator) -> list[Stretch]:
    """Return one run of the fleet, from its first stream report on."""
    times = int(fleet.times[-1]) + 1
    per_time = fleet.readings.size * fleet.copies / times
    first = min(times - 1, int(np.ceil(ENOUGH / per_time)))
    start = Setting(fleet.stream(fleet.ceiling), fleet.survey, 1.0)
    begun = _stretch(fleet, 0, first, start, rng)
    counts: dict[Mechanism, Floats] = {fleet.survey: begun.surveys.sum(axis=0) * 1.0}
    aim = Aim(
        low=fleet.low,
        ceiling=fleet.ceiling,
        unit_variance=start.stream.unit_variance,
        survey=fleet.survey,
        question=Question(per_time * HORIZON_DAYS * fleet.a_day, fleet.a_day),
    )
    setting, stretches = start, list[Stretch]()
    while first < times:
        found = outlook(aim, counts, rng)
        if setting is start or not found.keeps(setting.stream.high, setting.share, HYSTERESIS):
            best = found.best()
            setting = Setting(fleet.stream(best.theta), fleet.survey, best.share)
        weeks = 1 << len(stretches)
        end = min(times, first + weeks * WEEK * fleet.a_day)
        new = _stretch(fleet, first, end, setting, rng)
        for mechanism, codes in ((setting.stream, new.streams), (setting.survey, new.surveys)):
            counts[mechanism] = counts.get(mechanism, 0.0) + codes.sum(axis=0)
        stretches.append(new)
        first = end
    return stretches


def answers_of(
    horizon: str, fleet: StudiedHomes, of: Sequence[Stretch], rng: np.random.Generator
) -> list[AskedInterval]:
    """Return the answers of a run: one a stratum; `rng` chooses what is asked for at random."""
    begin, end = of[0].first, of[-1].end
    if horizon in GROUPS:
        return _of_group(fleet, of, group(horizon, fleet, rng), rng)
    times = np.arange(begin, end)
    if horizon == RANGE:
        which, strata = some_range(len(times), rng), 1
    else:
        which, strata = strata_of(horizon, times, fleet)
    epochs = [
        [
            epoch(part.setting, part.streams[mine].sum(axis=0), part.surveys[mine].sum(axis=0))
            for part in of
            if (mine := which[part.first - begin : part.end - begin] == stratum).any()
        ]
        for stratum in range(strata)
    ]
    at = fleet.times - begin
    kept = np.where(at >= 0, which[np.maximum(at, 0)], -1)
    truths = [float(fleet.readings[:, kept == stratum].mean()) for stratum in range(strata)]
    return answers(epochs, truths, fleet.ceiling)


def _of_group(
    fleet: StudiedHomes, of: Sequence[Stretch], which: Ints, rng: np.random.Generator
) -> list[AskedInterval]:
    """Return what is found of some homes, whose reports are drawn apart from the others'."""
    epochs = []
    for part in of:
        mine = (fleet.times >= part.first) & (fleet.times < part.end)
        some = fleet.of(fleet.readings[which == 0][:, mine])
        cells = some.cells(np.array(0), part.setting.stream.high)
        drawn = (rng.poisson(means[0]) for means in cells.expected(part.setting, 1))
        epochs.append(epoch(part.setting, *drawn))
    since = fleet.times >= of[0].first
    return answers([epochs], [float(fleet.readings[which == 0][:, since].mean())], fleet.ceiling)


def _stretch(
    fleet: StudiedHomes, first: int, end: int, setting: Setting, rng: np.random.Generator
) -> Stretch:
    cells = _times(fleet, setting.stream.high).part(first, end)
    streams, surveys = (rng.poisson(means) for means in cells.expected(setting, fleet.copies))
    return Stretch(first, end, setting, streams, surveys)


@lru_cache(maxsize=12)
def _times(fleet: StudiedHomes, theta: int) -> HomeCells:
    return fleet.by_time(theta)
