"""`edge-ldp aggregator devices` and `completeness`, as an operator uses them, on either store."""

import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from aggregator.main import main
from aggregator.store.contract import Store
from aggregator.store.opening import open_session
from aggregator.store.rows import BeatRow, BeatTimes
from edge_ldp.protocol.messages import Status
from tests.aggregator.engines import Engine
from tests.aggregator.home_traffic import REPORTS, report, take
from tests.aggregator.operator import Operator, operator
from tests.aggregator.store_contract import changes, commit

HOMES = ("a", "bb", "ccc")


@pytest.fixture
def desk(engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Operator:
    engine.open().close()
    return operator(tmp_path, engine.text(), capsys)


def served(engine: Engine, *batches: int) -> Store:
    store = engine.open()
    take(store, *(report(name, batch) for name in HOMES for batch in batches))
    return store


def test_devices_are_enrolled_grouped_listed_revoked_and_reinstated(desk: Operator) -> None:
    made = desk.json("devices", "enrol", "a", "bb", "--group", "north")
    assert made == {"command": "enrol", "devices": 2, "changed": ["a", "bb"], "logins_ended": []}
    assert desk.json("devices", "enrol", "a", "--group", "north")["changed"] == []
    desk.text("devices", "group", "bb", "--to", "south")
    told = desk.text("devices", "group", "a", "bb", "--to", "south")
    assert told == "group: 1 of 2 devices changed: a\n"
    desk.text("devices", "revoke", "bb")
    assert "bb" in desk.text("devices", "list")
    rows = desk.json("devices", "list", "--only", "revoked")["devices"]
    assert [(row["device"], row["state"]) for row in rows] == [("bb", "unknown")]
    desk.text("devices", "quarantine", "a")
    told = desk.json("status")["devices"]
    assert [row["device"] for row in told["revoked"]] == ["bb"]
    assert [row["device"] for row in told["held"]] == ["a"]
    assert told["revoked"][0]["since_s"] == rows[0]["revoked_s"]
    assert "quarantine UTC" in desk.text("status")
    desk.text("devices", "reinstate", "bb")
    desk.text("devices", "release", "a")
    assert "quarantine UTC" not in desk.text("status")
    assert "no device that this asks for" in desk.text(
        "devices", "list", "--only", "revoked", code=5
    )
    groups = desk.json("devices", "groups")["groups"]
    assert {one["group"] for one in groups} == {"", "north", "south"}


def test_AGG_27_status_says_that_no_service_runs_and_how_old_each_figure_is(
    engine: Engine, desk: Operator
) -> None:
    """ "2000 online" of a store that nobody serves was believed."""
    store = engine.open()
    try:
        assert desk.json("status")["service"]["runs"] is True
        assert "NO SERVICE" not in desk.text("status", "--expect-running")
    finally:
        store.close()
    view = desk.json("status", "--summary")
    assert view["service"] == {
        "runs": False,
        "workers": [],
        "is_late": False,
        "last_commit_age_s": None,
    }
    assert (view["completeness"], view["curated"]) == ([], [])
    told = desk.text("status", "--expect-running", code=3)
    assert "NO SERVICE RUNS ON THIS STORE: all of this is as old as the last commit" in told
    assert told.endswith("demo: no service runs on this store\n")


def test_AGG_27_a_service_that_holds_the_store_and_is_not_heard_of_does_not_answer(
    engine: Engine, desk: Operator
) -> None:
    """A frozen one holds its lock for as long as it likes."""
    now_s = int(time.time())
    with closing(engine.open()) as store:
        store.beat(BeatRow("one", now_s - 500, "degraded: link down"))
        store.beat(BeatRow("two", now_s - 900, "ok"))
        told = desk.text("status", "--expect-running", code=3)
        assert "THE SERVICE DOES NOT ANSWER: all of this is as old as its last heartbeat" in told
        assert "worker one DOES NOT ANSWER, was degraded: link down, heartbeat" in told
        store.beat(BeatRow("two", now_s, "ok"))
        told = desk.text("status", "--expect-running", code=1)
        assert "THE SERVICE DOES NOT ANSWER" not in told
        said = told.splitlines()[-1]
        assert ": demo: worker one DOES NOT ANSWER, was degraded: link down, heartbeat " in said
        assert said.endswith(" min ago)")
        (one, two) = desk.json("status")["service"]["workers"]
        assert (one["worker"], one["at_s"], one["health"]) == (
            "one",
            now_s - 500,
            "degraded: link down",
        )
        assert (two["worker"], two["at_s"]) == ("two", now_s)
        assert (one["is_late"], two["is_late"]) == (True, False)
        store.beat(BeatRow("one", now_s, "degraded: store held"))
        said = desk.text("status", "--expect-running", code=1).splitlines()[-1]
        assert ": demo: worker one degraded: store held, heartbeat " in said
        assert said.endswith(" s ago)")  # an older version told no ages
        store.beat(BeatRow("one", now_s - 500, "stopped"))
        assert "worker one stopped, heartbeat " in desk.text("status", "--expect-running")
    assert "NO SERVICE RUNS" in desk.text("status", "--expect-running", code=3)


def test_AGG_27_status_tells_how_old_link_report_and_receipt_are(
    engine: Engine, desk: Operator
) -> None:
    now_s = int(time.time())
    with closing(engine.open()) as store:

        def told(at_s: int, health: str, *times: int | None) -> str:
            store.beat(BeatRow("", at_s, health, BeatTimes(*times)))
            (line,) = (row for row in desk.text("status").splitlines() if ", heartbeat " in row)
            return line.partition(" ago), ")[2]

        assert told(now_s, "ok", now_s - 7200, now_s - 900, now_s - 400) == (
            "link up for 7 min, last report 2 h ago, last receipt 15 min ago"
        )
        (worker,) = desk.json("status")["service"]["workers"]
        assert worker["ages"].keys() == {"report_s", "receipt_s", "link_s", "lost_s"}
        assert 7200 <= worker["ages"]["report_s"] < 7260
        assert worker["ages"]["lost_s"] is None
        assert told(now_s, "degraded: link down", None, None, None, now_s - 300) == (
            "no link for 5 min, no report and no receipt since its start"
        )
        late = told(now_s - 500, "ok", now_s - 900, now_s - 900, now_s - 7200)
        assert late == "last report 15 min ago, last receipt 15 min ago"
        assert told(now_s, "ok") == ""
        assert set(desk.json("status")["service"]["workers"][0]["ages"].values()) == {None}


def test_how_a_device_is_by_its_last_status_is_shown(engine: Engine, desk: Operator) -> None:
    ages = {"telegram_s": 7200, "link_s": 60}
    silent = Status("online", "1", health="degraded: port gone", ages=ages)
    refusing = Status(
        "online", "1", health="ok", refusals=("theta",), refused=("theta: 5 to 9: at most 4",)
    )
    with closing(engine.open()) as store:
        commit(store, changes(statuses={"a": silent, "bb": refusing, "cc": Status("online", "0")}))
        found = {row["device"]: row for row in desk.json("devices", "list")["devices"]}
        assert (found["a"]["health"], found["a"]["ages"]) == ("degraded: port gone", ages)
        assert (found["cc"]["health"], found["cc"]["ages"]) == ("", {})
        assert desk.text("devices", "list").splitlines()[1].endswith("degraded: port gone")
        view = desk.json("status")["devices"]
        assert view["degraded"] == [{"device": "a", "health": "degraded: port gone", "ages": ages}]
        assert view["refusing"] == [{"device": "bb", "reasons": ["theta: 5 to 9: at most 4"]}]
        told = desk.text("status")
        assert "a       degraded: port gone" in told
        assert "2 h ago" in told
        assert "theta: 5 to 9: at most 4" in told
        commit(store, changes(statuses={"a": Status("offline", "-")}))
        assert desk.json("status")["devices"]["degraded"] == []


@pytest.mark.parametrize(("rate", "silent"), [(1, ["a", "b"]), (1000, ["a"])])
def test_silent_for_a_day_is_of_real_time_in_a_rehearsal(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str], rate: int, silent: list[str]
) -> None:
    now_s, day_s = 10**9, 86_400
    clock = f"\n[clock]\norigin_s = {now_s}.0\nstarted_s = {time.time()!r}\nrate = {rate}.0\n"
    engine.open().close()
    desk = operator(tmp_path, engine.text(more=clock), capsys)
    desk.text("devices", "enrol", "a", "b", "c")
    with closing(open_session(engine.config(), "x")) as session, session.transaction():
        seen = {"a": now_s - 2000 * day_s, "b": now_s - 10 * day_s, "c": now_s}
        sets = "UPDATE devices SET state = 'online', seen_s = ? WHERE device = ?"
        session.each(sets, [(seen_s, name) for name, seen_s in seen.items()])
    shown = desk.json("devices", "list")["devices"]
    assert [row["device"] for row in shown if row["silent"]] == silent
    assert {row["state"] for row in shown} == {"online"}
    lines = desk.text("devices", "list").splitlines()[1:4]
    assert [line.split()[0] for line in lines if line.split()[2] == "silent"] == silent
    only = desk.json("devices", "list", "--only", "silent")["devices"]
    assert [row["device"] for row in only] == silent
    status = desk.json("status")
    assert (status["devices"]["silent"], status["is_fast"]) == (len(silent), rate > 1)
    told = f"{len(silent)} silent for a day{' of real time' if rate > 1 else ''} or ever\n"
    assert told in desk.text("status")


