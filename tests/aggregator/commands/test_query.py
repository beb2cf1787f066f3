"""`edge-ldp aggregator query` of groups, on either store: figures of a crowd, or none (AGG-13)."""

import csv
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aggregator.counting.members import named_wishes
from aggregator.counting.refusals import Rules, StreamRules, allowed_codes
from aggregator.main import main
from aggregator.plans import planner
from aggregator.store.administration.registry import apply
from aggregator.store.contract import PlanRow
from aggregator.store.opening import open_session
from edge_ldp.device.frame import encode
from edge_ldp.protocol.messages import Status, topic
from edge_ldp.service.mqtt import Message
from edge_ldp.vectorized import perturb_many
from tests.aggregator.engines import Engine
from tests.aggregator.home_traffic import take
from tests.aggregator.operator import Operator, operator

SLOT_S, REPORTS = 900, 300
FIRST_SLOT = 1_700_000_000 // SLOT_S
NOW_S = (FIRST_SLOT + 1000) * SLOT_S
LEVELS = {"north": 200, "south": 700}  # W
HOMES = 12  # in each
COUNTED = 7 * REPORTS + 5 * REPORTS // 2


@pytest.fixture
def desk(engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Operator:
    """Give an operator of two feeders whose homes use different power."""
    return operator(tmp_path, two_feeders(engine), capsys)


def two_feeders(engine: Engine, moved: int = 0) -> str:
    """Fill a store with what two feeders report; return the configuration that it is of.

    `moved`: so many homes of the north are in the group of the south before they report.
    """
    stream = engine.config().streams[0]
    first = planner.first_plan("demo", stream, epoch=1, now_s=FIRST_SLOT * SLOT_S - 900)
    plan = planner.following(first, stream, stream.sums(1000), share=(1, 16), now_s=first.issued_s)
    assert plan is not None
    store = engine.open()
    session = open_session(engine.config(), "test.toml")
    for row in (first, plan):
        store.add_plan(PlanRow(1, row.epoch, row.issued_s, row.to_json()))
    rules = Rules(
        streams={1: StreamRules(SLOT_S, 4, {2: allowed_codes(plan)})},
        devices=None, max_devices=100, window_s=10**8, tolerance_s=300, now_s=float(NOW_S),
    )  # fmt: skip
    rng = np.random.default_rng(3)
    for group, level in LEVELS.items():
        names = [f"{group}-{at}" for at in range(HOMES)]
        apply(session, [replace(one, enrols=True) for one in named_wishes(names, group=group)], 1)
        if moved and group == "north":
            apply(session, named_wishes(names[:moved], group="south"), 1)
        for name in names:
            values = rng.integers(level - 100, level + 101, REPORTS)
            codes = perturb_many(plan.stream_mechanism, values, entropy=rng.bytes)
            surveys = perturb_many(plan.survey_mechanism, values, entropy=rng.bytes)
            surveys += plan.stream_mechanism.code_count
            # the coin gives one feeder more surveys than the other
            every = 16 if group == "north" else 15
            codes = np.where(np.arange(REPORTS) % every == 0, surveys, codes)
            # some homes have two streams, and report half as often
            streams = 2 if name[-1] in "0369" else 1
            slots = np.arange(FIRST_SLOT, FIRST_SLOT + REPORTS)[::streams]
            facts = {"reports": 97 // streams, "slots": 97}
            told = Status("online", "test", manifest={"window": facts, "measures": [{}]})
            payload = encode(1, 1, 2, slots.tolist(), codes[::streams].tolist())
            take(
                store,
                Message(topic("demo", "status", name), told.to_json()),
                Message(topic("demo", "report", name), payload),
                rules=rules,
            )
    session.close()
    store.close()
    return engine.text(more="\n[query]\nmin_devices = 10\n")


@pytest.mark.parametrize(
    "engine", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)], indirect=True
)
def test_a_groups_figures_are_of_its_homes_alone_and_only_of_a_crowd_AGG_13_AGG_33_PRV_21(
    engine: Engine, desk: Operator
) -> None:
    whole = desk.json("query")["whole"]
    totals = []
    for group, level in LEVELS.items():
        found = desk.json("query", "--group", group, "--quantile", "0.5", "--range", "0:450")
        assert found["whole"]["low"] < level < found["whole"]["high"]
        assert (found["whole"]["devices"], found["whole"]["missing"]) == (HOMES, 0)
        assert found["counts"]["counted"] == COUNTED
        totals.append(found["whole"]["total"])
        assert [row["share"] for row in found["quantiles"]] == [0.5]
        assert found["ranges"][0]["share_low"] <= (level < 450) <= found["ranges"][0]["share_high"]
    assert whole["total"] == pytest.approx(sum(totals), rel=1e-9)  # whatever the coin gave them
    assert whole["devices"] == 2 * HOMES
    assert whole["low"] < sum(LEVELS.values()) / 2 < whole["high"]
    late = desk.json("query", "--since", str((FIRST_SLOT + REPORTS) * SLOT_S + 9000), code=5)
    assert (late["whole"]["mean"], late["density"]) == (None, None)
    assert desk.json("query", "--group", "", code=5)["whole"]["devices"] == 0

    session = open_session(engine.config(), "test.toml")
    apply(session, named_wishes(["north-0", "north-1", "north-2"], group="south"), 1)
    session.close()
    north = desk.json("query", "--group", "north")  # its counts stay, of all who reported then
    assert (north["whole"]["devices"], north["whole"]["n"] > 0) == (HOMES - 3, True)


