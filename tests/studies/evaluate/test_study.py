"""What a study is made of: tasks whose draws are their own, and values that are checked."""

import numpy as np
import pytest

from edge_ldp.device.errors import ParameterError
from studies.evaluate.study import Task, Values, rng
from tests.studies.evaluate.small import STUDY

TASK = Task("2", "beta", "SW+EMS", 1.0, 0)


def test_equal_tasks_draw_alike_and_any_other_differently() -> None:
    others = [
        Task("3", "beta", "SW+EMS", 1.0, 0),
        Task("2", "spiky", "SW+EMS", 1.0, 0),
        Task("2", "beta", "SW+EM", 1.0, 0),
        Task("2", "beta", "SW+EMS", 1.5, 0),
        Task("2", "beta", "SW+EMS", 1.0, 1),
    ]
    first = rng(TASK).integers(1 << 60)
    assert first == rng(Task("2", "beta", "SW+EMS", 1.0, 0)).integers(1 << 60)
    drawn = {int(first), *(int(rng(other).integers(1 << 60)) for other in others)}
    drawn.add(int(rng(TASK, "queries").integers(1 << 60)))
    assert len(drawn) == 7


def test_a_study_lists_its_figures_and_measures_once() -> None:
    assert STUDY.figures == ("1", "1b")
    assert STUDY.metrics == ("error", "other")


def test_the_digest_changes_with_name_values_order_and_range() -> None:
    made = np.array([1, 2, 3], np.int64)
    sets = [
        Values("a", made, 0, 9, "W", ""),
        Values("b", made, 0, 9, "W", ""),
        Values("a", made[::-1].copy(), 0, 9, "W", ""),
        Values("a", made, 0, 8, "W", ""),
        Values("a", made, -1, 9, "W", ""),
    ]
    assert len({one.digest() for one in sets}) == 5
    assert Values("a", made.copy(), 0, 9, "kW", "other").digest() == sets[0].digest()


@pytest.mark.parametrize(
    ("given", "low", "ceiling", "about"),
    [
        (np.zeros(0, np.int64), 0, 9, "one or more"),
        (np.zeros((2, 2), np.int64), 0, 9, "one row"),
        (np.zeros(3), 0, 9, "int64"),
        (np.array([10]), 0, 9, "0..9"),
        (np.array([-1]), 0, 9, "0..9"),
        (np.array([3]), 3, 3, "low < ceiling"),
    ],
)
def test_values_outside_their_claim_are_refused(
    given: np.ndarray, low: int, ceiling: int, about: str
) -> None:
    with pytest.raises(ParameterError, match=about):
        Values("a", given, low, ceiling, "", "")