def test_devices_are_found_sorted_and_shown_by_the_page(desk: Operator) -> None:
    desk.text("devices", "enrol", *(f"home-{at:03d}" for at in range(120)))
    desk.text("devices", "group", "home-117", "--to", "aa")

    def shown(*options: str) -> list[str]:
        rows = desk.json("devices", "list", *options)["devices"]
        return [row["device"].removeprefix("home-") for row in rows]

    assert len(shown()) == 120
    assert shown("--page", "3") == [f"{at:03d}" for at in range(100, 120)]
    assert shown("--page", "2", "--per-page", "2") == ["002", "003"]
    assert shown("--filter", "-11") == [f"{at:03d}" for at in range(110, 120)]
    assert shown("--filter", "0*5", "--page", "1", "--per-page", "2") == ["005", "015"]
    assert shown("--sort", "group", "--page", "1")[-1] == "049"
    assert shown("--sort", "group")[-1] == "117"
    assert desk.text("devices", "list", "--page", "1").endswith("50 of 120 devices\n")
    assert "no device that this asks for" in desk.text("devices", "list", "--filter", "z", code=5)


def test_what_cannot_be_is_said_and_changes_nothing(desk: Operator, tmp_path: Path) -> None:
    assert "device nobody: is not enrolled" in desk.text("devices", "revoke", "nobody", code=2)
    assert "1 to 63 of a-z" in desk.text("devices", "enrol", "x", "a/b", code=2)
    assert "no group's name" in desk.text("devices", "enrol", "x", "--group", "=1+1", code=2)
    assert "there are no groups" in desk.text("devices", "list", "--group", "none", code=2)
    bad = tmp_path / "devices.csv"
    bad.write_text("device,group\ngood,north\nBad Name,north\n")
    assert f"{bad} line 3: 'Bad Name' is no device's name" in desk.text(
        "devices", "import", str(bad), code=2
    )
    assert "readable file" in desk.text("devices", "import", str(tmp_path / "none.csv"), code=2)
    bad.write_text("device;group\nbb;north\n")  # as some spreadsheets write
    assert "with commas between them" in desk.text("devices", "import", str(bad), code=2)
    assert desk.json("devices", "list", code=5)["devices"] == []


