"""The study `sums`: whether the 95 % of sums is 95 %, on laws and homes that nobody tuned it to.

Figure "given": θ and the share of surveys are given, a seed is 20 runs. Figure "pipeline": both are
chosen from reports, a seed is one run. Homes' ledgers and every report of a run are drawn anew; a
measurement is the average over runs and strata. With ε of a report goes how many of them the
shipped window's ε is split into. Homes join, leave and miss slots.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.sums import Question
from edge_ldp.threshold.choice import Aim, outlook
from studies.evaluate.study import Panel, Study, Task, rng
from studies.evaluate.sums import laws
from studies.evaluate.sums.fleet import Setting, coded, cost, epochs, fleet_of
from studies.evaluate.sums.given import HORIZONS, WEEK, Stretch, answers_of, possible, run_given

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from edge_ldp import Mechanism
    from studies.evaluate.study import Options, Values
    from studies.evaluate.sums.fleet import DrawnCodes, StudiedHomes
    from studies.evaluate.sums.given import AskedInterval

    Floats = NDArray[np.float64]

RUNS = 20  # of a seed
ENOUGH = 4096  # survey reports
HORIZON_DAYS = 28
HYSTERESIS = 0.1
SEEDS, QUICK_SEEDS = 10, 1
EPSILONS, QUICK_EPSILONS = (1.0, 2.0, 4.0, 8.0), (1.0, 8.0)
GIVEN, PIPELINE = "given", "pipeline"
DATA = (*laws.NAMES, "homes")


def tasks(data: Sequence[Values], options: Options) -> list[Task]:
    """Return the work, set by set: what is known of a set is worked out once."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    epsilons = options.epsilons or (QUICK_EPSILONS if options.quick else EPSILONS)
    return [
        Task(figure, values.name, horizon, epsilon, seed)
        for values in data
        for epsilon in epsilons
        for figure in (GIVEN, PIPELINE)
        for seed in range(seeds)
        for horizon in HORIZONS
        if possible(horizon, fleet_of(values, epsilon))
    ]


def measure(task: Task, values: Values) -> Mapping[str, float]:
    """Return the share of intervals that held, their half-width and error over the mean."""
    fleet = fleet_of(values, task.x)
    size = abs(float(values.values.mean()))
    runs = _runs(replace(task, series=""), fleet)
    draws = rng(task)
    found = [_measured(answers_of(task.series, fleet, run, draws), size) for run in runs]
    measures = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
    if task.figure == PIPELINE:
        chosen = runs[0][-1].setting
        measures |= {"theta": float(chosen.stream.high), "cost": cost(fleet, chosen)}
    return measures


@lru_cache(maxsize=1)
def _runs(task: Task, fleet: StudiedHomes) -> list[list[Stretch]]:
    """Return the runs that all horizons of a seed are asked of."""
    draws = rng(task)
    if task.figure == PIPELINE:
        return [run_fleet(fleet, draws)]
    return [run_given(fleet, draws) for _ in range(RUNS)]


def run_fleet(fleet: StudiedHomes, draws: np.random.Generator) -> list[Stretch]:
    """Return one run of the fleet, from its first stream report on.

    At first every report is a survey; once there are enough, θ and the share are chosen as the
    service does for hours of the day over 28 days, and looked at again after one week, three and
    seven, by all reports so far.
    """
    every = fleet.drawn(draws)
    when = fleet.times[every.slot]
    times = int(fleet.times[-1]) + 1
    per_time = fleet.reports / times
    first = min(times - 1, int(np.ceil(ENOUGH / per_time)))
    start = Setting(fleet.stream(fleet.ceiling), fleet.survey, 1.0)
    begun = every.part(when < first)
    counts: dict[Mechanism, Floats] = {}
    _count(counts, start, coded(start, begun.value, draws))
    aim = Aim(
        low=fleet.low,
        ceiling=fleet.ceiling,
        unit_variance=start.stream.unit_variance,
        survey=fleet.survey,
        question=Question(per_time * HORIZON_DAYS * fleet.a_day, fleet.a_day),
    )
    setting, stretches = start, list[Stretch]()
    while first < times:
        found = outlook(aim, counts, draws)
        if setting is start or not found.keeps(setting.stream.high, setting.share, HYSTERESIS):
            best = found.best()
            setting = Setting(fleet.stream(best.theta), fleet.survey, best.share)
        weeks = 1 << len(stretches)
        end = min(times, first + weeks * WEEK * fleet.a_day)
        reports = every.part((when >= first) & (when < end))
        codes = coded(setting, reports.value, draws)
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


def _measured(answers: Sequence[AskedInterval], size: float) -> dict[str, float]:
    low, high, mean = np.array([(a.found.low, a.found.high, a.found.mean) for a in answers]).T
    truth = np.array([a.truth for a in answers])
    return {
        "coverage": float(((low <= truth) & (truth <= high)).mean()),
        "half_width": float((high - low).mean() / 2 / size),
        "error": float((mean - truth).mean() / size),
        "below": float((truth < low).mean()),
        "noise": float(np.mean([a.found.noise_se for a in answers]) / size),
        "tail": float(np.mean([a.found.bias_se for a in answers]) / size),
        "own": float(np.mean([a.found.own for a in answers])),
    }


def _panels() -> tuple[Panel, ...]:
    return tuple(
        Panel(figure, metric, "", "ε of a report", label, compared="")
        for figure in (GIVEN, PIPELINE)
        for metric, label in (
            ("coverage", "share of 95 % intervals that hold"),
            ("half_width", "half-width over mean"),
        )
    )


STUDY = Study(
    name="sums",
    about="means and their 95 % intervals on laws and homes that nobody tuned them to",
    version=3,
    data=DATA,
    tasks=tasks,
    measure=measure,
    panels=_panels(),
    given=("months",),
    quick_data=("lognormal", "pareto", "chargers", "storage-heaters"),
    more=("error", "below", "noise", "tail", "own", "theta", "cost"),
)
