"""AGG-20: a backup made while the service runs, and what goes on after yesterday's is restored."""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from aggregator.plans import planner
from aggregator.store.contract import PlanRow, Store
from edge_ldp.protocol.plan import parse_plan
from tests.aggregator.engines import Engine
from tests.aggregator.home_traffic import NOW_S, RULES, Seen, flushes, report, seen, take
from tests.aggregator.operator import Operator, operator
from tests.aggregator.store.sqlite.test_upgrade import FIRST
from tests.postgres import PostgresServer

HOMES = ("a", "bb", "ccc")
INTRANS = psycopg.pq.TransactionStatus.INTRANS
# pg_dump and pg_restore take a second each
BOTH = pytest.mark.parametrize(
    "engine", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)], indirect=True
)


def begun(engine: Engine) -> Store:
    store = engine.open()
    plan = planner.first_plan("demo", engine.config().streams[0], epoch=1, now_s=int(NOW_S))
    store.add_plan(PlanRow(1, 1, plan.issued_s, plan.to_json()))
    day(store, 1)
    return store


def day(store: Store, number: int) -> None:
    for batch in range(3 * number - 2, 3 * number + 1):
        take(store, *(report(name, batch) for name in HOMES))


def renew(store: Store, epoch: int) -> None:
    newest = max(store.plans(), key=lambda row: row.epoch)
    plan = planner.renewed(parse_plan(newest.payload), epoch=epoch, now_s=int(NOW_S))
    store.add_plan(PlanRow(1, epoch, plan.issued_s, plan.to_json()))


def test_after_yesterdays_backup_what_is_sent_again_counts_once_and_epochs_rise_AGG_20(
    engine: Engine, desk: Operator, tmp_path: Path
) -> None:
    store = begun(engine)
    file = str(tmp_path / "yesterday")
    assert desk.json("backup", file)["bytes"] > 1000
    written = Path(file).read_bytes()
    assert "--force puts the new backup in its place" in desk.text("backup", file, code=2)
    assert Path(file).read_bytes() == written
    desk.text("backup", file, "--force")
    day(store, 2)
    renew(store, 2)
    today = seen(store)
    assert "in use" in desk.text("restore", file, code=4)
    assert seen(store) == today
    store.close()

    (told,) = desk.json("restore", file)["plans"]
    assert told == {"stream": "power", "epoch": 1002, "taken_over": 1}
    store = engine.open()
    assert [row.epoch for row in store.plans()] == [1, 2, 1002]
    assert seen(store).tally.total == today.tally.total // 2
    closed = replace(RULES, now_s=NOW_S + RULES.window_s, window_s=60)
    before = seen(store)
    take(store, report("a", 4), rules=closed)  # its window is over: its figure does not change
    assert (seen(store).tally, seen(store).presence) == (before.tally, before.presence)
    assert store.states("a")[0][1].rejected > 0
    store.close()

    desk.text("restore", file)
    store = engine.open()
    for number in (1, 2):
        day(store, number)  # everything that a receipt does not cover any more, and more
    again = seen(store)
    assert (again.tally, again.presence) == (today.tally, today.presence)
    assert [one.counted for _, one in again.records] == [one.counted for _, one in today.records]
    store.close()


@BOTH
def test_what_is_replaced_is_kept_and_can_be_restored(
    engine: Engine, desk: Operator, tmp_path: Path
) -> None:
    store = begun(engine)
    file = str(tmp_path / "backup")
    desk.text("backup", file)
    day(store, 2)
    today = seen(store)
    store.close()
    kept = desk.json("restore", file)["replaced"]
    assert desk.json("restore", kept)["plans"] == [
        {"stream": "power", "epoch": 2001, "taken_over": 1}
    ]
    store = engine.open()
    assert seen(store) == today
    store.close()