@pytest.mark.parametrize(
    "engine", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)], indirect=True
)
def test_the_past_of_a_retired_stream_is_answered_as_before(desk: Operator) -> None:
    before = [desk.json("query"), desk.json("load-curve"), desk.json("theta")]
    assert before[0]["whole"]["n"] > 0
    desk.text("streams", "retire", "power")
    assert [desk.json("query"), desk.json("load-curve"), desk.json("theta")] == before


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_figures_are_energies_in_the_operators_time_also_for_spreadsheets(desk: Operator) -> None:
    found = desk.json("query", "--zone", "Asia/Kolkata")
    whole = found["whole"]
    assert (found["unit"], found["slot_seconds"], found["zone"]) == ("W", SLOT_S, "Asia/Kolkata")
    assert found["from"].endswith("+05:30")
    for end in ("", "_low", "_high"):
        assert whole[f"energy_kwh{end}"] == pytest.approx(whole[f"total{end}"] / 4000)
    text = desk.text("query", "--zone", "Asia/Kolkata")
    assert f"{whole['energy_kwh']:,.1f}" in text
    assert "energy kWh" in text
    assert "Asia/Kolkata" in text
    rows = list(csv.DictReader(desk.text("query", "--by", "day", "--csv").splitlines()))
    assert rows[0]["at"] == "all"
    assert float(rows[0]["energy_kwh_high"]) == whole["energy_kwh_high"]
    assert [len(row["at"]) for row in rows[1:]] == [10] * (len(rows) - 1)
    beside = "--csv has means and totals"
    for asked, count in (("--quantile=0.9", 1), ("--range=0:500", 1), ("--by=day", 0)):
        assert desk.text("query", "--csv", asked).count(beside) == count
    hours = list(csv.DictReader(desk.text("load-curve", "--csv").splitlines()))
    assert len(hours) == len(desk.json("load-curve")["hours"])
    for command in ("query", "load-curve"):
        told = desk.text(command, "--zone", "Mars", code=2)
        assert "--zone: expected a time zone" in told
        told = desk.text(command, "--zone", "Europe/Berln", code=2)
        assert 'not "Europe/Berln"; did you mean Europe/Berlin' in told


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_where_no_reports_are_it_is_said_and_where_there_are_some(desk: Operator) -> None:
    text = desk.text("query", "--since", "2026-12-27", code=5)
    assert text.splitlines()[0] == "power, no reports in this range"
    assert "withheld" not in text
    some = "2023-11-14 22:00 to 2023-11-18 01:00"
    assert f"no reports in this range (UTC); there are some from {some}" in text
    assert some in desk.text("load-curve", "--since", "2026-12-27", code=5)


