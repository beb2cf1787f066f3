"""PostgreSQL keeps the contract of a store, and what is asked of it alone: AGG-06, 08, 10."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from aggregator.counting.records import Changes, Known, Record
from aggregator.errors import FencedError, StoreError, StoreHeldError
from aggregator.store.contract import PlanRow
from aggregator.store.postgres import link, locks
from aggregator.store.postgres import statements as schema
from aggregator.store.postgres.locks import Leadership
from aggregator.store.postgres.reader import PostgresReader
from aggregator.store.postgres.schema import VERSION
from aggregator.store.postgres.store import PostgresStore
from edge_ldp.protocol.messages import Status
from tests.aggregator.store_contract import (
    NOW_S,
    RECORD,
    OpenReader,
    OpenStore,
    StoreContract,
    changes,
    codes,
    commit,
    known,
    rows,
)
from tests.postgres import PostgresServer

HOME = frozenset({("home", 1)})
NOBODY: frozenset[str] = frozenset()


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def open_store(self, url: str) -> Iterator[OpenStore]:
        """Give a function that opens the same store; what was open before is closed first."""
        opened: list[PostgresStore] = []

        def reopen() -> PostgresStore:
            for store in opened:
                store.merge()  # also what was folded reads as before
                store.close()
            opened.append(PostgresStore.open(url))
            return opened[-1]

        yield reopen
        for store in opened:
            store.close()

    @pytest.fixture
    def open_reader(self, url: str) -> OpenReader:
        """Give a function that opens a reader beside it."""
        return lambda: PostgresReader.open(url)


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    made = PostgresStore.open(url)
    yield made
    made.close()


def end(server: PostgresServer, store: PostgresStore) -> None:
    with store.reading() as db:
        pid = db.info.backend_pid
    server.ask(f"SELECT pg_terminate_backend({pid}, 5000)")


def test_a_reader_needs_a_store_that_was_made(url: str) -> None:
    with pytest.raises(StoreError, match="schema 0"):
        PostgresReader.open(url)
    PostgresStore.open(url).close()
    reader = PostgresReader.open(url)
    assert reader.plans() == []
    reader.close()


def test_a_store_of_a_newer_version_is_refused(url: str) -> None:
    PostgresStore.open(url).close()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("UPDATE edge_ldp_schema SET version = %s", (VERSION + 1,))
    with pytest.raises(StoreError, match="newer version"):
        PostgresStore.open(url)


def test_a_worker_whose_store_a_newer_version_upgraded_writes_no_more_AGG_42(url: str) -> None:
    """A flush at work ends before the tables change; one that waited for that sees it."""
    store = PostgresStore.open(url, alone=False, worker="old")
    commit(store, changes(tally=codes((40, 0))))
    before = rows(store)
    with psycopg.connect(url) as newer, ThreadPoolExecutor(1) as pool:
        newer.execute("SELECT pg_advisory_xact_lock(%s, %s)", (schema.LOCKS, schema.MEMBERS))
        flush = pool.submit(commit, store, changes(tally=codes((40, 1))))
        waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while newer.execute(waits).fetchone() != (1,):
            assert not flush.done()
        newer.execute("UPDATE edge_ldp_schema SET version = %s", (VERSION + 1,))
        newer.commit()
        with pytest.raises(StoreError, match="was upgraded by a newer version while"):
            flush.result()
    assert rows(store) == before
    store.close()


def test_another_programs_tables_are_left_alone(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE TABLE facts (mine text)")
    with pytest.raises(StoreError, match=r"not ours .*facts.* already exists"):
        PostgresStore.open(url)
    with psycopg.connect(url) as db:
        assert db.execute("SELECT to_regclass('edge_ldp_schema')").fetchone() == (None,)


def test_a_database_that_is_not_utf_8_is_refused(server: PostgresServer) -> None:
    server.ask("CREATE DATABASE odd TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'")
    with pytest.raises(StoreError, match="SQL_ASCII"):
        PostgresStore.open(server.url("odd"))


def test_a_server_that_is_not_there_is_a_hold() -> None:
    with pytest.raises(StoreHeldError, match="cannot be used now"):
        PostgresStore.open("postgresql://nobody@/none?host=/nonexistent")


def test_a_second_writer_is_refused_unless_both_share(url: str) -> None:
    alone = PostgresStore.open(url)
    for how in (True, False):
        with pytest.raises(StoreHeldError, match="in use by another"):
            PostgresStore.open(url, alone=how)
    alone.close()
    first, second = (PostgresStore.open(url, alone=False) for _ in range(2))
    with pytest.raises(StoreHeldError, match="in use by another"):
        PostgresStore.open(url)
    first.close()
    second.close()


def test_an_answer_to_commit_means_durable(url: str, server: PostgresServer) -> None:
    name = conninfo_to_dict(url)["dbname"]
    server.ask(f"ALTER DATABASE {name} SET synchronous_commit = off")
    store = PostgresStore.open(url)
    with store.reading() as db:
        assert db.execute("SHOW synchronous_commit").fetchone() == ("on",)
    store.close()


def test_merging_changes_no_answer_and_leaves_no_deltas(store: PostgresStore) -> None:
    for _ in range(3):
        commit(store, changes(tally=codes((4, 7), (9, 2)), presence={(1, 1, 0, 0): 2},
                              refused={("late", 1): (1, 9)}))  # fmt: skip
    before = rows(store), store.presence(1), store.refused(), store.last_commit_s()
    for _ in range(2):
        store.merge()
        assert (rows(store), store.presence(1), store.refused(), store.last_commit_s()) == before
    with store.reading() as db:
        for table in ("count_deltas", "presence_deltas", "refused_deltas"):
            assert db.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() == (0,)  # noqa: S608
    assert before[0] == [(1, 1, 7, 3), (1, 2, 2, 3)]


def test_a_store_folds_by_itself_after_some_flushes(store: PostgresStore) -> None:
    for _ in range(schema.MERGE_EVERY + 1):
        commit(store, changes(tally=codes((4, 7))))
    with store.reading() as db:
        assert db.execute("SELECT count(*) FROM count_deltas").fetchone() == (1,)
    assert rows(store) == [(1, 1, 7, schema.MERGE_EVERY + 1)]


@pytest.mark.parametrize("page", [1, 2, 3, 6, 7, 100])
def test_records_are_added_up_page_by_page(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """Each page finds its own devices, whose streams it may cut; of one there is no row."""
    kept = {(f"home-{at // 2}", at % 2): RECORD for at in range(6)} | {("unknown", 1): RECORD}
    told = {f"home-{at}": Status("online", "v") for at in range(3)}
    commit(store, changes(kept, statuses=told, holds={"home-1"}))
    monkeypatch.setattr("aggregator.store.postgres.reader.PAGE", page)
    rows = {(row.stream, row.group, row.held): row for row in store.report_sums()}
    devices = {(stream, 0, held): 2 - held for stream in (0, 1) for held in (False, True)}
    assert {key: row.devices for key, row in rows.items()} == devices | {(1, None, False): 1}
    assert all(row.counted == row.devices * RECORD.counted for row in rows.values())


def test_damaged_counts_are_refused_AGG_12(store: PostgresStore) -> None:
    commit(store, changes(tally=codes((4, 7))))
    with store.reading() as db:
        db.execute("UPDATE count_deltas SET pairs = pairs || '\\x00'")
    for read in (lambda: store.counts(1, 0, 9), lambda: store.totals(1), store.merge):
        with pytest.raises(StoreError, match="damaged"):
            read()


def test_a_connection_that_was_ended_is_a_hold_and_the_next_attempt_works_AGG_06(
    server: PostgresServer, store: PostgresStore
) -> None:
    commit(store, changes(tally=codes((4, 7))))
    end(server, store)
    with pytest.raises(StoreHeldError):
        commit(store, changes(tally=codes((4, 7))))
    commit(store, changes(tally=codes((4, 7))))
    assert rows(store) == [(1, 1, 7, 2)]


def test_what_the_server_asks_to_repeat_is_repeated_whole_AGG_06(store: PostgresStore) -> None:
    tries: list[int] = []

    def decide(_: Known) -> Changes:
        tries.append(1)
        if len(tries) < 3:
            raise errors.SerializationFailure("could not serialize access")
        return changes(tally=codes((4, 7)))

    store.update(frozenset(), NOBODY, NOW_S, decide)
    assert rows(store) == [(1, 1, 7, 1)]

    def never(_: Known) -> Changes:
        raise errors.DeadlockDetected("deadlock detected")

    with pytest.raises(StoreHeldError, match="busy with other writers"):
        store.update(frozenset(), NOBODY, NOW_S, never)
    assert rows(store) == [(1, 1, 7, 1)]


def test_a_standby_that_only_reads_is_a_hold_until_it_is_promoted_AGG_06(
    server: PostgresServer, url: str, store: PostgresStore
) -> None:
    name = conninfo_to_dict(url)["dbname"]
    server.ask(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    store.close()
    with pytest.raises(StoreHeldError, match="read-only"):
        commit(store, changes(tally=codes((4, 7))))
    assert rows(store) == []
    server.ask(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    store.close()
    commit(store, changes(tally=codes((4, 7))))
    assert rows(store) == [(1, 1, 7, 1)]


FULL = """
CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE disk_full; END $$;
CREATE TRIGGER no_room BEFORE INSERT ON count_deltas EXECUTE FUNCTION full_disk();
"""


def test_without_room_for_its_tables_a_flush_is_a_hold_and_nothing_is_half_there_AGG_05(
    url: str, store: PostgresStore
) -> None:
    flush = changes({("home", 1): RECORD}, codes((4, 7)))
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(FULL)
        with pytest.raises(StoreHeldError):
            commit(store, flush)
        assert (rows(store), list(store.records())) == ([], [])
        db.execute("DROP FUNCTION full_disk CASCADE")
    commit(store, flush)
    assert (rows(store), list(store.records())) == ([(1, 1, 7, 1)], [(("home", 1), RECORD)])


def test_missing_rights_are_said_and_not_waited_for(server: PostgresServer, url: str) -> None:
    PostgresStore.open(url).close()
    server.ask("CREATE USER stranger")
    with pytest.raises(StoreError, match="grant this user the rights") as caught:
        PostgresReader.open(url.replace("postgres@", "stranger@"))
    assert not isinstance(caught.value, StoreHeldError)


def test_a_flush_that_was_committed_is_not_written_again_AGG_07(store: PostgresStore) -> None:
    flush = uuid4()
    change = changes(tally=codes((4, 7)), refused={("frame", -1): (1, 0)})
    first = store.update(frozenset(), NOBODY, NOW_S, lambda _: change, flush)

    def decide(_: Known) -> Changes:
        raise AssertionError("it was decided before")

    assert store.update(frozenset(), NOBODY, NOW_S, decide, flush) is first
    assert rows(store) == [(1, 1, 7, 1)]
    assert store.refused()[0].messages == 1


def test_an_old_leader_is_fenced_off_AGG_08(url: str) -> None:
    old, new = (PostgresStore.open(url, alone=False) for _ in range(2))
    old.add_plan(PlanRow(1, 1, NOW_S, b"first"))
    old.add_plan(PlanRow(1, 1, NOW_S, b"first"))  # its answer was lost
    new.add_plan(PlanRow(1, 2, NOW_S, b"the new leader's"))
    for epoch in (1, 2):
        with pytest.raises(FencedError, match="holds epoch 2"):
            old.add_plan(PlanRow(1, epoch, NOW_S, b"the old leader's"))
    old.add_plan(PlanRow(2, 1, NOW_S, b"another stream"))
    assert [(row.stream, row.epoch) for row in new.plans()] == [(1, 1), (1, 2), (2, 1)]
    old.close()
    new.close()


def test_two_leaders_at_the_same_moment_issue_one_plan_AGG_08(url: str) -> None:
    stores = [PostgresStore.open(url, alone=False) for _ in range(2)]
    start = threading.Barrier(2)

    def issue(at: int, epoch: int) -> bool:
        start.wait()
        try:
            stores[at].add_plan(PlanRow(1, epoch, NOW_S, b"of %d" % at))
        except FencedError:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        for epoch in range(1, 51):
            assert sum(pool.map(issue, (0, 1), (epoch, epoch))) == 1
    for store in stores:
        store.close()


def test_one_leads_until_its_connection_ends(url: str, server: PostgresServer) -> None:
    PostgresStore.open(url).close()
    one, two = Leadership(url), Leadership(url)
    assert one.is_ours()
    assert one.is_ours()
    assert not two.is_ours()
    leads = "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'"
    of_this = "database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    assert len(server.ask(f"{leads} AND {of_this}", urlsplit(url).path[1:])) == 1
    assert two.is_ours()
    with pytest.raises(StoreHeldError):
        one.is_ours()
    assert not one.is_ours()
    two.close()
    assert one.is_ours()
    one.close()


def test_two_workers_that_make_one_record_at_the_same_moment_decide_in_turn_AGG_10(
    url: str,
) -> None:
    stores = [PostgresStore.open(url, alone=False) for _ in range(2)]
    start = threading.Barrier(2)
    races = 100

    def count(at: int, device: str) -> None:
        key = (device, 1)

        def decide(known: Known) -> Changes:
            old = known.records.get(key)
            if old is not None:
                return changes({key: old._replace(duplicates=old.duplicates + 1)})
            return changes({key: Record(counted=1)}, codes((4, 7)),
                           enrolled=frozenset({device}) - known.devices)  # fmt: skip

        start.wait()
        stores[at].update(frozenset({key}), frozenset({device}), NOW_S, decide)

    with ThreadPoolExecutor(2) as pool:
        for race in range(races):
            list(pool.map(count, (0, 1), (f"home-{race}",) * 2))
    for _, record in stores[0].records():
        assert (record.counted, record.duplicates) == (1, 1)
    assert rows(stores[1]) == [(1, 1, 7, races)]
    assert len(stores[0].devices()) == races
    assert known(stores[0], devices=["new"]).device_count == races
    for store in stores:
        store.close()


def test_workers_that_lock_in_other_orders_do_not_stop_each_other_AGG_06(url: str) -> None:
    """A deadlock is the server's to end and ours to repeat: nothing is lost or counted twice."""
    stores = [PostgresStore.open(url, alone=False) for _ in range(2)]
    with stores[0].reading() as db:
        db.execute("ALTER SYSTEM SET deadlock_timeout = '20ms'")
        db.execute("SELECT pg_reload_conf()")
    keys = [("a", 1), ("b", 1)]
    commit(stores[0], changes({key: Record() for key in keys}))
    start = threading.Barrier(2, timeout=240)
    attempts: list[int] = []

    def crossed(at: int) -> None:
        mine, other = keys[at], keys[1 - at]
        tried = []

        def decide(known: Known) -> Changes:
            tried.append(1)
            attempts.append(at)
            if len(tried) == 1:
                start.wait()
                with stores[at].reading() as connection:
                    db = connection
                query = "SELECT 1 FROM records WHERE device = %s FOR UPDATE"
                db.execute(query, other[:1])  # against the order of locks
            old = known.records[mine]
            return changes({mine: old._replace(counted=old.counted + 1)}, codes((4, 7)))

        stores[at].update(frozenset({mine}), NOBODY, NOW_S, decide)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(crossed, (0, 1)))
    assert len(attempts) == 3
    assert [record.counted for _, record in stores[0].records()] == [1, 1]
    assert rows(stores[0]) == [(1, 1, 7, 2)]
    for store in stores:
        store.close()


