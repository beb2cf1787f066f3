"""AGG-28: intervals hold on laws that nobody tuned them to.

`make test-slow` checks every cell of the study's figures for made-up laws, 400 runs each, and the
whole pipeline on some; `make test` a part of it on a quarter of the homes. Draws are seeded.
"""

from dataclasses import replace

import numpy as np
import pytest

from studies.evaluate.study import Options, Task, Values
from studies.evaluate.sums import STUDY, laws
from studies.evaluate.sums.given import HORIZONS
from studies.evaluate.sums.study import EPSILONS, RUNS
from studies.schedule import heaters

REQUIRED = 0.935  # of intervals at 95 %


def quarter(name: str) -> Values:
    whole = laws.made_fleet(name)
    part = whole.values[: len(whole.values) // 4]
    return replace(whole, values=part, homes=whole.homes // 4)


# one law here, four with the slow tests
@pytest.mark.parametrize(
    "name",
    ["heap", *(pytest.param(n, marks=pytest.mark.slow) for n in ("far-atom", "humps", "lomax"))],
)
def test_an_interval_on_a_law_nobody_tuned_to_holds_AGG_28(name: str) -> None:
    """Four laws with 60 runs of three horizons, whole, by hour and of a group.

    With other seeds a law would fail once in 10,000 tries where exactly 95 % of 60 runs hold.
    """
    values = quarter(name)
    for horizon in ("whole run", "hour of day", "group of 30"):
        found = [
            STUDY.measure(Task("given", name, horizon, 1.0, seed), values)["coverage"]
            for seed in range(3)
        ]
        assert np.mean(found) >= 0.83


@pytest.mark.parametrize(("epsilon", "period"), [(1.0, 107), (8.0, 107), (8.0, 97)])
def test_intervals_hold_of_loads_that_are_on_in_all_homes_at_once_AGG_31(
    epsilon: float, period: int
) -> None:
    """AGG_31: 60 runs of 400 storage heaters, for the ends of what a window's ε is split into.

    Seeded. What holds exactly 95 % has fewer than 52 of 60 once in 500 tries; where 97 slots came
    back unnoticed 1 × ε 8 held in 255 of 600: its intervals count that now.
    """
    fleet = heaters.homes(epsilon, period)
    found = heaters.held(fleet, seeds=1, horizons=("whole run",))
    assert sum(found["whole run"]) >= 52
    if period == heaters.homes(epsilon, None).window.period:
        printed = float(np.mean(found["half-width"]))
        assert heaters.forecast_half(fleet) == pytest.approx(printed, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", laws.NAMES)
def test_every_cell_of_400_runs_holds_less_its_sampling_error_AGG_28(
    name: str, epsilon: float
) -> None:
    """A cell that holds exactly 95 % fails once in 10,000: 560 cells, one false alarm in 18."""
    values = laws.made_fleet(name)
    for horizon in HORIZONS:
        tasks = [Task("given", name, horizon, epsilon, seed) for seed in range(20)]
        found = np.array([STUDY.measure(task, values)["coverage"] for task in tasks])
        error = max(found.std(ddof=1), (0.05 * 0.95 / RUNS) ** 0.5) / len(found) ** 0.5
        assert found.mean() >= REQUIRED - 2.4 * error, horizon


@pytest.mark.slow
@pytest.mark.parametrize("name", ["far-atom", "humps", "heap", "lomax"])
def test_the_whole_pipeline_holds_too_AGG_28(name: str) -> None:
    """60 runs of each law; what holds exactly 95 % fails once in 10,000."""
    values = laws.made_fleet(name)
    for horizon in ("whole run", "hour of day", "group of 100"):
        tasks = [Task("pipeline", name, horizon, 1.0, seed) for seed in range(60)]
        assert np.mean([STUDY.measure(task, values)["coverage"] for task in tasks]) >= 0.83


def test_every_set_is_asked_all_that_it_is_large_enough_for() -> None:
    values = quarter("narrow")
    work = STUDY.tasks([values], Options(seeds=1))
    assert len(work) == len(set(work))
    horizons = [name for name in HORIZONS if name != "group of 100"]
    found = {(task.figure, task.series) for task in work}
    assert found == {(figure, name) for figure in ("given", "pipeline") for name in horizons}


def test_a_run_of_the_pipeline_answers_every_horizon_alike_each_time() -> None:
    values = quarter("heap")
    horizons = ("whole run", "week", "random range", "group of 30")
    tasks = [Task("pipeline", "heap", horizon, 1.0, 3) for horizon in horizons]
    every = [STUDY.measure(task, values) for task in tasks]
    assert [STUDY.measure(task, values) for task in reversed(tasks)] == every[::-1]
    for found in every:
        assert set(found) <= set(STUDY.metrics)
        assert 0 <= found["coverage"] <= 1
        assert found["half_width"] > found["noise"]
        assert values.low < found["theta"] < values.ceiling