@pytest.mark.parametrize("form", ["csv", "json"])
def test_what_is_exported_is_imported_as_it_was(desk: Operator, tmp_path: Path, form: str) -> None:
    desk.text("devices", "enrol", "a", "bb", "--group", "north")
    desk.text("devices", "enrol", "ccc")
    desk.text("devices", "revoke", "bb")
    file = tmp_path / f"devices.{form}"
    desk.text("devices", "export", str(file))
    before = desk.json("devices", "list")
    assert desk.json("devices", "import", str(file))["changed"] == []
    desk.text("devices", "reinstate", "bb")
    desk.text("devices", "group", "ccc", "--to", "north")
    assert desk.json("devices", "import", str(file))["changed"] == ["bb", "ccc"]
    after = desk.json("devices", "list")
    keys = ("device", "group", "state", "enrolled_s", "held_s")
    assert [[row[key] for key in keys] for row in after["devices"]] == [
        [row[key] for key in keys] for row in before["devices"]
    ]
    assert [row["revoked_s"] is None for row in after["devices"]] == [True, False, True]


def test_completeness_shows_where_every_report_is(desk: Operator, engine: Engine) -> None:
    store = served(engine, 1, 2, 4)
    desk.text("devices", "quarantine", "ccc")
    desk.text("devices", "group", "bb", "--to", "north")
    take(store, *(report(name, 5) for name in HOMES), report("a", 5))
    found = desk.json("completeness", "--exact")
    assert found["holds"]
    rows = {row["device"]: row for row in found["devices"]}
    assert {name: rows[name]["counted"] for name in HOMES} == dict.fromkeys(HOMES, 4 * REPORTS)
    assert {name: rows[name]["held"] for name in HOMES} == {"a": 0, "bb": 0, "ccc": REPORTS}
    assert (rows["a"]["gaps"], rows["a"]["missing_batches"]) == ([[3, 3]], 1)
    assert rows["a"]["duplicates"] == REPORTS
    assert found["counts"] == [
        {"stream": "power", "counted": 144, "in_counts": 132, "apart": 12, "deleted": 0}
    ]
    take(store, report("a", 3))
    incomplete = desk.json("completeness", "--incomplete", "--exact")
    assert [row["device"] for row in incomplete["devices"]] == ["bb", "ccc"]
    assert [row["device"] for row in desk.json("completeness", "--group", "north")["devices"]] == [
        "bb"
    ]
    assert desk.json("completeness", "--device", "ccc", "--exact")["totals"]["held"] == REPORTS
    assert "nothing is known of device 'd'" in desk.text("completeness", "--device", "d", code=5)
    assert "132 in the counts" not in desk.text("completeness")
    store.close()


