"""A group's closed month for its own homes: final, rounded, of a crowd, whatever is subtracted."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from aggregator.answers.announcement import closed_month, group_months, in_doubt
from aggregator.answers.sums_answer import SumFigures
from aggregator.main import main
from aggregator.store.administration.registry import retire_stream
from aggregator.store.opening import open_reader, open_session
from edge_ldp.protocol.group_month import GroupMonth, parse_group_month
from edge_ldp.protocol.utc import utc
from tests.aggregator.console.small_fleet import (
    DAY_S,
    END_S,
    Fleet,
    add_plans,
    add_reports,
    add_sums,
    make_fleet,
)

NOW_S = END_S + 60 * DAY_S
SIZES = {"north": 12, "south": 11, "west": 3}
FROM_S, TO_S = END_S - 14 * DAY_S - DAY_S // 2, END_S + 15 * DAY_S + DAY_S // 2


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    made = make_fleet(tmp_path_factory.mktemp("fleet"))
    add_reports(made, add_plans(made, 2), SIZES, 2)
    return made


def months(fleet: Fleet, now_s: int = NOW_S, least: int | None = None) -> dict[str, GroupMonth]:
    config = fleet.config
    if least is not None:
        config = replace(config, query=replace(config.query, min_devices=least))
    with closing(open_reader(config, "test")) as reader:
        return group_months(reader, config, now_s)


def ends(mean: float | None, low: float | None, high: float | None) -> SumFigures:
    return SumFigures(mean=mean, low=low, high=high)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (ends(412.3, 377.0, 447.6), (410, 40)),
        (ends(412.3, 412.2, 412.4), (412, 2)),
        (ends(-412.3, -912.3, 87.7), (-400, 600)),
        (ends(0.0, -9.0, 5.0), (0, 9)),
        (ends(1e6, 9e5, 1.2e6), (1_000_000, 200_000)),
        (ends(None, None, None), None),
        (ends(1.0, None, None), None),
    ],
)
def test_a_mean_is_rounded_to_what_its_interval_leaves_in_doubt(
    found: SumFigures, told: tuple[int, int] | None
) -> None:
    assert in_doubt(found) == told
    if told is not None and found.low is not None and found.high is not None:
        assert told[0] - told[1] <= found.low <= found.high <= told[0] + told[1]


@pytest.mark.parametrize(
    ("at", "from_day", "to_day"),
    [
        (0, "1969-12-01", "1970-01-01"),
        (TO_S - 1, "2023-10-01", "2023-11-01"),
        (TO_S, "2023-11-01", "2023-12-01"),
        (TO_S + 31 * DAY_S, "2023-12-01", "2024-01-01"),
    ],
)
def test_a_month_is_told_once_it_is_over(at: int, from_day: str, to_day: str) -> None:
    assert [f"{utc(one):%Y-%m-%d}" for one in closed_month(at)] == [from_day, to_day]


def test_a_crowds_month_is_told_and_what_query_answers_is_in_it(fleet: Fleet) -> None:
    found = months(fleet)
    assert {name: [one.homes for one in month.streams] for name, month in found.items()} == {
        "north": [12],
        "south": [],  # "west" is few, and what the fleet less all that is told leaves over, too
        "west": [],
    }
    north = found["north"]
    assert (north.from_s, north.to_s) == (FROM_S, TO_S)
    asked = ["query", "--no-density", "--group=north", f"--since={FROM_S}", f"--until={TO_S}"]
    whole = fleet.json(*asked)["whole"]
    (told,) = north.streams
    assert (told.stream, told.unit) == ("power", "W")
    assert told.mean - told.within <= whole["low"] < whole["high"] <= told.mean + told.within
    assert parse_group_month(north.to_json()) == north


@pytest.mark.parametrize("least", [1, 2, 3, 4, 11, 12, 14, 15, 27])
def test_what_groups_that_are_told_leave_over_is_of_a_crowd_AGG_44(
    fleet: Fleet, least: int
) -> None:
    told = {name for name, month in months(fleet, least=least).items() if month.streams}
    assert len(told) == (3 if least <= 3 else 1 if least <= 12 else 0)
    assert all(SIZES[name] >= least for name in told)
    hidden = sum(SIZES[name] for name in SIZES if name not in told)
    assert not hidden or not told or hidden >= least


def test_the_month_that_runs_is_told_to_nobody_nor_one_that_may_change_AGG_44(fleet: Fleet) -> None:
    open_s = TO_S + fleet.config.intake.resend_window_s - 1
    assert not any(month.streams for month in months(fleet, open_s).values())
    assert months(fleet, open_s + 1) == months(fleet)


def test_sums_are_told_where_they_are_of_all_the_month_and_narrower(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path)
    plan = add_plans(fleet, 2)
    add_reports(fleet, plan, {"north": 12, "south": 10}, 1)
    names = [f"{group}-{number:04d}" for group in ("north", "south") for number in range(10)]
    add_sums(fleet, plan, names[:-3], 46)
    at_s = END_S + 25 * DAY_S  # October, of which there are sums, and no reports
    told = {
        name: [one.homes for one in month.streams] for name, month in months(fleet, at_s).items()
    }
    assert told == {"north": [], "south": []}  # 7 are few, and so is what they would leave over
    of_october = [month.streams for month in months(fleet, at_s, 7).values()]
    assert [[one.homes for one in streams] for streams in of_october] == [[10], [7]]
    of_november = [month.streams for month in months(fleet, least=7).values()]
    assert [[one.homes for one in streams] for streams in of_november] == [[12], [10]]


def test_the_command_shows_it_and_what_is_missing(
    fleet: Fleet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = fleet.file.read_text()
    for more, warnings in (("", 1), ("[announce]\n", 1), ("[announce]\ngroups = true\n", 0)):
        file = tmp_path / "a.toml"
        file.write_text(f"{text}\n{more}")
        assert main(["announced", "-c", str(file), "--groups", "--json"]) == 0
        printed = capsys.readouterr()
        assert printed.err.count("groups = true" if more else "is not there") == warnings
        announced = json.loads(printed.out)["announced"]
        assert announced == {f"edge-ldp/v1/demo/group/{name}": None for name in months(fleet)}


def test_a_retired_stream_is_not_told(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path)
    add_reports(fleet, add_plans(fleet, 1), {"north": 12}, 1)
    assert months(fleet)["north"].streams
    with closing(open_session(fleet.config, "test")) as session:
        retire_stream(session, 1, NOW_S)
    assert not months(fleet)["north"].streams
