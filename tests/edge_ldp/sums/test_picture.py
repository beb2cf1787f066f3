"""What a picture of a forecast shows, asked of Matplotlib instead of being drawn."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from io import BytesIO

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edge_ldp.sums import Fleet, Forecast, forecast, homes_law, splits
from edge_ldp.sums.modes import ModeChoice, choices
from edge_ldp.sums.modes_text import ASKED, best_sums
from edge_ldp.sums.picture import COLOURS, DPI, draw_forecast
from edge_ldp.sums.text import TITLES, ForecastStudy

Draw = Callable[..., Figure]


LAW = homes_law(0, 43_470)
FLEET = Fleet(400, 14)
HOMES = [30, 1_000, 40_000]


@cache
def of(fleet: Fleet) -> Forecast:
    return forecast(fleet, LAW)


def curve() -> list[Forecast]:
    return [of(replace(FLEET, homes=homes)) for homes in HOMES]


def alone() -> ForecastStudy:
    return ForecastStudy(LAW, "W", [of(FLEET)], [of(FLEET)])


def with_splits() -> ForecastStudy:
    return alone()._replace(splits=[of(fleet) for fleet in splits(FLEET)[2:5]])


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Draw:
    """Return the figure of a study, which is not rendered: that takes most of the time."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (loading it takes a second)

    saved: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: saved.append(figure))

    def drawn_of(
        study: ForecastStudy,
        forecasts: Sequence[Forecast] | None = None,
        modes: Sequence[Sequence[ModeChoice]] = (),
    ) -> Figure:
        shown = curve() if forecasts is None else forecasts
        draw_forecast(study._replace(curve=shown, modes=modes), BytesIO(), "png")
        return saved.pop()

    return drawn_of


def percents(axes: Axes, title: str) -> tuple[list[float], list[float]]:
    """Return the line of a title: homes, percents."""
    (line,) = (line for line in axes.get_lines() if line.get_label() == title)
    return np.asarray(line.get_xdata()).tolist(), np.asarray(line.get_ydata()).tolist()


def test_a_panel_is_six_inches_wide_and_splits_have_their_own(drawn: Draw) -> None:
    for study, panels in ((alone(), 1), (with_splits(), 2)):
        figure = drawn(study)
        assert len(figure.get_axes()) == panels
        assert figure.get_size_inches().tolist() == [6 * panels, 4.8]
        assert figure.dpi == DPI


def test_a_line_for_each_horizon_goes_through_its_percents_by_homes(drawn: Draw) -> None:
    (axes,) = drawn(alone()).get_axes()
    for name, title in TITLES.items():
        rows = [next(row for row in each.rows if row.horizon == name) for each in curve()]
        assert percents(axes, title) == (HOMES, [row.percent for row in rows])
    colours = [line.get_color() for line in axes.get_lines()]
    assert colours[: len(TITLES)] == [COLOURS[name] for name in TITLES]
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == list(TITLES.values())


def test_one_number_of_homes_is_marked_and_several_are_not(drawn: Draw) -> None:
    (axes,) = drawn(alone()).get_axes()
    *_, mark = axes.get_lines()
    assert len(axes.get_lines()) == len(TITLES) + 1
    assert np.asarray(mark.get_xdata()).tolist() == [400, 400]
    (axes,) = drawn(alone()._replace(by_homes=curve()[:2])).get_axes()
    assert len(axes.get_lines()) == len(TITLES)


def test_percents_are_read_off_at_1_2_and_5_of_each_decade_along_lines(drawn: Draw) -> None:
    wide = [
        replace(each, rows=tuple(row._replace(percent=percent) for row in each.rows))
        for each, percent in zip(curve(), (0.07, 1.0, 900.0), strict=True)
    ]
    (axes,) = drawn(alone(), wide).get_axes()
    ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500]
    assert axes.get_yticks().tolist() == ticks
    assert [text.get_text() for text in axes.get_yticklabels()] == [f"{at:g} %" for at in ticks]
    for axis in (axes.xaxis, axes.yaxis):
        assert all(line.get_visible() for line in axis.get_gridlines())
    (axes,) = drawn(alone()).get_axes()
    low, high = axes.get_ylim()
    assert axes.get_yticks().tolist() == [at for at in ticks if low <= at <= high] != ticks


def test_a_bar_for_each_split_is_as_long_as_its_percent_and_the_asked_one_stands_out(
    drawn: Draw,
) -> None:
    study = with_splits()
    _, axes = drawn(study).get_axes()
    ends = [bar.get_patch_transform().transform((1, 0))[0] for bar in axes.patches]
    assert ends == pytest.approx([each.asked.percent for each in study.splits])
    assert [text.get_text() for text in axes.get_yticklabels()] == ["4 × 2", "8 × 1", "16 × 0.5"]
    colours = [bar.get_facecolor() for bar in axes.patches]
    assert colours[0] == colours[2] != colours[1]


def test_of_longer_slots_each_number_of_homes_has_a_bar_of_sums_for_each_question(
    drawn: Draw,
) -> None:
    modes = [choices(one, LAW, ("total", "density", "day"), 4) for one in curve()]
    study = with_splits()._replace(by_homes=curve(), parts=4)
    (axes,) = drawn(study, modes=modes).get_axes()
    told = [row and row.percent for each in modes for row in map(best_sums, each[::2])]
    assert [bar.get_width() for bar in axes.patches] == told  # type: ignore[attr-defined]
    legend = axes.get_legend()
    assert legend is not None
    names = ["30 homes", "1,000 homes", "40,000 homes"]
    assert [text.get_text() for text in legend.get_texts()] == names


def test_modes_have_a_panel_with_a_bar_for_each_question_that_both_answer(drawn: Draw) -> None:
    modes = choices(of(FLEET), LAW)
    both = [one for one in modes if one.question not in {"density", "theta"}]
    _, axes = drawn(alone(), modes=[modes]).get_axes()
    sums = [row and row.percent for row in map(best_sums, both)]
    told = [*(one.rows[0].percent for one in both), *sums]
    assert [bar.get_width() for bar in axes.patches] == told  # type: ignore[attr-defined]
    middles = [bar.get_y() + bar.get_height() / 2 for bar in axes.patches]  # type: ignore[attr-defined]
    assert middles == pytest.approx(
        [at + shift for shift in (-0.2, 0.2) for at in range(len(both))]
    )
    assert [text.get_text() for text in axes.get_yticklabels()] == [
        ASKED[one.question] for one in both
    ]
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["reports", "sums at home"]
    assert axes.get_xlim() == (0, 1.25 * max(one or 0 for one in told))
    assert axes.yaxis_inverted()
