"""The study as the harness sees it: its tasks, their measures, its tables."""

from collections import Counter

import pytest

from studies.evaluate.report import tables
from studies.evaluate.study import Options, StudyRow, Task
from studies.evaluate.summary import summarise
from studies.evaluate.tops import STUDY
from studies.evaluate.tops.measures import ZERO, layout_of
from studies.evaluate.tops.systems import SYSTEMS
from tests.studies.evaluate.tops.sets import small

QUICK = Options(epsilons=(0.5,), seeds=2, quick=True)
SET = small()


@pytest.fixture(scope="module")
def rows() -> list[StudyRow]:
    return [StudyRow(task, STUDY.measure(task, SET)) for task in STUDY.tasks([SET], QUICK)]


def test_every_task_gives_declared_finite_measures(rows: list[StudyRow]) -> None:
    assert {row.task.figure for row in rows} == {"1", "2", "3", "4", "5", "6", "7"}
    for row in rows:
        assert row.measures
        assert set(row.measures) <= set(STUDY.metrics)
        assert all(abs(value) < 1e40 for value in row.measures.values())


def test_every_panel_has_something_to_draw(rows: list[StudyRow]) -> None:
    for panel in STUDY.panels:
        figure = panel.of or panel.figure
        assert any(row.task.figure == figure and panel.metric in row.measures for row in rows)
    assert STUDY.figures == ("1", "2", "3", "4", "5", "6", "7", "10")


def test_tasks_are_distinct_and_repeats_come_one_after_the_other() -> None:
    tasks = STUDY.tasks([SET, small("other")], Options(seeds=3))
    assert max(Counter(tasks).values()) == 1
    seeds = [task.seed for task in tasks if task.figure in "34567"]
    assert seeds == sorted(seeds)


def test_a_measure_depends_on_its_task_alone(rows: list[StudyRow]) -> None:
    layout_of.cache_clear()
    for row in rows[:: len(rows) // 40][::-1]:
        assert STUDY.measure(row.task, SET) == row.measures


def test_seeds_differ_and_always_zero_needs_no_budget() -> None:
    def mse(series: str, x: float, seed: int) -> float:
        return STUDY.measure(Task("3", "own", series, x, seed), SET)["mse"]

    assert mse("ToPS", 0.5, 0) != mse("ToPS", 0.5, 1)
    assert mse(ZERO, 0.5, 0) == mse(ZERO, 2.0, 0)


def test_more_budget_and_better_systems_mean_smaller_errors() -> None:
    """As in figure 3, over ten repeats: PAK, then NM-E + H2, then ToPS."""

    def mean(series: str, x: float) -> float:
        runs = [STUDY.measure(Task("3", "own", series, x, seed), SET)["mse"] for seed in range(10)]
        return sum(runs) / len(runs)

    assert mean("ToPS", 0.5) < mean("NM-E + H2", 0.5) < mean("PAK", 0.5) / 100
    assert mean("ToPS", 2.0) < mean("ToPS", 0.1)


def test_tables_have_every_system(rows: list[StudyRow]) -> None:
    text = tables(STUDY.panels, summarise(rows))
    for name in SYSTEMS:
        if name != "ToPS, s=3":  # whose blocks are as long as this stream
            assert f"| own | {name} |" in text
    assert "nan" not in text
