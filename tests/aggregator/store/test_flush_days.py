"""Ids of flushes lie by day, a day is forgotten at once, and none of it is seen: AGG-07, 16, 22."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import errors

from aggregator.counting.records import Changes, Doubt, Known
from aggregator.store.contract import new_flush
from aggregator.store.flush_ids import DAY_MS, DAYS, flush_day, flush_id
from aggregator.store.postgres import statements as schema
from aggregator.store.postgres.flush import forget
from aggregator.store.postgres.link import connect
from aggregator.store.postgres.store import PostgresStore
from tests.aggregator.store_contract import NOW_S, changes, codes, rows

OLD = Path(__file__).parents[2] / "vectors" / "aggregator_store" / "postgres_v2" / "store.sql"
NOBODY: frozenset[str] = frozenset()
MONDAY_MS = 4 * DAY_MS  # 5 January 1970
ONE = changes(tally=codes((4, 7)))


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    made = PostgresStore.open(url)
    yield made
    made.close()


def of_day(day: int, number: int = 0) -> UUID:
    return UUID(bytes=flush_id(day * DAY_MS, number.to_bytes(10, "big")))


def put(store: PostgresStore, flush: UUID, at_s: int = NOW_S, *, age: str = "0 s") -> None:
    store.update(frozenset(), NOBODY, at_s, lambda _: ONE, flush)
    with store.reading() as db:
        db.execute("UPDATE flushes SET made = now() - %s::interval WHERE id = %s", (age, flush))


def kept(store: PostgresStore) -> dict[int, int]:
    """Return how many ids each day of the ring holds."""
    with store.reading() as db:
        tables = db.execute("SELECT tableoid::regclass::text FROM flushes").fetchall()
    days = [int(name.removeprefix("flushes_")) for (name,) in tables]
    return {day: days.count(day) for day in sorted(set(days))}


def unasked(_: Known) -> Changes:
    raise AssertionError("it was decided before")


def test_an_id_lies_with_those_of_its_day(store: PostgresStore) -> None:
    for day in range(2 * DAYS):
        put(store, of_day(day))
    put(store, now := new_flush())
    expected = dict.fromkeys(range(DAYS), 2)
    expected[flush_day(now.bytes)] += 1
    assert kept(store) == expected


def test_a_flush_begun_before_midnight_and_repeated_after_it_counts_once_AGG_07(url: str) -> None:
    """Its id keeps its day, so the repetition meets what the first attempt wrote."""
    before, after = (UUID(bytes=flush_id(MONDAY_MS + ms, bytes(10))) for ms in (-1, 0))
    assert flush_day(before.bytes) != flush_day(after.bytes)
    store = PostgresStore.open(url)
    first = store.update(frozenset(), NOBODY, NOW_S, lambda _: ONE, before)
    put(store, after)
    assert store.update(frozenset(), NOBODY, NOW_S + 1, unasked, before) is first
    doubts = [Doubt(flush.bytes, "home", 1, 1) for flush in (before, after, of_day(0))]
    assert [store.committed(doubt) for doubt in doubts] == [True, True, False]
    assert rows(store) == [(1, 1, 7, 2)]
    store.close()


def test_a_day_that_nobody_wrote_to_for_a_day_is_forgotten_and_no_other(
    store: PostgresStore,
) -> None:
    for day, age in enumerate(("3 days", "2 days", "25 h", "23 h", "0 s")):
        for number in range(3):
            put(store, of_day(day, number), NOW_S + day, age=age)
    for left in ({1, 2, 3, 4}, {2, 3, 4}, {3, 4}, {3, 4}):  # a turn, a day
        store.merge()
        assert kept(store) == dict.fromkeys(left, 3)
    assert rows(store) == [(1, 1, 7, 15)]


def test_after_a_long_stop_the_last_commit_is_still_known_AGG_16(store: PostgresStore) -> None:
    put(store, of_day(1), NOW_S + 5, age="1 year")
    put(store, of_day(1, 1), NOW_S + 6, age="1 year")
    put(store, of_day(2), NOW_S, age="1 year")
    for _ in range(DAYS):
        store.merge()
    assert kept(store) == {1: 1}
    assert store.last_commit_s() == NOW_S + 6


def test_a_clock_that_was_far_ahead_takes_no_day_out_of_the_ring_AGG_16(
    store: PostgresStore,
) -> None:
    """Neither a worker's, which its ids and times tell of, nor the server's, which `made` does."""
    put(store, of_day(10**6), NOW_S + 10**9, age="2 days")
    put(store, of_day(3), age="-10 years")
    put(store, of_day(4))
    for _ in range(DAYS):
        store.merge()
    assert kept(store) == {10**6 % DAYS: 1, 4: 1}
    assert store.last_commit_s() == NOW_S + 10**9


def test_whoever_reads_the_ids_or_writes_one_is_neither_waited_for_nor_harmed(
    url: str, store: PostgresStore
) -> None:
    put(store, of_day(1), NOW_S, age="2 days")
    put(store, of_day(2), NOW_S + 1)
    flush = of_day(1, 1)
    writes = "INSERT INTO flushes (day, id, at_s) VALUES (1, %s, 2)"
    for begun, given in (("SELECT FROM flushes_1", ()), (writes, (flush,))):
        with closing(connect(url, None)) as other:
            other.execute("BEGIN")
            other.execute(begun.encode(), given)
            store.merge()
            assert kept(store) == {1: 1, 2: 1}
            other.execute("ROLLBACK")
    store.merge()
    assert kept(store) == {2: 1}


def test_a_day_that_is_written_to_between_look_and_lock_is_kept(
    url: str, store: PostgresStore
) -> None:
    put(store, of_day(1), NOW_S, age="2 days")
    put(store, of_day(2), NOW_S + 1)
    with closing(connect(url, None)) as db, closing(connect(url, None)) as other:

        def write() -> None:
            other.execute(schema.PUT_FLUSH, (1, of_day(1, 1), NOW_S))

        with db.transaction():
            forget(Between(db, "LOCK TABLE", write))  # type: ignore[arg-type]
    assert kept(store) == {1: 2, 2: 1}


class Between:
    """A connection that does something else before a statement."""

    def __init__(self, db: psycopg.Connection[Any], before: str, do: Callable[[], None]) -> None:
        self._db, self._before, self._do = db, before, do

    def execute(self, query: str | bytes, values: tuple[Any, ...] = ()) -> psycopg.Cursor[Any]:
        text = query if isinstance(query, bytes) else query.encode()
        if text.startswith(self._before.encode()):
            self._do()
        return self._db.execute(text, values)


def test_while_one_worker_forgets_another_does_not(url: str, store: PostgresStore) -> None:
    """Each would hold a day and ask for the other's."""
    for day in (1, 2):
        put(store, of_day(day), NOW_S, age="2 days")
    put(store, of_day(3), NOW_S + 1)
    with closing(connect(url, None)) as other, closing(connect(url, None)) as third:
        other.execute("BEGIN")
        forget(other)
        store.merge()
        third.execute("SET lock_timeout = '50ms'")
        with pytest.raises(errors.LockNotAvailable):  # what is emptied here shows at the commit
            third.execute("SELECT FROM flushes")
        other.execute("COMMIT")
        assert kept(store) == {2: 1, 3: 1}
    store.merge()
    assert kept(store) == {3: 1}