def test_a_worker_frozen_in_its_flush_stops_no_other_and_counts_after_it_AGG_09(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its locks end with its connection; when it goes on it decides again, by what is known now."""
    monkeypatch.setattr(link, "SILENT", "0.2s")
    monkeypatch.setattr(locks, "LOCK_WAIT", "SET lock_timeout = '0.5s'")
    other = PostgresStore.open(url, alone=False, worker="other")
    commit(other, changes({key: Record() for key in HOME}))
    frozen = PostgresStore.open(url, alone=False, worker="frozen")
    is_in_it, goes_on = threading.Event(), threading.Event()

    def count_one(known: Known) -> Changes:
        (key,) = HOME
        old = known.records[key]
        return changes({key: old._replace(counted=old.counted + 1)}, codes((4, 7)))

    def freeze(known: Known) -> Changes:
        is_in_it.set()
        assert goes_on.wait(300)
        return count_one(known)

    with ThreadPoolExecutor(1) as pool:
        flush = uuid4()
        begun = pool.submit(frozen.update, HOME, NOBODY, NOW_S, freeze, flush)
        assert is_in_it.wait(300)
        with pytest.raises(StoreHeldError, match="lock timeout"):
            other.update(HOME, NOBODY, NOW_S, count_one)
        for _ in range(20):  # as the service does; without an end of the frozen one all are in vain
            with suppress(StoreHeldError):
                other.update(HOME, NOBODY, NOW_S, count_one)
                break
        goes_on.set()
        with pytest.raises(StoreHeldError):
            begun.result()
    frozen.update(HOME, NOBODY, NOW_S, count_one, flush)
    assert [record.counted for _, record in other.records()] == [2]
    assert rows(other) == [(1, 1, 7, 2)]
    for store in (frozen, other):
        store.close()


def test_the_same_facts_are_pinned_by_all_workers(url: str) -> None:
    first, second = (PostgresStore.open(url, alone=False) for _ in range(2))
    first.pin({"fleet": "demo"})
    second.pin({"fleet": "demo"})
    with pytest.raises(StoreError, match="fleet = demo, not other"):
        second.pin({"fleet": "other"})
    first.close()
    second.close()