def test_counts_that_lost_a_report_are_told_and_the_exit_code_says_so(
    desk: Operator, engine: Engine
) -> None:
    served(engine, 1, 2).close()
    assert desk.json("completeness")["holds"]
    change = "DELETE FROM {} WHERE bucket = (SELECT max(bucket) FROM {})"
    if engine.name == "sqlite":
        with sqlite3.connect(engine.path) as db:
            db.execute(change.format("counts", "counts"))
        db.close()
    else:
        with psycopg.connect(engine.url) as session:
            for table in ("counts", "count_deltas"):
                session.execute(change.format(table, table).encode())
    found = desk.json("completeness", code=1)
    assert not found["holds"]
    (told,) = found["violations"]
    assert told.startswith("power: 72 counted by the devices' accounts")
    assert "WRONG: power" in desk.text("completeness", code=1)


def test_commands_work_beside_a_service_that_holds_the_store(
    desk: Operator, engine: Engine
) -> None:
    store = served(engine, 1)
    desk.text("devices", "revoke", "a")
    take(store, report("a", 2))
    assert [row.reason for row in store.refused()] == ["device"]
    assert desk.json("completeness")["holds"]
    store.close()


def test_each_command_is_told_of_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    told = capsys.readouterr().out.partition("COMMAND\n")[2].partition("\noptions:")[0]
    sentences = re.split(r"\n {4}(?=[a-z])", f"\n{told.rstrip()}")[1:]
    assert len(sentences) > 15
    for sentence in sentences:
        assert re.fullmatch(r"[a-z-]+\s+[A-Z].*\.", sentence, re.DOTALL), sentence
