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

from studies.evaluate.study import Panel, Study, Task, rng
from studies.evaluate.sums import laws, pipeline
from studies.evaluate.sums.fleet import cost, fleet_of
from studies.evaluate.sums.given import HORIZONS, answers_of, possible, run_given

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from studies.evaluate.study import Options, Values
    from studies.evaluate.sums.fleet import StudiedHomes
    from studies.evaluate.sums.given import AskedInterval, Stretch

RUNS = 20  # of a seed
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
        return [pipeline.run_fleet(fleet, draws)]
    return [run_given(fleet, draws) for _ in range(RUNS)]


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