@BOTH
def test_a_backup_made_under_load_is_one_moment(
    engine: Engine, desk: Operator, tmp_path: Path
) -> None:
    store = begun(engine)
    going = threading.Event()

    def serve() -> None:
        for messages in flushes(HOMES, 60):
            take(store, *messages)
            going.set()

    serving = threading.Thread(target=serve)
    serving.start()
    going.wait(300)
    for at in range(3):
        desk.text("backup", str(tmp_path / f"backup-{at}"))
    serving.join()
    today = seen(store)
    store.close()
    for at in range(3):
        desk.text("restore", str(tmp_path / f"backup-{at}"))
        assert desk.json("completeness")["holds"]
    store = engine.open()
    for messages in flushes(HOMES, 60):
        take(store, *messages)
    assert (seen(store).tally, seen(store).presence) == (today.tally, today.presence)
    store.close()


@BOTH
def test_a_backup_of_another_fleet_is_refused_and_the_store_stays(
    engine: Engine, desk: Operator, tmp_path: Path
) -> None:
    store = begun(engine)
    store.pin({"fleet": "other"})
    before = seen(store)
    store.close()
    file = tmp_path / "backup"
    desk.text("backup", str(file))
    told = desk.text("restore", str(file), code=4)
    assert f"{file}: is a backup of the fleet other, not of " in told
    store = engine.open()
    assert seen(store) == before
    assert store.facts()["fleet"] == "other"
    store.close()


@BOTH
def test_a_file_that_is_no_backup_is_refused_and_the_store_stays(
    engine: Engine, desk: Operator, tmp_path: Path
) -> None:
    store = begun(engine)
    before = seen(store)
    store.close()
    bad = tmp_path / "bad"
    bad.write_bytes(b"no backup" * 1000)
    assert "does not exist" in desk.text("restore", str(tmp_path / "none"), code=4)
    desk.text("restore", str(bad), code=4)
    store = engine.open()
    assert seen(store) == before
    store.close()
    assert "No such file" in desk.text("backup", str(tmp_path / "no" / "where"), code=4)


