"""Reports or sums at home: the agreed figures, and who is told what when neither is better."""

import json
from itertools import pairwise
from math import sqrt

import pytest

from edge_ldp.device.errors import ParameterError
from edge_ldp.period_sums.habits import MEASURED, MEASURED_GAS, leak_of_reports, leak_of_sums
from edge_ldp.protocol.ledger import Window
from edge_ldp.sums import Fleet, forecast, homes_law
from edge_ldp.sums.forecast_command import main
from edge_ldp.sums.modes import QUESTIONS, ModeChoice, ModeRow, choices, choose
from edge_ldp.sums.modes_text import modes_text

LAW = homes_law(0, 43_470, 2_000)


def asked(homes: int, question: str, days: int = 28, **given: object) -> ModeChoice:
    fleet = Fleet(homes, days, **given)  # type: ignore[arg-type]
    return choose(question, forecast(fleet, LAW, horizon="whole"), LAW)


def of(choice: ModeChoice, days: int, block: int = 1) -> ModeRow:
    (found,) = [
        row
        for row in choice.rows
        if row.shape and (row.shape.days, row.shape.block) == (days, block)
    ]
    return found


@pytest.mark.parametrize(
    ("homes", "weeks", "month", "blocks"),
    [(30, 10, 4.9, 76.9), (100, 5.4, 2.7, 42.1), (400, 2.7, 1.35, 21)],
)
def test_widths_are_those_that_were_agreed(
    homes: int, weeks: float, month: float, blocks: float
) -> None:
    total, hours = asked(homes, "total"), asked(homes, "hour-of-day")
    assert of(total, 7).percent == pytest.approx(weeks, rel=0.03)
    assert of(total, 28).percent == pytest.approx(month, rel=0.04)
    assert of(hours, 28, 4).percent == pytest.approx(blocks, rel=0.03)
    plain, folded = {30: 119, 100: 65, 400: 33}[homes], of(hours, 28).percent
    assert folded is not None
    assert 0.88 * plain < folded < plain  # folding makes a tenth


def test_the_better_is_the_narrower_in_which_no_habit_shows_more() -> None:
    total = asked(400, "total")
    assert total.best == of(total, 1)
    assert total.best.percent is not None
    narrower = [row for row in total.rows if (row.percent or 0) < total.best.percent]
    reports = leak_of_reports(43_470)
    assert reports is not None
    assert narrower  # weekly sums and monthly ones are: what lasts shows in them
    assert not any(row.leak and row.leak.is_no_more_than(reports) for row in narrower)
    parts, hours = asked(400, "part-of-day"), asked(400, "hour-of-day")
    assert (parts.best, hours.best) == (of(parts, 7), of(hours, 28))  # in blocks, of 7 days
    smaller = homes_law(0, 17_250, 2_000)
    found = choose("part-of-day", forecast(Fleet(400, 28), smaller, horizon="whole"), smaller)
    assert found.best is not None
    assert (found.best.mode, "yours to choose" in found.reason) == ("local", True)


def test_only_reports_tell_how_values_are_spread() -> None:
    for question in ("density", "theta"):
        found = asked(400, question)
        assert [row.mode for row in found.rows] == ["local"]
        assert found.best == found.rows[0]


def test_where_nothing_was_measured_the_narrower_is_better_and_says_so() -> None:
    found = asked(400, "total", window=Window(4, 50, 1), epsilon=2)
    assert found.best is not None
    assert (found.best.mode, "not measured" in found.reason) == ("sums", True)


def test_slots_and_days_that_no_layout_fits_leave_reports() -> None:
    odd = asked(400, "total", slots_a_day=97)
    assert [row.mode for row in odd.rows] == ["local"]
    assert odd.best == odd.rows[0]
    assert [row.mode for row in asked(400, "part-of-day", days=1).rows] == ["local"]
    nothing = asked(400, "week", days=3)
    assert (nothing.rows, nothing.best) == ((), None)
    with pytest.raises(ParameterError, match="question"):
        asked(400, "other")


