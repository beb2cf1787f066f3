"""Hours, days and weeks of a zone, against its calendar: counts are integers, so all is exact."""

from collections import Counter
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from aggregator.answers.announcement import announcements
from aggregator.answers.local_time import Grouping, Spans, group_name, period
from aggregator.config import AggregatorConfig, AnnounceTable, parse_config
from aggregator.plans import planner
from aggregator.store.contract import PlanRow
from aggregator.store.opening import open_reader, open_session
from aggregator.store.rollups import tend
from tests.aggregator.engines import Engine
from tests.aggregator.fakes import make_config
from tests.aggregator.operator import Operator, operator
from tests.aggregator.store_contract import changes, commit
from tests.aggregator.tallies import count_batches

SLOT_S, DAY_S = 900, 86_400
BERLIN, TOKYO, KOLKATA = (
    ZoneInfo(f"{one}") for one in ("Europe/Berlin", "Asia/Tokyo", "Asia/Kolkata")
)
SPRING, AUTUMN = (datetime(2024, *day, tzinfo=UTC) for day in ((3, 28), (10, 24)))  # Thursdays
DAYS = 7  # of either, with the night in which clocks change in them
MORE = "bucket_slots = 1\n[query]\nmin_devices = 1\n"
RETENTION = "[retention]\nbucket_days = 40\nhour_days = 60\n"
SLOTS = np.concatenate(
    [np.arange(DAYS * 96) + int(one.timestamp()) // SLOT_S for one in (SPRING, AUTUMN)]
)
REPORTS = np.random.default_rng(4).integers(1, 9, len(SLOTS))  # stream reports of each slot


def fill(place: Path, bucket_slots: int = 1) -> tuple[Engine, str]:
    """Count so many reports in every quarter-hour; return the store and its configuration."""
    engine = Engine("sqlite", f'path = "{place / "a.db"}"', place / "a.db", "")
    text = engine.text(more=MORE.replace("= 1", f"= {bucket_slots}", 1))
    stream = parse_config(text, "f").streams[0]
    first = planner.first_plan("demo", stream, epoch=1, now_s=0)
    plan = planner.following(first, stream, stream.sums(500), share=(1, 16), now_s=0)
    assert plan is not None
    slots = np.repeat(SLOTS, REPORTS)
    codes = np.random.default_rng(5).integers(0, plan.stream_mechanism.code_count, len(slots))
    with closing(engine.open()) as store:
        for row in (first, plan):
            store.add_plan(PlanRow(1, row.epoch, 0, row.to_json()))
        there = {(1, slot // bucket_slots, 0, 0): 10 * bucket_slots for slot in SLOTS.tolist()}
        counted = count_batches([((1, plan.epoch, 0, 0), bucket_slots, slots, codes)])
        commit(store, changes(tally=counted, presence=there))
    return engine, text


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Operator:
    return operator(tmp_path, fill(tmp_path)[1], capsys)


def local(slot: int, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(slot * SLOT_S, zone)


def counted(name: Any, zone: ZoneInfo, chosen: Any = lambda _: True) -> dict[Any, int]:
    """Return the reports of slots by what their local time is called."""
    found: Counter[Any] = Counter()
    for slot, reports in zip(SLOTS.tolist(), REPORTS.tolist(), strict=True):
        if chosen(slot):
            found[name(local(slot, zone))] += reports
    return dict(found)


def reports(since_s: int, until_s: int) -> int:
    begin, end = np.searchsorted(SLOTS * SLOT_S, [since_s, until_s])
    return int(REPORTS[begin:end].sum())


def monday(at: datetime) -> str:
    return f"{at.date() - timedelta(days=at.weekday())}"


def groups(view: dict[str, Any]) -> dict[str, int]:
    return {row["at"]: row["n"] for row in view["groups"]}


# zones without a change of the clock, or with one like those of others
PLAINER = ("Asia/Tokyo", "Asia/Kolkata", "America/New_York", "UTC", "Africa/Casablanca")


@pytest.mark.parametrize(
    "name",
    [
        *("Europe/Berlin", "America/Havana", "Asia/Beirut", "Australia/Lord_Howe"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in PLAINER),
    ],
)
def test_days_and_weeks_begin_with_the_first_second_of_their_date(name: str) -> None:
    """Also where midnight is skipped (Havana, Beirut) or is twice (Havana)."""
    zone = ZoneInfo(name)
    start = int(datetime(2024, 1, 1, tzinfo=zone).timestamp())
    first: dict[Any, int] = {}
    for at_s in range(start, start + 366 * DAY_S, 1800):
        at = datetime.fromtimestamp(at_s, zone)
        day, week = (first.setdefault(one, at_s) for one in (at.date(), monday(at)))
        assert period(zone, "day", at_s)[0] == day
        assert period(zone, "week", at_s)[0] == week
        assert group_name(day, zone) == f"{at.date()}"
        assert period(zone, "day", day - 1)[1] == day or day == start


@pytest.mark.parametrize("zone", [TOKYO, BERLIN, KOLKATA], ids=str)
def test_hours_of_the_day_are_those_of_the_zone_in_the_head(desk: Operator, zone: ZoneInfo) -> None:
    found = desk.json("query", "--by", "hour-of-day", "--zone", str(zone))
    expected = counted(lambda at: f"{at.hour:02d} h", zone)
    assert groups(found) == expected
    assert {row["group"]: row["n"] for row in found["groups"]} == counted(lambda at: at.hour, zone)
    assert sum(expected.values()) == found["whole"]["n"] == REPORTS.sum()
    text = desk.text("query", "--by", "hour-of-day", "--zone", str(zone)).splitlines()
    begin, end = (local(slot, zone) for slot in (int(SLOTS[0]), int(SLOTS[-1]) + 1))
    assert text[0] == f"power, {begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} {zone}"


@pytest.mark.parametrize("zone", [BERLIN, TOKYO, KOLKATA], ids=str)
@pytest.mark.parametrize(("by", "name"), [("day", lambda at: f"{at.date()}"), ("week", monday)])
def test_days_and_weeks_are_those_of_the_zone_also_when_clocks_change(
    desk: Operator, zone: ZoneInfo, by: str, name: Any
) -> None:
    found = desk.json("query", "--by", by, "--zone", str(zone), "--no-density")
    assert groups(found) == counted(name, zone)
    assert found["warnings"] == []
    for row in found["groups"]:
        begins = datetime.fromtimestamp(row["group"], zone)
        assert (f"{begins.date()}", begins.hour, begins.minute) == (row["at"], 0, 0)
    if (zone, by) == (BERLIN, "day"):
        slots = {row["at"]: row["device_slots"] for row in found["groups"]}
        assert [slots[f"2024-{day}"] for day in ("03-30", "03-31", "10-27")] == [960, 920, 1000]


@pytest.mark.parametrize(("by", "name"), [("day", lambda at: at.date()), ("week", monday)])
@pytest.mark.parametrize("tended", [False, True])
def test_a_curve_has_the_days_and_weeks_of_the_zone_from_kept_hours_too(
    desk: Operator, by: str, name: Any, *, tended: bool
) -> None:
    before = desk.json("load-curve", "--by", by, "--zone", "Europe/Berlin")
    if tended:
        tend_all(desk)
    found = desk.json("load-curve", "--by", by, "--zone", "Europe/Berlin")
    assert found == before
    rows = found[f"{by}s"]
    expected = counted(name, BERLIN)
    assert [row["n"] for row in rows] == list(expected.values())
    assert [row["from"][:16] for row in rows] == [f"{one}T00:00" for one in expected]
    assert found["warnings"] == []
    text = desk.text("load-curve", "--by", by, "--zone", "Europe/Berlin").splitlines()
    assert text[0].startswith(f"power by {by} (Europe/Berlin), W")
    below = next(at for at, line in enumerate(text) if line.startswith(f"{by} ")) + 1
    assert text[below].startswith(rows[0]["from"][:10] + " 00:00 ")


def test_a_day_of_23_hours_is_of_a_crowd_if_as_many_were_there_for_all_of_it_AGG_13(
    tmp_path: Path,
) -> None:
    stream = replace(make_config(tmp_path / "a.db").streams[0], bucket_slots=4)
    for at, hours in ((SPRING + timedelta(days=3), 23), (AUTUMN + timedelta(days=3), 25)):
        first, end = Spans(stream, "day", BERLIN).at(int(at.timestamp()) // 3600)
        assert end - first == hours


def test_half_an_hour_that_kept_hours_do_not_tell_apart_is_shown_and_warned_of(
    desk: Operator,
) -> None:
    found = desk.json("load-curve", "--by", "day", "--zone", "Asia/Kolkata")
    assert {row["from"][10:] for row in found["days"][1:7]} == {"T00:30:00+05:30"}
    expected = counted(lambda at: (at - timedelta(minutes=30)).date(), KOLKATA)
    assert [row["n"] for row in found["days"]] == list(expected.values())
    (warning,) = found["warnings"]
    assert "days of this zone do not begin with one" in warning
    assert warning in desk.text("load-curve", "--by", "day", "--zone", "Asia/Kolkata")
    assert desk.json("load-curve", "--zone", "Asia/Kolkata")["warnings"] == []


@pytest.mark.parametrize(
    ("bucket_slots", "named", "warning"),
    [
        (4, lambda at: f"{(at - timedelta(minutes=30)).date()}", "each is in the group in which"),
        (24, lambda at: f"{at.astimezone(UTC).date()} UTC", "are kept by 21600 s of UTC: they are"),
    ],
)
def test_buckets_in_which_a_day_begins_are_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bucket_slots: int, named: Any, warning: str
) -> None:
    desk = operator(tmp_path, fill(tmp_path, bucket_slots)[1], capsys)
    found = desk.json("query", "--by", "day", "--zone", "Asia/Kolkata", "--no-density")
    assert groups(found) == counted(named, KOLKATA)
    (told,) = found["warnings"]
    assert warning in told
    plain = desk.json("query", "--by", "day", "--zone", "UTC", "--no-density")
    assert groups(plain) == counted(lambda at: f"{at.date()}", ZoneInfo("UTC"))
    assert plain["warnings"] == []


def tend_all(desk: Operator) -> AggregatorConfig:
    """Add spring up to days, and autumn to hours; return the configuration of that."""
    desk.file.write_text(desk.file.read_text() + RETENTION)
    config = parse_config(desk.file.read_text(), "f")
    now_s = AUTUMN.timestamp() + 55 * DAY_S
    with closing(open_session(config, "f")) as session:
        while tend(session, config, now_s):
            pass
    return config


@pytest.mark.parametrize("by", ["day", "week"])
def test_where_days_of_utc_are_kept_they_are_shown_as_such(desk: Operator, by: str) -> None:
    before = desk.json("query", "--by", by, "--zone", "UTC")
    config = tend_all(desk)
    with closing(open_reader(config, "f")) as reader:
        until_s = reader.rolled_up(1).whole_from(4) * SLOT_S
    spring, autumn = int(SLOTS[DAYS * 96 - 1]) * SLOT_S, int(SLOTS[DAYS * 96]) * SLOT_S
    assert spring < until_s <= autumn
    found = desk.json("query", "--by", by, "--zone", "Europe/Berlin")
    name = monday if by == "week" else lambda at: f"{at.date()}"
    old = counted(
        lambda at: f"{name(at)} UTC", ZoneInfo("UTC"), lambda slot: slot * SLOT_S < until_s
    )
    new = counted(name, BERLIN, lambda slot: slot * SLOT_S >= until_s)
    assert groups(found) == {**old, **new}
    assert found["whole"] == before["whole"]
    border = datetime.fromtimestamp(until_s, UTC)
    assert found["warnings"] == [
        f"counts before {border:%Y-%m-%dT%H:%MZ} are kept by days of UTC: they are shown by these"
    ]
    assert desk.json("query", "--by", by, "--zone", "UTC") == before


@pytest.mark.parametrize("command", ["query", "load-curve"])
def test_times_without_a_zone_are_of_the_zone_that_is_shown(desk: Operator, command: str) -> None:
    key = ("groups", "group") if command == "query" else ("hours", "from_s")
    by = ("--by", "day") if command == "query" else ()
    for given, begins, ends in (
        (("--zone", "Europe/Berlin"), "2024-03-30T23:00Z", "2024-03-31T22:00Z"),
        ((), "2024-03-31T00:00Z", "2024-04-01T00:00Z"),
    ):
        asked = ("--since", "2024-03-31", "--until", "2024-04-01", *given)
        found = desk.json(command, *by, *asked)
        assert found == desk.json(command, *by, "--since", begins, "--until", ends, *given)
        rows = found[key[0]]
        assert rows[0][key[1]] == int(datetime.fromisoformat(begins).timestamp())
        until_s = int(datetime.fromisoformat(ends).timestamp())
        assert sum(row["n"] for row in rows) == reports(rows[0][key[1]], until_s)
    told = desk.text(command, "--since", "2024-03-31", "--until", "2024-03-31T00:00", code=2)
    assert "--until: expected a time after --since" in told


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_times_at_the_ends_of_the_calendar_are_taken(desk: Operator, zone: str) -> None:
    for command in ("query", "load-curve"):
        every = desk.json(command, "--by", "day", "--zone", zone)
        ends = ("--since", "0001-01-01", "--until", "9999-12-31T23:59:59")
        assert desk.json(command, "--by", "day", "--zone", zone, *ends) == every
        for nowhere in (("--since", ends[3]), ("--until", ends[1])):
            found = desk.json(command, "--by", "day", "--zone", zone, *nowhere, code=5)
            assert not found["groups" if command == "query" else "days"]


def test_the_zone_is_the_one_asked_for_else_of_the_configuration_else_of_the_stream(
    desk: Operator,
) -> None:
    plain = desk.file.read_text()
    offset = plain.replace("bucket_slots = 1\n", "bucket_slots = 1\nutc_offset_s = 32400\n")
    for text, given, named, zone in (
        (plain, (), "UTC", "UTC"),
        (offset, (), "UTC+09:00", "Asia/Tokyo"),
        (offset + 'zone = "Europe/Berlin"\n', (), "Europe/Berlin", "Europe/Berlin"),
        (offset + 'zone = "Europe/Berlin"\n', ("--zone", "UTC+09:00"), "UTC+09:00", "Asia/Tokyo"),
    ):
        desk.file.write_text(text)
        found = desk.json("query", "--by", "day", *given)
        assert found["zone"] == named
        assert groups(found) == counted(lambda at: f"{at.date()}", ZoneInfo(zone))
        assert desk.json("load-curve", *given)["zone"] == named
        issued = datetime.fromtimestamp(0, ZoneInfo(zone))
        assert f"issued {named}" in desk.text("theta", *given)
        shown = desk.text("plan", "show", *given)
        assert f"issued {issued:%Y-%m-%d %H:%M} {named}, expires" in shown
        assert f"issued {issued:%Y-%m-%d %H:%M} {named} (" in desk.text("status", *given)


def test_the_announced_day_is_one_of_the_zone(tmp_path: Path) -> None:
    _, text = fill(tmp_path)
    config = parse_config(text + 'zone = "Europe/Berlin"\n', "f")
    for at, hours in (
        (datetime(2024, 4, 1, 5, tzinfo=UTC), 23),
        (datetime(2024, 10, 28, 5, tzinfo=UTC), 25),
    ):
        with closing(open_reader(config, "f")) as reader:
            now_s = int(at.timestamp())
            found: dict[str, Any] = announcements(reader, config, AnnounceTable(), now_s).announced
        (message,) = found.values()
        day = message["day"]
        assert day["until_s"] - day["since_s"] == hours * 3600
        assert datetime.fromtimestamp(day["until_s"], BERLIN).isoformat()[:16] == (
            f"{at.date()}T00:00"
        )
        assert day["n"] == reports(day["since_s"], day["until_s"])
        assert message["hour"]["until_s"] == now_s - 3600  # over for delay_s, a quarter of an hour


def test_the_clock_of_a_bucket_says_its_group(tmp_path: Path) -> None:
    stream = make_config(tmp_path / "a.db").streams[0]
    buckets = np.arange(475_000, 475_048) * 3600 // stream.bucket_s
    hours = [local(bucket * stream.bucket_s // SLOT_S, TOKYO).hour for bucket in buckets.tolist()]
    assert Grouping("hour-of-day", TOKYO).of_all(stream, buckets).tolist() == hours
    assert not Grouping().of_all(stream, buckets).any()