def test_nothing_is_written_over_what_the_installation_lives_by(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Engine("sqlite", f'path = "{tmp_path / "a.db"}"', tmp_path / "a.db", "")
    begun(made).close()
    desk = operator(tmp_path, made.text(), capsys)
    (tmp_path / "link.db").symlink_to("a.db")
    before = (tmp_path / "a.db").read_bytes()
    for name in ("a.db", "link.db", "a.db-wal", "a.db.lock", "sub/../a.db", "aggregator.toml"):
        (tmp_path / "sub").mkdir(exist_ok=True)
        for command in (("backup",), ("devices", "export")):
            told = desk.text(*command, str(tmp_path / name), code=2)
            assert "expected another file" in told
    assert (tmp_path / "a.db").read_bytes() == before
    assert "power" in (tmp_path / "aggregator.toml").read_text()


@BOTH
def test_a_store_that_is_lost_is_made_anew_from_its_backup_AGG_20(
    engine: Engine, desk: Operator, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    store = begun(engine)
    before = seen(store)
    desk.text("backup", str(tmp_path / "backup"))
    store.close()
    if engine.name == "sqlite":
        for path in tmp_path.glob("a.db*"):
            path.unlink()
        there, operating = engine, desk
    else:
        url = request.getfixturevalue("server").new_database()
        there = replace(engine, url=url, line=f'url = "{url}"')
        operating = operator(tmp_path, there.text(), desk.capsys)
    told = operating.json("restore", str(tmp_path / "backup"))
    assert told["plans"] == [{"stream": "power", "epoch": 1001, "taken_over": 0}]
    assert told["replaced"] is None
    store = there.open()
    assert seen(store) == before
    store.close()


def test_a_damaged_store_is_never_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Engine("sqlite", f'path = "{tmp_path / "a.db"}"', tmp_path / "a.db", "")
    desk = operator(tmp_path, made.text(), capsys)
    begun(made).close()
    desk.text("backup", str(tmp_path / "backup"))
    content = b"SQLite format 3\0" + b"damaged" * 1000
    made.path.write_bytes(content)
    assert "move it aside (never delete it)" in desk.text(
        "restore", str(tmp_path / "backup"), code=4
    )
    assert made.path.read_bytes() == content
    aside = tmp_path / "aside"
    aside.mkdir()
    made.path.rename(aside / "a.db")
    beside = tmp_path / "a.db-wal"
    beside.write_bytes(b"of another store")
    assert "a.db-wal: is of a store that is not there; move it aside" in desk.text(
        "restore", str(tmp_path / "backup"), code=4
    )
    assert beside.read_bytes() == b"of another store"
    for path in tmp_path.glob("a.db-*"):
        path.rename(aside / path.name)
    desk.text("restore", str(tmp_path / "backup"))
    assert desk.json("completeness")["holds"]


class Failing:
    """The k-th statement within transactions fails: what a kill there would leave."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 1 << 30
        for owner, name in ((psycopg.Connection, "execute"), (psycopg.Cursor, "copy")):
            monkeypatch.setattr(owner, name, self._failing(getattr(owner, name)))

    def _failing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def failing(asked: Any, *args: Any, **kwargs: Any) -> Any:
            db = getattr(asked, "connection", asked)
            self.left -= db.info.transaction_status == INTRANS
            if self.left == -1:
                self.left = 1 << 30  # what follows rolls back, as the server would after a kill
                raise KeyboardInterrupt
            return original(asked, *args, **kwargs)

        return failing


def test_a_restoration_in_postgresql_that_ends_anywhere_was_done_or_not_done_AGG_20(
    server: PostgresServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = server.new_database()
    engine = Engine("postgres", f'url = "{url}"', tmp_path / "a.db", url)
    desk, file = operator(tmp_path, engine.text(), capsys), str(tmp_path / "backup")
    store = begun(engine)
    desk.text("backup", file)
    day(store, 2)
    renew(store, 2)
    store.close()

    def shown() -> tuple[Seen, list[int]]:
        with closing(engine.open()) as store:
            return seen(store), [row.epoch for row in store.plans()]

    today = shown()
    failing, at, ends = Failing(monkeypatch), 0, 0
    told = None
    while told is None:
        failing.left = at
        try:
            (told,) = desk.json("restore", file)["plans"]
        except KeyboardInterrupt:
            assert shown() == today
            ends, at = ends + 1, at + 9
    failing.left = 1 << 30
    assert ends > 5
    assert told == {"stream": "power", "epoch": 1002, "taken_over": 1}
    assert shown()[1] == [1, 2, 1002]
    assert shown()[0].tally.total == today[0].tally.total // 2
    with closing(engine.open()) as store:
        day(store, 2)
        assert seen(store).tally == today[0].tally


def test_a_backup_of_an_older_version_is_upgraded_as_it_is_restored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Engine("sqlite", f'path = "{tmp_path / "a.db"}"', tmp_path / "a.db", "")
    desk = operator(tmp_path, made.text(), capsys)
    old = sqlite3.connect(tmp_path / "old.db")
    old.executescript(FIRST.read_text())
    old.close()
    desk.text("restore", str(tmp_path / "old.db"))
    assert [row["device"] for row in desk.json("devices", "list")["devices"]] == ["home"]
    assert desk.json("plan", "show")["plan"]["epoch"] == 1001


FOREIGN = {
    "trigger": "CREATE TRIGGER more AFTER INSERT ON plans BEGIN DELETE FROM counts; END",
    "view": "CREATE VIEW more AS SELECT * FROM plans",
    "virtual table": "CREATE VIRTUAL TABLE more USING fts5(text)",
}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_backup_that_would_do_more_than_its_rows_say_is_refused_AGG_20(
    engine: Engine, desk: Operator, tmp_path: Path, kind: str
) -> None:
    begun(engine).close()
    file = tmp_path / "backup"
    desk.text("backup", str(file))
    with closing(sqlite3.connect(file)) as db:
        db.execute(FOREIGN[kind])
        db.commit()
    before = engine.path.read_bytes()
    told = f"holds a {kind} ('more'), and no store has one"
    assert told in desk.text("restore", str(file), code=4)
    assert engine.path.read_bytes() == before
    assert not list(tmp_path.glob("*.restoring*"))
