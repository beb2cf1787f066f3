"""The study `topl`: what it is made of, what it and what it measures."""

import numpy as np
import pytest

from studies.evaluate.study import Options, Task, Values
from studies.evaluate.topl import STUDY
from studies.evaluate.topl.rules import ADAPTIVE, EPOCHS, ONE_SURVEY, SW_W
from studies.evaluate.topl.stream import best, stream_of
from studies.evaluate.topl.study import BEST, POINTS, TRUTH, WIDTH

DRAWN = np.random.default_rng(0).geometric(0.1, 5000).astype(np.int64)
VALUES = Values("made", np.minimum(DRAWN, 300), 0, 400, "W", "drawn")


def test_every_figure_has_its_tasks_once() -> None:
    work = STUDY.tasks([VALUES], Options(epsilons=(0.5, 1.0), seeds=3))
    assert len(work) == len(set(work))
    assert {task.figure for task in work} == set(STUDY.figures)
    per_figure = {figure: sum(task.figure == figure for task in work) for figure in STUDY.figures}
    rules = len(ONE_SURVEY) + 1
    expected = {"8": 2 * (3 * rules + 2), "epochs": 2 * 3 * EPOCHS, "9": 3 * POINTS}
    assert per_figure == expected


def test_a_quick_run_is_a_small_part_of_the_whole() -> None:
    quick = STUDY.tasks([VALUES], Options(quick=True))
    assert len(quick) < len(STUDY.tasks([VALUES], Options())) / 10
    assert {task.figure for task in quick} == set(STUDY.figures)


@pytest.mark.parametrize("rule", [*ONE_SURVEY, ADAPTIVE, BEST])
def test_a_threshold_comes_with_its_error_and_the_ratio_to_the_least(rule: str) -> None:
    found = STUDY.measure(Task("8", "made", rule, 1.0, 0), VALUES)
    assert set(found) == {"theta", "mse", "ratio"}
    assert found["mse"] == stream_of(VALUES).mse(round(found["theta"]))
    assert found["ratio"] >= 1
    assert (found["ratio"] == 1) or rule != BEST


def test_the_last_epoch_is_what_figure_8_shows() -> None:
    last = STUDY.measure(Task("epochs", "made", "ε = 1", float(EPOCHS), 0), VALUES)
    assert last == STUDY.measure(Task("8", "made", ADAPTIVE, 1.0, 0), VALUES)


def test_the_stream_as_reported_is_near_the_truth() -> None:
    """Standard error of a point: θ/2·√(V/16,384), some 0.5 here; false alarm 10⁻⁶ a comparison."""
    tasks = {name: Task("9", "made", name, 3 * WIDTH / 1000, 0) for name in (TRUTH, SW_W, ADAPTIVE)}
    found = {name: STUDY.measure(task, VALUES)["average"] for name, task in tasks.items()}
    assert found[TRUTH] == pytest.approx(DRAWN.mean(), abs=0.5)
    high = best(stream_of(VALUES))
    assert found[ADAPTIVE] == pytest.approx(found[TRUTH], abs=high / 2 * (4.3 / WIDTH) ** 0.5 * 5)
    assert found[ADAPTIVE] != found[TRUTH]