def test_slots_that_are_several_of_the_windows_are_summed_alone_with_less_noise(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Gas by the hour: 25 hours for 97 quarter hours, as its agents draw (PRV-31)."""
    words = [
        "--homes=100",
        "--ceiling=6000",
        "--mean=180",
        "--unit=dm3",
        "--window=1/97",
        "--parts=4",
    ]
    assert main([*words, "--question", "total", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (found,) = told["modes"]
    (total,) = found["choices"]
    assert (list(told), found["slot_seconds"], total["better"]) == (["modes"], 3600, "sums")
    assert {(row["mode"], row["layout"]["scale"]) for row in total["rows"]} == {("sums", 25 * 6000)}
    month = total["rows"][0]
    plain = 1.96 * sqrt(2 * 100) * 25 * 6000 / (100 * 28 * 24)
    assert 0.88 * plain < month["half_width"] < plain
    assert month["percent"] == pytest.approx(month["half_width"] / 1.8)
    assert main(words) == 0
    first, second, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("28 days of 24 slots each 4 of the window's; 1 report of ε 1 in any 97")
    assert second.startswith("values 0 to 6,000 dm3, mean 180 dm3")
    assert "expected 95 % intervals, sums at home" in rest
    assert "is N times as wide (`setup --gas`: an eighth)" in rest[-2]


def test_a_month_of_gas_is_twice_as_exact_as_four_weeks_and_tells_about_as_much() -> None:
    """As `setup --gas` ships it, an eighth of ε 8: below what a week away shows in reports."""
    week, month = (leak_of_sums(days, 1, 1, 150_000, MEASURED_GAS) for days in (7, 28))
    assert week is not None
    assert month is not None
    reports = leak_of_reports(43_470)
    assert reports is not None
    assert all(abs(one - other) <= 0.04 for one, other in zip(week.found, month.found, strict=True))
    assert max(*week.found, *month.found) < reports.found[0]


def test_a_week_or_day_that_is_all_there_is_is_compared_as_the_whole() -> None:
    for question, days in (("week", 7), ("day", 1)):
        assert asked(400, question, days).rows == asked(400, "total", days).rows
    found = asked(400, "week", days=8)  # of which a week is neither the whole nor one of two
    assert [row.mode for row in found.rows] == ["sums", "sums"]
    assert (found.best, found.reason) == (found.rows[0], "no forecast of reports for it")


@pytest.mark.parametrize(
    ("days", "ceiling", "lines"),
    [
        (
            3,
            43_470,
            [
                "a total ± 40 % ± 20 % 3 sums of 1 day sums at home",
                "a week – – –",
                "a day ± 67 % ± 35 % a sum of 1 day sums at home",
                "part of day ± 76 % – reports",
            ],
        ),
        (
            28,
            17_250,
            [
                "part of day ± 16 % ± 3.3 % a sum of 28 days, 6 cells reports",
                "hour of day ± 31 % ± 24 % 4 sums of 7 days, 24 cells sums at home",
                "how values are spread yes no reports",
            ],
        ),
    ],
)
def test_a_table_shows_both_the_sums_it_means_and_the_better(
    days: int, ceiling: int, lines: list[str]
) -> None:
    law = homes_law(0, ceiling, 2_000)
    text = modes_text(choices(forecast(Fleet(400, days), law, horizon="whole"), law))
    shown = [" ".join(line.split()) for line in text.splitlines()]
    assert [line for line in lines if line not in shown] == []


def test_what_was_measured_is_taken_at_no_larger_noise_and_no_smaller_range() -> None:
    asked_for = (527_073, 418_312, 1 << 40)
    taken = [leak.scale for scale in asked_for if (leak := leak_of_sums(7, 1, 1, scale))]
    assert taken == [418_313, 209_157, 1_054_148]
    assert leak_of_sums(7, 1, 1, 200_000) is leak_of_sums(14, 1, 1, 1 << 40) is None
    assert leak_of_reports(17_251) == leak_of_reports(43_470) == MEASURED[0]
    assert leak_of_reports(50_000) is None
    assert all(len(one.found) == 5 for one in MEASURED)


def test_more_homes_and_more_epsilon_are_narrower() -> None:
    law = homes_law(0, 43_470)
    found = [forecast(Fleet(homes, 28), law, horizon="whole") for homes in (30, 100, 400, 4_000)]
    for less, more in pairwise(found):
        for one, two in zip(choices(less, law), choices(more, law), strict=True):
            pairs = zip(one.rows, two.rows, strict=True)
            assert all(before.half > after.half for before, after in pairs)


def test_one_mode_alone_is_as_it_was_or_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    def shown(*given: str) -> str:
        assert main([*given, "--homes", "100", "--horizon", "whole"]) == 0
        return capsys.readouterr().out

    both, alone = shown(), shown("--mode", "local")
    assert both.startswith(alone)
    assert "better" in both.removeprefix(alone)
    assert "4 sums of 7 days\n" in shown("--mode", "sums")
    assert "reports" not in shown("--mode", "sums")
    view = json.loads(shown("--json"))
    assert {**json.loads(shown("--json", "--mode", "local")), "modes": view["modes"]} == view
    ((homes, found),) = [(one["homes"], one["choices"]) for one in view["modes"]]
    assert (homes, [one["question"] for one in found]) == (100, list(QUESTIONS))
    total = found[0]
    assert (total["better"], total["layout"]["days"]) == ("sums", 1)
    assert total["rows"][0]["habits"]["a week away"] == 0.75
    only = json.loads(shown("--json", "--mode", "sums", "--question", "total"))
    assert [one["question"] for one in only["modes"][0]["choices"]] == ["total"]
    assert [*only] == ["modes"]


def test_what_a_home_sends_is_what_its_frames_and_releases_are_long() -> None:
    """A head, ten letters, and twelve bytes a cell: for each release, and for each report."""
    sent = {row.shape and row.shape.days: row.home_bytes for row in asked(400, "total").rows}
    assert sent == {None: 6230, 28: 77, 7: 4 * 77, 1: 28 * 77}
    parts = {row.shape and row.shape.days: row.home_bytes for row in asked(400, "part-of-day").rows}
    assert parts == {None: 6230, 28: 77 + 5 * 12, 7: 4 * (77 + 5 * 12)}


def test_reports_of_a_part_of_the_day_lie_between_those_of_hours_and_of_the_whole() -> None:
    """Squares of widths rise with the number of parts: 6 of 24."""
    whole, parts, hours = (
        asked(400, question).rows[0] for question in ("total", "part-of-day", "hour-of-day")
    )
    rise = (parts.half**2 - whole.half**2) / (hours.half**2 - whole.half**2)
    assert rise == pytest.approx(5 / 23)
    assert parts.percent == pytest.approx(100 * parts.half / LAW.mean)
