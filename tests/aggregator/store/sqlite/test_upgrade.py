"""A store of the first schema goes on under this one; a newer one is left alone."""

import sqlite3
from pathlib import Path

import pytest

from aggregator.errors import StoreError
from aggregator.store.contract import RevisionRow
from aggregator.store.sqlite import schema
from aggregator.store.sqlite.reader import SqliteReader
from aggregator.store.sqlite.store import SqliteStore
from edge_ldp.protocol.messages import Status
from edge_ldp.protocol.plan import parse_plan
from tests.aggregator.store_contract import changes, commit, known

# Dumped from a store that the program wrote before schema 2 existed.
FIRST = Path(__file__).parents[3] / "vectors" / "aggregator_store" / "v1" / "store.sql"


def first(tmp_path: Path) -> Path:
    path = tmp_path / "a.db"
    db = sqlite3.connect(path)
    db.executescript(FIRST.read_text())
    db.close()
    return path


def version(path: Path) -> int:
    db = sqlite3.connect(path)
    found = db.execute("PRAGMA user_version").fetchone()[0]
    db.close()
    return int(found)


def test_a_store_of_schema_1_is_upgraded_and_nothing_in_it_changes(tmp_path: Path) -> None:
    path = first(tmp_path)
    assert version(path) == 1
    store = SqliteStore.open(path)
    assert version(path) == schema.VERSION == 8
    (((device, stream), record),) = store.records()
    assert (device, stream, record.counted, record.pending) == ("home", 1, 50, 10)
    assert (record.state.highest, record.state.gaps[0].first) == (9, 3)
    assert store.totals(1).count.sum() == 12
    assert store.presence(1) == [(474_500, 4)]
    assert [row.messages for row in store.refused()] == [1]
    (row,) = store.plans()
    assert parse_plan(row.payload).epoch == 1
    assert store.last_commit_s() == 1_700_000_000
    assert (store.revisions(), store.marks()) == ([], [])
    store.add_revision(RevisionRow(1, 5, b"{}"))
    commit(store, changes(watched={("home", 1, "law"): b"kept"}))
    store.close()
    again = SqliteStore.open(path)
    assert known(again, [("home", 1)]).watched == {("home", 1, "law"): b"kept"}
    assert [look.at_s for look in again.revisions()] == [5]
    again.close()


def test_a_store_of_schema_3_is_upgraded_and_knows_of_no_refusal_yet(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    db = sqlite3.connect(path)
    db.executescript((FIRST.parents[1] / "v3" / "store.sql").read_text())
    db.close()
    store = SqliteStore.open(path)
    assert version(path) == schema.VERSION
    found = [(row.device, row.state, row.refusals) for row in store.devices()]
    assert found == [("home", "online", ()), ("other", "unknown", ())]
    assert store.totals(1).count.sum() == 1
    commit(store, changes(statuses={"other": Status("online", "1", refusals=("ratio",))}))
    assert [row.refusals for row in store.devices()] == [(), ("ratio",)]
    store.close()


def test_an_upgrade_that_fails_leaves_the_store_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = first(tmp_path)
    steps = {**schema.STEPS, 2: (*schema.STEPS[2], "CREATE TABLE looks (x)")}
    monkeypatch.setattr(schema, "STEPS", steps)
    with pytest.raises(StoreError, match="already exists"):
        SqliteStore.open(path)
    assert version(path) == 1
    monkeypatch.undo()
    SqliteStore.open(path).close()
    assert version(path) == schema.VERSION


def test_the_commands_that_only_read_ask_for_the_upgrade(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"is of schema 1.*aggregator run"):
        SqliteReader.open(first(tmp_path))


def test_a_newer_store_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    SqliteStore.open(path).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    for kind in (SqliteStore, SqliteReader):
        with pytest.raises(StoreError, match=r"newer version \(schema 99.*upgrade edge-ldp"):
            kind.open(path)
    assert version(path) == 99
