"""Stores of earlier schemas, dumped from what those programs wrote, go on under this one."""

import sqlite3
from pathlib import Path

import psycopg

from aggregator.counting.records import Member
from aggregator.counting.reporters import pack_reporters
from aggregator.store.contract import Store
from aggregator.store.postgres.store import PostgresStore
from aggregator.store.rows import AuditRow
from aggregator.store.sqlite.store import SqliteStore
from tests.aggregator.engines import Engine
from tests.aggregator.store_contract import NOW_S, RECORD, changes, codes, commit, known, rows

OLD = Path(__file__).parents[2] / "vectors" / "aggregator_store"


def old(engine: Engine, sqlite: str = "v2", postgres: str = "postgres_v1") -> Store:
    """Make a store of an old version, and open it by this one."""
    if engine.name == "sqlite":
        db = sqlite3.connect(engine.path)
        db.executescript((OLD / sqlite / "store.sql").read_text())
        db.close()
        return SqliteStore.open(engine.path)
    with psycopg.connect(engine.url, autocommit=True) as session:
        session.execute((OLD / postgres / "store.sql").read_bytes())
    return PostgresStore.open(engine.url)


def test_a_store_without_groups_is_upgraded_and_all_in_it_is_of_group_0_AGG_22(
    engine: Engine,
) -> None:
    store = old(engine)
    deltas = engine.name == "postgres"  # its dump holds a flush that was not merged yet
    expected = [(1, 1, 7, 2 + deltas), (1, 2, 2, 1), (2, 1, 7, 1), (2, 1, 65_535, 1)]
    if deltas:
        expected.insert(2, (1, 2, 9, 1))
    assert rows(store) == expected
    (zero, none) = (store.counts(1, 0, 9, group) for group in (0, 1))
    assert (zero.count.sum(), none.count.sum()) == (5 + 2 * deltas, 0)
    assert store.presence(1) == store.presence(1, 0) == [(1, 3), (2, 1 + 2 * deltas)]
    assert store.groups() == {"": 0}
    assert store.held_counts() == []
    found = [(row.device, row.group, row.enrolled_s, row.revoked_s) for row in store.devices()]
    assert found == [("home", "", None, None), ("other", "", None, None)]
    assert list(store.records()) == [(("home", 1), RECORD)]
    assert [row.epoch for row in store.plans()] == [1]
    assert [row.times for row in store.marks()] == [1]
    assert store.last_commit_s() == NOW_S
    store.close()


def test_an_upgraded_store_counts_on_by_group(engine: Engine) -> None:
    store = old(engine)
    before = store.totals(1).count.sum()
    more = changes(tally=codes((4, 7), group=3), presence={(1, 1, 3, 0): 2})
    seen = known(store, [("home", 1)], ["home", "new"], change=more)
    assert (seen.devices, seen.device_count) == (frozenset({"home"}), 2)
    assert seen.members.get("home", Member()) == Member()
    assert store.totals(1).count.sum() == before + 1
    assert store.counts(1, 0, 9, 3).code.tolist() == [7]
    assert store.presence(1, 3) == [(1, 2)]
    commit(store, changes(tally=codes((4, 7), group=3)))
    assert store.counts(1, 0, 9, 3).count.tolist() == [2]
    store.close()


def test_a_store_without_a_log_of_changes_is_upgraded_and_begins_one(engine: Engine) -> None:
    store = old(engine, "v4", "postgres_v4")
    assert store.audit() == []
    assert rows(store) == [(1, 1, 7, 1)]
    assert store.presence(1) == [(1, 2)]
    assert list(store.records()) == [(("home", 1), RECORD)]
    found = [(row.device, row.state, row.refusals, row.heard) for row in store.devices()]
    assert found == [("home", "online", ("ratio",), 3), ("other", "unknown", (), 2)]
    assert [(row.epoch, row.payload) for row in store.plans()] == [(1, b"plan")]
    assert store.last_commit_s() == NOW_S
    row = AuditRow(5, "anna@here", "devices enrol home-1")
    store.add_audit([row])
    assert store.audit() == [row]
    store.close()


def test_a_store_that_did_not_keep_who_reported_knows_nobody_until_it_counts_on_AGG_30(
    engine: Engine,
) -> None:
    store = old(engine, "v4", "postgres_v4")
    found = store.counts(1, 0, 9)
    assert dict(found.reporters) == {1: b""}
    who = pack_reporters([5], [6])
    commit(store, changes(tally=codes((4, 7)), reporters={(1, 1, 0, 0, 1): who}))
    found = store.counts(1, 0, 9)
    assert (found.count.tolist(), dict(found.reporters)) == ([2], {1: who})
    store.close()