def test_days_of_surveys_alone_are_said_to_be_in_no_mean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also to who asks for a curve before there is a θ."""
    engine = Engine("sqlite", f'path = "{tmp_path / "a.db"}"', tmp_path / "a.db", "")
    stream = engine.config().streams[0]
    survey = planner.first_plan("demo", stream, epoch=1, now_s=FIRST_SLOT * SLOT_S - 900)
    at_s = (FIRST_SLOT + 48) * SLOT_S
    chosen = planner.following(survey, stream, stream.sums(1000), share=(1, 16), now_s=at_s)
    assert chosen is not None
    rules = Rules(
        streams={1: StreamRules(SLOT_S, 4, {1: allowed_codes(survey), 2: allowed_codes(chosen)})},
        devices=None, max_devices=100, window_s=10**8, tolerance_s=300, now_s=float(NOW_S),
    )  # fmt: skip
    desk = operator(tmp_path, engine.text(), capsys)
    with closing(engine.open()) as store:
        for row in (survey, chosen):
            store.add_plan(PlanRow(1, row.epoch, row.issued_s, row.to_json()))

        def send(epoch: int, batch: int, first: int, code: int) -> None:
            slots = range(first, first + 8)
            for home in range(HOMES):
                payload = encode(1, batch, epoch, slots, [code] * len(slots))
                take(store, Message(topic("demo", "report", f"h-{home}"), payload), rules=rules)

        send(1, 1, FIRST_SLOT, survey.stream_mechanism.code_count)
        only = "surveys only until θ is chosen (after 500 of them: `status`)"
        assert only in desk.text("load-curve", code=5)
        assert "surveys alone" not in desk.text("query")
        send(2, 2, FIRST_SLOT + 96, 3)
        assert "before 2023-11-15 22:00 there are surveys alone" in desk.text("query")
        assert "surveys alone" not in desk.text("query", "--since", "2023-11-15T22:00")
        (day,) = desk.json("query", "--by", "day")["groups"]
        (same,) = desk.json("load-curve", "--by", "day")["days"]
        assert same["device_slots"] == day["device_slots"] == 8 * HOMES


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("query --range 5", "LOW:HIGH, two numbers that rise, not '5'"),
        ("query --range 0:inf", "LOW:HIGH, two numbers that rise"),
        ("query --range nan:5", "LOW:HIGH, two numbers that rise"),
        ("query --quantile 1.5", "a share between 0 and 1, not '1.5'"),
        ("query --since yesterday", "an ISO 8601 time, as 2026-12-01 or 2026-12-01T06:00"),
        ("query --since 01.12.2026", "an ISO 8601 time, as 2026-12-01 or"),
        ("query --since 1795651", "an ISO 8601 time"),  # a slot, or January 1970
        ("audit --since 20261201", "an ISO 8601 time"),
        ("load-curve --by hour-of-day", "one of hour, day, week; `query --by hour-of-day`"),
        (f"query --since {10**26}", "an ISO 8601 time"),
        (f"load-curve --until {10**26}", "an ISO 8601 time"),
        ("plan publish --share 1/0", "a share such as 1/16, not '1/0'"),
        ("plan publish --survey 1:x", "LOW:HIGH in whole units, not '1:x'"),
    ],
)
def test_a_wrong_argument_is_told_what_is_expected(
    command: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "-c", "none.toml"])
    assert ended.value.code == 2
    assert f"expected {expected}" in capsys.readouterr().err.replace("\n", " ")


def test_a_table_for_machines_and_one_for_spreadsheets_exclude_each_other(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for command in ("query", "load-curve", "released"):
        with pytest.raises(SystemExit):
            main([command, "-c", "none.toml", "--csv", "--json"])
        assert "--json: not allowed with argument --csv" in capsys.readouterr().err


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_range_that_ends_before_it_begins_is_refused(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = operator(tmp_path, engine.text(), capsys)
    for command in ("query", "load-curve", "released"):
        told = desk.text(command, "--since", "2000000000", "--until", "2000000000", code=2)
        assert "--until: expected a time after --since" in told


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_wrong_name_is_told_of_its_option_and_of_what_is_near(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.open().close()
    desk = operator(tmp_path, engine.text(), capsys)
    told = desk.text("query", "--stream", "powr", code=2)
    assert "arguments: --stream: expected one of power; did you mean power?" in told
    assert str(desk.file) not in told
    assert "--group: expected no --group: there are no groups" in desk.text(
        "query", "--group", "nort", code=2
    )
    desk.text("devices", "enrol", "a", "--group", "north")
    for command in ("query", "load-curve"):
        told = desk.text(command, "--group", "north", code=5)
        assert "each belongs to that of its device when it counted" in told
    assert "'north'; did you mean north?" in desk.text("query", "--group", "nort", code=2)
