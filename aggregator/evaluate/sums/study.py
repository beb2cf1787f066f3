"""The study `sums`: whether the 95 % of sums is 95 %, on laws and homes that nobody tuned it to.

Figure "given": θ and the share of surveys are given. A seed is 20 runs, each with every report
drawn anew; a measurement is their average over runs and strata. Readings come by homes, in time, or
as the same readings in any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from aggregator.evaluate.study import Panel, Study, Task, rng
from aggregator.evaluate.sums import laws
from aggregator.evaluate.sums.fleet import HOMES, INDEPENDENT, fleet_of
from aggregator.evaluate.sums.given import HORIZONS, asked, possible
from aggregator.evaluate.sums.tables import tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aggregator.evaluate.study import Options, Values
    from aggregator.evaluate.sums.given import Asked

RUNS = 20  # of a seed
SEEDS, QUICK_SEEDS = 20, 1
EPSILONS = (1.0,)
GIVEN = "given"
DATA = (*laws.NAMES, "homes", "household")


def tasks(data: Sequence[Values], options: Options) -> list[Task]:
    """Return the work, set by set: what is known of a set is worked out once."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    return [
        Task(f"{GIVEN}, {mode}", values.name, horizon, epsilon, seed)
        for values in data
        for epsilon in options.epsilons or EPSILONS
        for mode in (INDEPENDENT, HOMES)
        for horizon in HORIZONS
        if possible(horizon, fleet_of(values, mode, epsilon))
        for seed in range(seeds)
    ]


def measure(task: Task, values: Values) -> Mapping[str, float]:
    """Return the share of intervals that held, their half-width and error over the mean."""
    _, mode = task.figure.split(", ")
    fleet = fleet_of(values, mode, task.x)
    draws = rng(task)
    size = abs(float(values.values.mean()))
    runs = [_measured(asked(task.series, fleet, draws), size) for _ in range(RUNS)]
    return {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}


def _measured(answers: Sequence[Asked], size: float) -> dict[str, float]:
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
        Panel(f"{GIVEN}, {mode}", metric, "", "ε of a report", label, compared="")
        for mode in (INDEPENDENT, HOMES)
        for metric, label in (("coverage", "holds"), ("half_width", "half-width over mean"))
    )


STUDY = Study(
    name="sums",
    about="means and their 95 % intervals on laws and homes that nobody tuned them to",
    version=1,
    data=DATA,
    tasks=tasks,
    measure=measure,
    panels=_panels(),
    tables=tables,
    more=("error", "below", "noise", "tail", "own"),
)
