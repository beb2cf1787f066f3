"""The page of the study `sums`: what held at the least, and which cells fall short."""

from studies.evaluate.study import StudyRow, Task
from studies.evaluate.summary import summarise
from studies.papers.sums import short_of, tables


def rows(horizon: str, *held: float) -> list[StudyRow]:
    return [
        StudyRow(
            Task("given-homes", "some", horizon, 1.0, seed),
            {"coverage": value, "half_width": 0.05, "error": 0.001},
        )
        for seed, value in enumerate(held)
    ]


def test_a_cell_falls_short_only_by_more_than_its_own_error() -> None:
    found = rows("day", 0.8, 0.81, 0.8, 0.82) + rows("week", 0.7, 1.0, 1.0, 0.95)
    assert [point.series for point in short_of(summarise(found))] == ["day"]


def test_the_page_has_a_line_a_set_and_a_column_a_horizon() -> None:
    page = tables(rows("whole run", 0.95, 0.97) + rows("day", 1.0, 1.0))
    assert "| given-homes, whole run | 1 | 96.0 | 96.0 ± 1.0 (some) | 0 |" in page
    assert "| data | whole run | day |" in page
    assert "| some, ε 1 | 96.0 ± 1.0; ± 5; +0.1 | 100.0 ± 0.0; ± 5; +0.1 |" in page