def test_a_flush_is_looked_for_in_its_day_alone(url: str, store: PostgresStore) -> None:
    with closing(connect(url, None)) as db:
        query = f"EXPLAIN {schema.KNOWS_FLUSH}".encode()
        plan = "\n".join(line for (line,) in db.execute(query, (5, of_day(5), of_day(5))))
    assert "flushes_5" in plan
    assert not [day for day in range(DAYS) if day != 5 and f"flushes_{day}" in plan]
    assert kept(store) == {}


def test_ids_of_the_version_before_go_to_their_days_AGG_22(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as session:
        session.execute(OLD.read_bytes())
        old = [row[0] for row in session.execute("SELECT id FROM public.flushes").fetchall()]
    store = PostgresStore.open(url)
    with store.reading() as db:
        found = dict(db.execute("SELECT id, day FROM flushes").fetchall())
        assert db.execute("SELECT to_regclass('old_flushes')").fetchone() == (None,)
    assert found == {flush: flush_day(flush.bytes) for flush in old}
    assert len(found) == 3
    assert all(store.committed(Doubt(flush.bytes, "home", 1, 1)) for flush in old)
    assert store.last_commit_s() == NOW_S
    assert rows(store) == [(1, 1, 7, 3), (1, 2, 2, 1)]
    put(store, of_day(0))
    assert rows(store) == [(1, 1, 7, 4), (1, 2, 2, 1)]
    store.close()
