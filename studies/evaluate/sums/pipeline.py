"""Runs of the whole pipeline: surveys, the choice of θ and share, streams, and then the intervals.

At first every report is a survey; once there are enough, θ and the share are chosen as the service
does (`edge_ldp.threshold.choice`) for hours of the day over 28 days, and looked at again after one
week, three and seven, by all reports so far. Sums begin where stream reports begin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.sums import Question
from edge_ldp.threshold.choice import Aim, outlook
from studies.evaluate.sums.fleet import DrawnCodes, Setting, coded, epochs
from studies.evaluate.sums.given import WEEK, Stretch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edge_ldp import Mechanism
    from studies.evaluate.sums.fleet import StudiedHomes

    Floats = NDArray[np.float64]

ENOUGH = 4096  # survey reports
HORIZON_DAYS = 28
HYSTERESIS = 0.1


def run_fleet(fleet: StudiedHomes, rng: np.random.Generator) -> list[Stretch]:
    """Return one run of the fleet, from its first stream report on."""
    every = fleet.drawn(rng)
    when = fleet.times[every.slot]
    times = int(fleet.times[-1]) + 1
    per_time = fleet.reports / times
    first = min(times - 1, int(np.ceil(ENOUGH / per_time)))
    start = Setting(fleet.stream(fleet.ceiling), fleet.survey, 1.0)
    begun = every.part(when < first)
    counts: dict[Mechanism, Floats] = {}
    _count(counts, start, coded(start, begun.value, rng))
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
        reports = every.part((when >= first) & (when < end))
        codes = coded(setting, reports.value, rng)
        _count(counts, setting, codes)
        stretches.append(Stretch(first, end, setting, reports, codes))
        first = end
    return stretches


def _count(counts: dict[Mechanism, Floats], setting: Setting, codes: DrawnCodes) -> None:
    """Add a stretch's codes to those of all so far, by mechanism."""
    (one,) = epochs(setting, codes, np.zeros(len(codes.code), np.int64), 1)
    for part in (one.stream, one.survey):
        if np.sum(part.counts):
            counts[part.mechanism] = counts.get(part.mechanism, 0.0) + np.asarray(part.counts)
