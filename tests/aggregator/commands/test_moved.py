"""A SQLite store that went on in PostgreSQL: who asks the file is told, who changes it refused."""

from contextlib import closing
from pathlib import Path

import pytest

from aggregator.archive.directory import open_spool
from aggregator.commands.replay import main as replay
from aggregator.config import load_config
from aggregator.errors import StoreError
from aggregator.plans.planner import first_plan
from aggregator.store.contract import PlanRow
from aggregator.store.rows import MOVED
from aggregator.store.sqlite.session import SqliteSession
from aggregator.store.sqlite.store import SqliteStore
from tests.aggregator.fakes import CONFIG
from tests.aggregator.home_traffic import NOW_S, report, take
from tests.aggregator.operator import Operator, operator

THERE = "postgresql://there/homes"


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Operator:
    archive = f'\n[archive]\npath = "{tmp_path / "archive"}"\n'
    text = CONFIG.format(path=tmp_path / "a.db", intake="") + archive
    desk = operator(tmp_path, text, capsys)
    with closing(SqliteStore.open(tmp_path / "a.db")) as store:
        plan = first_plan("demo", load_config(desk.file).streams[0], epoch=1, now_s=int(NOW_S))
        store.add_plan(PlanRow(1, 1, plan.issued_s, plan.to_json()))
        take(store, report("a", 1))
    return desk


def mark(place: Path) -> None:
    with closing(SqliteStore.open(place / "a.db")) as store, store.reading() as db:
        db.execute("INSERT INTO facts VALUES (?, ?)", (MOVED, THERE))


def test_who_asks_a_store_that_was_moved_is_told_where_it_is(
    desk: Operator, tmp_path: Path
) -> None:
    asked = (["status"], ["devices", "list"], ["plan", "show"], ["completeness"], ["audit"])
    for command in asked:
        assert "moved" not in desk.text(*command)
    mark(tmp_path)
    told = f"edge-ldp aggregator: {tmp_path}/a.db was moved to {THERE}: this is what it held then"
    for command in asked:
        assert f"{told}; name that one in [store] url" in desk.text(*command)
    assert desk.json("status")["fleet"] == "demo"
    assert told in desk.text("query", code=5)


def test_a_store_that_was_moved_is_neither_changed_nor_backed_up(
    desk: Operator, tmp_path: Path
) -> None:
    desk.text("backup", str(tmp_path / "before"))
    with closing(SqliteStore.open(tmp_path / "a.db")) as store:
        spool = open_spool(load_config(desk.file), store)
        assert spool is not None
        spool.close()
    mark(tmp_path)
    before = (tmp_path / "a.db").read_bytes()
    for command in (
        ["devices", "revoke", "a"],
        ["plan", "hold", "--stream", "power"],
        ["streams", "retire", "power"],
        ["backup", str(tmp_path / "after")],
        ["restore", str(tmp_path / "before")],
    ):
        assert f"was moved to {THERE}; " in desk.text(*command, code=4), command
    assert replay(["-c", str(desk.file)]) == 4  # it would bring the archive's spool into files
    assert f"was moved to {THERE}; " in desk.capsys.readouterr().err
    assert not (tmp_path / "after").exists()
    assert (tmp_path / "a.db").read_bytes() == before


def test_a_session_that_was_open_meanwhile_changes_nothing(desk: Operator, tmp_path: Path) -> None:
    assert "moved" not in desk.text("status")
    with closing(SqliteSession.open(tmp_path / "a.db")) as session:
        mark(tmp_path)
        with pytest.raises(StoreError, match="was moved to"), session.transaction():
            pytest.fail("it began")
