"""The store for a fleet on several machines: one PostgreSQL transaction for each flush.

Records are locked row by row in the order of their keys, so two workers never settle one device at
once; a record that another worker made meanwhile repeats the flush. A COMMIT whose answer is lost
is resolved by the flush's id, which the transaction itself keeps (AGG-06, AGG-07, AGG-10).
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import psycopg
from psycopg import errors

from aggregator.records import Known
from aggregator.row_forms import row_record
from aggregator.shell import postgres_schema as schema
from aggregator.shell.postgres_link import LOCK_WAIT, check
from aggregator.shell.postgres_reader import PostgresReader
from aggregator.shell.postgres_writes import RacedError, merge, write
from aggregator.shell.store import FencedError, StoreError, StoreHeldError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from aggregator.records import Changes, Key, Record
    from aggregator.shell.store import Decide, LookRow, PlanRow

AGAIN = 8  # repeats at once; after that the caller waits and repeats
_PASSES = (errors.SerializationFailure, errors.DeadlockDetected, RacedError)
_OTHER = "stop it first, or name another database"


class PostgresStore(PostgresReader):
    """One writer of a store. May be used from any thread, by one at a time.

    `alone`: no other writer is let in while it is open, nor is it let in beside another.
    """

    def __init__(self, url: str, password: str | None = None, *, alone: bool = True) -> None:
        super().__init__(url, password)
        self._alone = alone
        self._flushes = 0
        self._attempt: tuple[UUID, Changes] | None = None  # what was last decided, and its id

    @classmethod
    def open(cls, url: str, password: str | None = None, *, alone: bool = True) -> PostgresStore:
        """Return the store, its tables made or upgraded; raises StoreError when it cannot be."""
        store = cls(url, password, alone=alone)
        try:
            store._in_transaction(store._upgrade)
        except StoreError:
            store.close()
            raise
        return store

    def pin(self, facts: Mapping[str, str]) -> None:
        """Remember what the counts are about; raises StoreError when it differs later."""

        def work(db: psycopg.Connection[Any]) -> None:
            for name, value in facts.items():
                db.execute(
                    "INSERT INTO facts VALUES (%s, %s) ON CONFLICT DO NOTHING", (name, value)
                )
                row = db.execute("SELECT value FROM facts WHERE name = %s", (name,)).fetchone()
                if row is None or row[0] != value:
                    reason = f"was made for {name} = {row and row[0]}, not {value}"
                    raise StoreError(self.where, reason, "put it back, or name an empty database")

        self._in_transaction(work)

    def update(
        self,
        keys: AbstractSet[Key],
        devices: AbstractSet[str],
        at_s: int,
        decide: Decide,
        flush: UUID | None = None,
    ) -> Changes:
        """Load, decide and write in one durable transaction; see Store.

        `flush`: the same id at every repetition of one flush; when an attempt of it was committed
        although its answer was lost, what that attempt changed is returned and nothing written.
        """
        name = flush or uuid4()

        def work(db: psycopg.Connection[Any]) -> Changes:
            # waits here while an attempt of ours that we gave up is not yet ended by the server
            done = db.execute(
                "INSERT INTO flushes VALUES (%s, %s) ON CONFLICT DO NOTHING", (name, at_s)
            )
            if done.rowcount == 0:
                return self._committed(name)
            known = _known(db, keys, devices)
            changes = decide(known)
            write(db, known, changes, at_s)
            self._attempt = (name, changes)
            return changes

        changes: Changes = self._in_transaction(work)
        self._flushes += 1
        if self._flushes % schema.MERGE_EVERY == 0:
            self.merge()
        return changes

    def merge(self) -> None:
        """Fold what flushes appended into the rows it belongs to, unless another writer does."""
        with suppress(StoreHeldError):  # it is committed as it is; the next one folds it
            self._in_transaction(merge)

    def states(self, device: str) -> list[tuple[int, Record]]:
        """Return (stream, record) of one device."""
        query = f"SELECT stream, {schema.RECORD} FROM records WHERE device = %s ORDER BY 1"  # noqa: S608 (our own columns)
        rows = self._rows(query, (device,))
        with self.reading():
            return [(stream, row_record(row)) for stream, *row in rows]

    def add_plan(self, row: PlanRow, look: LookRow | None = None) -> None:
        """Keep an issued plan, and the look that led to it, durably.

        Raises FencedError for an epoch that is not above every stored one: whoever asks does not
        lead any more (AGG-08). The same plan once more is the repetition of a lost answer.
        """

        def work(db: psycopg.Connection[Any]) -> None:
            db.execute("LOCK TABLE plans IN SHARE ROW EXCLUSIVE MODE")
            query = "SELECT epoch, issued_s, payload FROM plans WHERE stream = %s ORDER BY 1 DESC"
            newest = db.execute(f"{query} LIMIT 1".encode(), (row.stream,)).fetchone()
            if newest == (row.epoch, row.issued_s, row.payload):
                return
            if newest is not None and row.epoch <= newest[0]:
                raise FencedError(self.where, row.stream, row.epoch, newest[0])
            values = (row.stream, row.epoch, row.issued_s, row.payload)
            db.execute("INSERT INTO plans VALUES (%s, %s, %s, %s)", values)
            if look is not None:
                db.execute(schema.PUT_LOOK, (look.stream, look.at_s, look.payload))

        self._in_transaction(work)

    def add_look(self, row: LookRow) -> None:
        """Keep a look after which the plan stayed durably."""
        values = (row.stream, row.at_s, row.payload)
        self._in_transaction(lambda db: db.execute(schema.PUT_LOOK, values))

    def _in_transaction(self, work: Callable[[psycopg.Connection[Any]], Any]) -> Any:
        """Return `work(db)` once committed; repeats it whole when it met another writer."""
        for _ in range(AGAIN):
            with suppress(*_PASSES), self._transaction() as db:
                return work(db)
        raise StoreHeldError(self.where, "is busy with other writers", "waiting")

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection[Any]]:
        with self._raising() as db:
            db.execute("BEGIN")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                try:
                    db.execute("ROLLBACK")
                except psycopg.Error:
                    db.close()  # nothing of it is trusted; the server ends what it left open
                raise

    @contextmanager
    def _raising(self) -> Iterator[psycopg.Connection[Any]]:
        """Give the connection as `reading` does, but let pass what is repeated at once."""
        passing: Exception | None = None
        with self.reading() as db:
            try:
                yield db
            except _PASSES as exc:
                passing = exc
        if passing is not None:
            raise passing

    def _connect(self) -> psycopg.Connection[Any]:
        db = super()._connect()
        try:
            self._claim(db)
        except BaseException:
            db.close()
            raise
        return db

    def _claim(self, db: psycopg.Connection[Any]) -> None:
        """Be the only writer, or one of several, as long as this connection lasts."""
        if db.execute("SHOW synchronous_commit").fetchone() in (("off",), ("local",)):
            db.execute("SET synchronous_commit = on")  # an answer to COMMIT means: durable
        query = schema.CLAIM_ALONE if self._alone else schema.CLAIM_SHARED
        try:
            db.execute("SET lock_timeout = '1s'")  # one that was just killed is gone by then
            db.execute(query, (schema.LOCKS, schema.WRITING))
            db.execute(LOCK_WAIT)
        except errors.LockNotAvailable as exc:
            raise StoreHeldError(self.where, "is in use by another aggregator", _OTHER) from exc

    def _committed(self, name: UUID) -> Changes:
        """Return what the attempt that the server committed had decided."""
        if self._attempt is None or self._attempt[0] != name:
            raise StoreError(self.where, f"knows a flush {name} of another writer", "report it")
        return self._attempt[1]

    def _upgrade(self, db: psycopg.Connection[Any]) -> None:
        """Take the steps from the version found (0: an empty database) to ours."""
        db.execute("SELECT pg_advisory_xact_lock(%s, %s)", (schema.LOCKS, schema.MIGRATING))
        version = check(db, self.where)
        if version == schema.VERSION:
            return
        if not version:
            db.execute("CREATE TABLE edge_ldp_schema (version integer NOT NULL)")
            db.execute("INSERT INTO edge_ldp_schema VALUES (0)")
        for step in range(version + 1, schema.VERSION + 1):
            for statement in schema.STEPS[step]:
                db.execute(statement.encode())
        db.execute("UPDATE edge_ldp_schema SET version = %s", (schema.VERSION,))


def _known(db: psycopg.Connection[Any], keys: AbstractSet[Key], devices: AbstractSet[str]) -> Known:
    """Lock the records of `keys` and return what is known; later statements see the newest."""
    found: dict[Key, Record] = {}
    watched: dict[tuple[str, int, str], bytes] = {}
    named = sorted(devices)

    def enrolled() -> frozenset[str]:
        return frozenset(name for (name,) in db.execute(schema.GET_DEVICES, (named,)))

    rows = enrolled()
    # who enrols does so alone, so that the limit on devices is exact with several workers
    news = len(rows) < len(named)
    query = schema.LOCK_ENROLLED if news else schema.GET_ENROLLED
    (count,) = db.execute(query).fetchone() or (0,)
    if news:
        rows = enrolled()
    pairs = schema.columns(sorted(keys), 2)
    if keys:
        for device, stream, *row in db.execute(schema.LOCK_RECORDS, pairs, binary=True):
            found[device, stream] = row_record(row)
        for *key, kept in db.execute(schema.GET_WATCHED, pairs, binary=True):
            watched[key[0], key[1], key[2]] = kept
    return Known(found, rows, count, watched)
