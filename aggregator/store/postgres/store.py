"""The store for a fleet on several machines: one PostgreSQL transaction for each flush.

Records are locked row by row in the order of their keys, so two workers never settle one device at
once; a record that another worker made meanwhile repeats the flush. A COMMIT whose answer is lost
is resolved by the flush's id, which the transaction itself keeps (AGG-06, AGG-07, AGG-10).
"""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
from psycopg import errors

from aggregator.counting.records import Changes, Doubt, Key
from aggregator.errors import StoreError, StoreHeldError
from aggregator.store.contract import Decide, PlanRow, RevisionRow, Store, new_flush
from aggregator.store.flush_ids import flush_day
from aggregator.store.period_sums import Rows
from aggregator.store.postgres import statements as schema
from aggregator.store.postgres.flush import (
    add_plan,
    fold_deltas,
    forget,
    lock_records,
    rows_told,
    write,
)
from aggregator.store.postgres.locks import claim
from aggregator.store.postgres.reader import PostgresReader
from aggregator.store.postgres.schema import VERSION
from aggregator.store.postgres.upgrade import upgrade

AGAIN = 8  # repeats at once; after that the caller waits and repeats
KEPT = 8  # decisions: more than flushes whose answer can be awaited at once
_PASSES = (errors.SerializationFailure, errors.DeadlockDetected)


class _MetError(Exception):
    """The transaction met another writer's: the same once more."""


class PostgresStore(PostgresReader, Store):
    """One writer of a store. May be used from any thread, by one at a time.

    `alone`: no other writer is let in while it is open, nor is it let in beside another. `worker`:
    the name of one of several, which no other one has. `archived`: what it counts is spooled.
    """

    OTHER = "an empty database"

    def __init__(
        self,
        url: str,
        password: str | None = None,
        *,
        alone: bool = True,
        worker: str = "",
        archived: bool = False,
    ) -> None:
        super().__init__(url, password)
        self._alone = alone
        self._worker = worker
        self._archived = archived
        self._flushes = 0
        # what the newest flushes had decided, for one whose commit is found to have happened
        self._decided: dict[UUID, Changes] = {}

    @classmethod
    def open(
        cls,
        url: str,
        password: str | None = None,
        *,
        alone: bool = True,
        worker: str = "",
        archived: bool = False,
    ) -> "PostgresStore":
        """Return the store, its tables made or upgraded; raises StoreError when it cannot be."""
        return cls(url, password, alone=alone, worker=worker, archived=archived).opened()

    def prepare(self) -> None:
        """Make the tables, or upgrade those of an older version."""
        self.in_transaction(partial(upgrade, where=self.where))

    def commit(self, work: Callable[[Rows], object]) -> None:
        """Do what `work` says in one transaction; see Store."""
        self.in_transaction(lambda db: work(partial(rows_told, db)))

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
        name = flush or new_flush()
        place = flush_day(name.bytes), name

        def work(db: psycopg.Connection[Any]) -> Changes:
            # waits here while an attempt of ours that we gave up is not yet ended by the server
            claimed = db.execute(schema.BEGIN_FLUSH, (*place, at_s, schema.LOCKS, schema.MEMBERS))
            version = db.execute(schema.GET_VERSION)
            known = lock_records(db, keys, devices, at_s)
            if version.fetchone() != (VERSION,):
                reason = "was upgraded by a newer version while this one ran"
                raise StoreError(self.where, reason, "upgrade edge-ldp here, too")
            if claimed.fetchone() is None:
                return self._committed(name)
            changes = decide(known)
            write(db, known, changes, at_s)
            if self._archived and (changes.counted or changes.summed):
                db.execute(schema.PUT_SPOOLED, (self._worker, name))
            self._remember(name, changes)
            return changes

        changes: Changes = self.in_transaction(work, together=True)
        self._flushes += 1
        if self._flushes % schema.MERGE_EVERY == 0:
            self.merge()
        return changes

    def committed(self, doubt: Doubt) -> bool:
        """Say whether a flush of ours was committed, once the server has ended its attempt."""
        place = flush_day(doubt.flush), UUID(bytes=doubt.flush)

        def work(db: psycopg.Connection[Any]) -> bool:
            is_new = (
                db.execute(schema.PUT_FLUSH, (*place, 0)).rowcount == 1
            )  # waits for the attempt
            if is_new:
                db.execute(schema.DROP_FLUSH, place)
            return not is_new

        return bool(self.in_transaction(work)) or super().committed(doubt)

    def merge(self) -> None:
        """Fold what flushes appended into the rows it belongs to, and forget old flush ids.

        Unless another writer does, or, for the ids, somebody reads what would be emptied.
        """
        for work in (fold_deltas, forget):
            with suppress(StoreHeldError):  # nothing depends on it; the next turn does it
                self.in_transaction(work)

    def add_plan(self, row: PlanRow, revision: RevisionRow | None = None) -> None:
        """Keep an issued plan, and the revision that led to it, durably.

        Raises FencedError for an epoch that is not above every stored one: whoever asks does not
        lead any more (AGG-08). The same plan once more is the repetition of a lost answer.
        """
        self.in_transaction(partial(add_plan, where=self.where, row=row, revision=revision))

    def in_transaction(
        self, work: Callable[[psycopg.Connection[Any]], Any], *, together: bool = False
    ) -> Any:
        """Return `work(db)` once committed; repeats it whole when it met another writer.

        `together`: statements are sent without waiting for the answer of the one before, which
        is there once rows are fetched (`rowcount` is not); an error shows at the next fetch, or
        at the latest in the place of the commit, which then is none.
        """
        for _ in range(AGAIN):
            with suppress(_MetError), self._transaction(together=together) as db:
                return work(db)
        raise StoreHeldError(self.where, "is busy with other writers", "waiting")

    @contextmanager
    def _transaction(self, *, together: bool) -> Iterator[psycopg.Connection[Any]]:
        with self._meeting() as db:
            try:
                with db.pipeline() if together else nullcontext():
                    db.execute("BEGIN")
                    yield db
                    db.execute("COMMIT")
            except BaseException:
                try:
                    db.execute("ROLLBACK")
                    if together:  # the driver's notion of what is prepared is off after such one
                        self.close()
                except psycopg.Error:
                    db.close()  # nothing of it is trusted; the server ends what it left open
                raise

    @contextmanager
    def _meeting(self) -> Iterator[psycopg.Connection[Any]]:
        """Give the connection as `reading` does; what is repeated at once becomes a _MetError."""
        met: Exception | None = None
        with self.reading() as db:
            try:
                yield db
            except _PASSES as exc:
                met = exc
            except errors.UniqueViolation as exc:
                if exc.diag.table_name not in ("records", "period_sums"):
                    raise
                met = exc
        if met is not None:
            raise _MetError from met

    def _connect(self) -> psycopg.Connection[Any]:
        db = super()._connect()
        try:
            claim(db, self.where, alone=self._alone, worker=self._worker)
        except BaseException:
            db.close()
            raise
        return db

    def _remember(self, name: UUID, changes: Changes) -> None:
        """Keep what an attempt decided, in place of an earlier one of the same flush."""
        self._decided.pop(name, None)
        self._decided[name] = changes
        while len(self._decided) > KEPT:
            del self._decided[next(iter(self._decided))]

    def _committed(self, name: UUID) -> Changes:
        """Return what the attempt that the server committed had decided."""
        changes = self._decided.get(name)
        if changes is None:
            raise StoreError(self.where, f"knows a flush {name} of another writer", "report it")
        return changes
