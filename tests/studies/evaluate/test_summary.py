"""Means, standard errors and medians over seeds, and which panel shows them."""

from studies.evaluate.study import StudyRow, Task
from studies.evaluate.summary import drawn_in, summarise, summary_csv
from tests.studies.evaluate.small import STUDY

ROWS = [
    StudyRow(Task("1", "some", "a", 1.0, seed), {"error": value, "other": 2.0})
    for seed, value in enumerate((1.0, 2.0, 6.0))
]
ROWS.append(StudyRow(Task("1", "some", "b", 1.0, 0), {"error": 5.0}))


def test_a_points_mean_error_and_median_are_over_its_seeds() -> None:
    first, constant, single = summarise(ROWS)
    assert (first.n, first.mean, first.median) == (3, 3.0, 2.0)
    assert first.standard_error is not None
    assert abs(first.standard_error - (7 / 3) ** 0.5) < 1e-12
    assert (constant.metric, constant.standard_error) == ("other", 0.0)
    assert (single.series, single.n, single.standard_error) == ("b", 1, None)


def test_a_panel_shows_its_measure_of_its_lines() -> None:
    points = summarise(ROWS)
    assert [point.series for point in drawn_in(STUDY.panels[0], points)] == ["a", "b"]
    assert [point.series for point in drawn_in(STUDY.panels[1], points)] == ["b"]


def test_the_summary_is_a_csv_of_six_digits() -> None:
    head, first, *_ = summary_csv(summarise(ROWS)).splitlines()
    assert head == "figure,data,series,x,metric,n,mean,standard_error,median"
    assert first == "1,some,a,1,error,3,3,1.52753,2"
