"""Figures: files of few bytes that depend on the points alone."""

from pathlib import Path

import pytest
from PIL import Image

from studies.evaluate.figure import MOST_COLUMNS, draw_figure
from studies.evaluate.study import Options, Panel, StudyRow
from studies.evaluate.summary import summarise
from tests.studies.evaluate.small import STUDY, measure, tasks, values

SETS = [values(), values("more", 30)]
POINTS = summarise(
    StudyRow(task, measure(task, SETS[task.data != "some"]))
    for task in tasks(SETS, Options(seeds=6))
)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return draw_figure(
        STUDY.panels, POINTS, "Title", tmp_path_factory.mktemp("drawn") / "figure-5.4"
    )


def test_equal_points_give_equal_files(drawn: list[Path], tmp_path: Path) -> None:
    again = draw_figure(STUDY.panels, POINTS, "Title", tmp_path / "b")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in drawn]
    assert [path.name for path in drawn] == ["figure-5.4.png", "figure-5.4.svg"]


def test_an_svg_holds_its_words_and_neither_date_nor_long_numbers(drawn: list[Path]) -> None:
    text = drawn[1].read_text()
    assert all(word in text for word in ("Title", "Errors", "some", "more", "bands: ± 2 standard"))
    assert "dc:date" not in text
    assert len(text) < 60_000


def test_a_png_can_be_opened_and_is_small(drawn: list[Path]) -> None:
    with Image.open(drawn[0]) as image:
        assert min(image.size) > 300
    assert drawn[0].stat().st_size < 60_000


def test_nothing_is_drawn_of_no_points(tmp_path: Path) -> None:
    other = Panel("9", "none", "", "x", "y")
    assert draw_figure([other], POINTS, "Title", tmp_path / "a") == []
    assert list(tmp_path.iterdir()) == []


def test_many_data_sets_stand_in_rows_and_each_names_its_unit(tmp_path: Path) -> None:
    sets = [values(f"set {at}") for at in range(MOST_COLUMNS + 1)]
    points = summarise(
        StudyRow(task, measure(task, sets[0])) for task in tasks(sets, Options(seeds=2))
    )
    units = {one.name: "W" for one in sets}
    png, svg = draw_figure(STUDY.panels, points, "Title", tmp_path / "a", units)
    with Image.open(png) as image:
        assert image.width < 330 * (MOST_COLUMNS - 1)
    assert all(f"set {at}, W" in svg.read_text() for at in range(MOST_COLUMNS + 1))
    assert "too few for bands" in svg.read_text()


def test_one_repeat_has_no_band(tmp_path: Path) -> None:
    single = summarise(
        StudyRow(task, measure(task, SETS[0])) for task in tasks(SETS, Options(seeds=1))
    )
    _, svg = draw_figure(STUDY.panels, single, "Title", tmp_path / "a")
    assert "one run" in svg.read_text()
    assert "FillBetween" not in svg.read_text()
