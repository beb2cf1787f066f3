"""The study `sw` at tiny size: every figure's tasks, what each measures, and the tables."""

import numpy as np
import pytest

from studies.evaluate.metrics import w1
from studies.evaluate.study import Options, Task, Values, rng
from studies.evaluate.sw import STUDY
from studies.evaluate.sw.cells import cells_of, size_of
from studies.evaluate.sw.methods import HAAR, MEANS, METHODS, SIGNED, moment_errors
from studies.evaluate.sw.waves import TOPS, best_width

TINY = Values("tiny", np.arange(4000) * 7 % 200, 0, 255, "W", "a comb")
RANGES = {"range_0.1", "range_0.4"}
DENSITY_METRICS = {"w1", "ks", *RANGES, "mean", "variance", "quantile"}


def test_the_papers_numbers_of_tasks_are_there() -> None:
    tasks = STUDY.tasks([TINY], Options())
    counts = {figure: sum(task.figure == figure for task in tasks) for figure in "2567"}
    assert len(tasks) == len(set(tasks)) == sum(counts.values())
    assert counts["2"] == 20 * 13 * 5
    assert counts["5"] == 8 * 6 * 9
    assert counts["6"] == 8 * 4 * 9
    assert counts["7"] == 8 * 5  # 256 integers: only one number of buckets fits
    assert {task.seed for task in tasks} == set(range(20))
    assert {task.figure for task in tasks} == {p.of or p.figure for p in STUDY.panels}


def test_budgets_and_seeds_asked_for_replace_the_studys() -> None:
    tasks = STUDY.tasks([TINY], Options(epsilons=(0.7,), seeds=3))
    assert {task.x for task in tasks if task.figure in "27"} == {0.7}
    assert {task.series for task in tasks if task.figure == "6"} == {"ε = 0.7"}
    assert {task.seed for task in tasks if task.figure == "5"} == {0, 1, 2}
    quick = STUDY.tasks([TINY], Options(quick=True))
    assert len(quick) < len(STUDY.tasks([TINY], Options())) / 10


@pytest.mark.parametrize("series", [*METHODS, *MEANS])
def test_each_method_gives_the_measures_it_is_made_for_and_the_same_again(series: str) -> None:
    task = Task("2", "tiny", series, 2.0, 0)
    found = STUDY.measure(task, TINY)
    expected = RANGES if series in SIGNED else DENSITY_METRICS
    assert set(found) == ({"mean", "variance"} if series in MEANS else expected)
    assert all(0 <= value < 0.5 for value in found.values())
    assert found == STUDY.measure(task, TINY)
    assert found != STUDY.measure(Task("2", "tiny", series, 2.0, 1), TINY)


@pytest.mark.parametrize("series", METHODS)
def test_each_method_nears_the_truth_at_a_large_budget(series: str) -> None:
    """4,000 reports of ε = 8; HaarHRR's noise hardly falls with ε, as each bit weighs as much."""
    cells = cells_of(TINY)
    found = METHODS[series](cells, 8.0, rng(Task("2", "tiny", series, 8.0, 0)))
    assert len(found.edges) == len(found.probabilities) + 1
    assert w1(cells.truth, found) < (0.06 if series == HAAR else 0.012)


@pytest.mark.parametrize("kind", MEANS)
def test_means_and_variances_near_the_truth_at_a_large_budget(kind: str) -> None:
    errors = moment_errors(kind, TINY, 8.0, np.random.default_rng(0))
    assert errors["mean"] < 0.02
    assert errors["variance"] < 0.02


@pytest.mark.parametrize("shape", TOPS)
def test_each_shape_of_wave_is_measured(shape: str) -> None:
    found = STUDY.measure(Task("5", "tiny", shape, best_width(1.0), 0), TINY)
    assert 0 < found["w1"] < 0.2


def test_widths_and_numbers_of_buckets_are_measured() -> None:
    assert STUDY.measure(Task("6", "tiny", "ε = 2", 0.1, 0), TINY)["w1"] > 0
    assert STUDY.measure(Task("7", "tiny", "64 buckets", 2.0, 0), TINY)["w1"] > 0


def test_a_wave_of_the_wrong_width_is_worse() -> None:
    """ε = 2, b = 0.13 by [SW] §5.3 against 0.4: mean W1 over 5 seeds."""

    def mean(b: float) -> float:
        tasks = [Task("6", "tiny", "ε = 2", b, seed) for seed in range(5)]
        return float(np.mean([STUDY.measure(task, TINY)["w1"] for task in tasks]))

    assert mean(best_width(2.0)) < mean(0.4)


def test_buckets_are_the_papers_and_never_cut_few_integers_unevenly() -> None:
    for name, ceiling, size in (
        ("beta", 2**20 - 1, 256),
        ("taxi", 86_399, 1024),
        ("pos", 1638, 1639),
        ("bits", 1, 2),
    ):
        made = Values(name, np.array([0, 1]), 0, ceiling, "", "")
        assert size_of(made) == size
        assert cells_of(made).truth.probabilities.sum() == 1


def test_the_truth_counts_each_value_in_its_bucket() -> None:
    made = Values("x", np.array([-5, -4, -1, 4, 4]), -5, 4, "", "")
    cells = cells_of(made, 5)
    assert cells.edges.tolist() == [-5, -3, -1, 1, 3, 5]
    assert (cells.truth.probabilities * 5).round(9).tolist() == [2, 0, 1, 0, 2]
