"""The embedded store: one SQLite file, WAL, one synchronous=FULL transaction for each flush."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import UUID

from aggregator.counting.records import Changes, Key
from aggregator.errors import StoreError
from aggregator.store.contract import Decide, PlanRow, RevisionRow, Store
from aggregator.store.forms import repack_pairs
from aggregator.store.period_sums import Rows
from aggregator.store.shared_reads import PUT_REVISION
from aggregator.store.sqlite import curated_schema, schema
from aggregator.store.sqlite.flush import asking, insert_plan, known, write
from aggregator.store.sqlite.reader import (
    BUSY_S,
    SqliteReader,
    check,
    connect,
    lock_of,
    refuse_moved,
)
from edge_ldp.service.files import make_closed

LOOKS, LOOK_S = 5, 0.02  # a reader holds the lock for less than that


class SqliteStore(SqliteReader, Store):
    """The one writer of a store; a second one is refused with the first one's process id.

    May be used from any thread, by one at a time.
    """

    OTHER = "a new store"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._locks: list[int] = []
        self._device_count = 0
        self._counted_version: int | None = None

    def prepare(self) -> None:
        """Make the store if there is none, or upgrade it.

        Whatever the umask, only its owner and group may read it.
        """
        self.hold()
        with suppress(OSError):  # SQLite says better why it cannot be made
            make_closed(self.path)
            self._hold_file()
        with self._transaction() as db:
            if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                db.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
            _upgrade(db, check(db, self.path))
            curated_schema.create_curated(db)
            refuse_moved(db, self.path)  # here it would count twice
        with self.reading() as db:
            verdict = db.execute("PRAGMA quick_check(1)").fetchone()[0]
            if verdict != "ok":
                raise sqlite3.DatabaseError(verdict)

    def commit(self, work: Callable[[Rows], object]) -> None:
        """Do what `work` says in one transaction; see Store."""
        with self._transaction() as db:
            work(asking(db))

    def update(
        self,
        keys: AbstractSet[Key],
        devices: AbstractSet[str],
        at_s: int,
        decide: Decide,
        flush: UUID | None = None,  # noqa: ARG002 (a COMMIT here has no unknown outcome)
    ) -> Changes:
        """Load, decide and write in one durable transaction; see Store."""
        with self._transaction() as db:
            changes = decide(known(db, keys, devices, self._enrolled(db), at_s))
            write(db, changes, at_s)
        self._device_count += len(changes.enrolled)
        return changes

    def add_plan(self, row: PlanRow, revision: RevisionRow | None = None) -> None:
        """Keep an issued plan, and the revision that led to it, durably.

        Raises FencedError for an epoch that is not above every stored one: an operator issued it.
        """
        with self._transaction() as db:
            insert_plan(asking(db), self.where, row)
            if revision is not None:
                db.execute(PUT_REVISION, (revision.stream, revision.at_s, revision.payload))

    def close(self) -> None:
        """Let go of the file and of the lock."""
        super().close()
        while self._locks:
            os.close(self._locks.pop())

    def _enrolled(self, db: sqlite3.Connection) -> int:
        """Return how many devices have a row; counted again when another process wrote."""
        (version,) = db.execute("PRAGMA data_version").fetchone()
        if version != self._counted_version:
            self._counted_version = version
            (self._device_count,) = db.execute("SELECT count(*) FROM devices").fetchone()
        return self._device_count

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self.reading() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:  # rolled back by closing: nothing of the connection is trusted
                self._db = None
                with suppress(sqlite3.Error):
                    db.close()
                raise

    def _connect(self) -> sqlite3.Connection:
        self._counted_version = None  # versions of data are told apart within one connection
        setup = "journal_mode = WAL", "synchronous = FULL"
        return connect(self.path, "rwc", BUSY_S, *setup, any_thread=True)

    def hold(self) -> None:
        """Be the only writer until closed; raises StoreError while another process is it."""
        try:
            make_closed(lock_of(self.path))
            lock = os.open(lock_of(self.path), os.O_RDWR | os.O_CLOEXEC)
        except OSError as exc:
            remedy = "its directory must exist and be writable for the service's user"
            raise StoreError(self.where, exc.strerror or str(exc), remedy) from exc
        self._locks.append(lock)
        try:
            _lock(lock)
        except OSError as exc:
            holder = os.read(lock, 32).decode(errors="replace").strip()
            remedy = "stop it first, or name another store"
            reason = f"is in use by {f'process {holder}' if holder else 'another process'}"
            raise StoreError(self.where, reason, remedy) from exc
        os.ftruncate(lock, 0)
        with suppress(OSError):  # a full disk takes no word of it; the lock holds
            os.write(lock, f"{os.getpid()}\n".encode())

    def _hold_file(self) -> None:
        """Hold the file itself, too, whatever its name; raises StoreError, OSError.

        A hard link is the same file with another lock beside it. SQLite's own locks are of another
        kind; as they end when any handle of the file is closed here, this one is closed last.
        """
        handle = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        self._locks.append(handle)
        try:
            _lock(handle)
        except BlockingIOError as exc:
            reason = "is in use under another name: it is a link to a store that a process holds"
            raise StoreError(
                str(self.path), reason, "stop the other, or name another store"
            ) from exc


def _lock(handle: int) -> None:
    """Take a file's lock, waiting out who only looks whether it is taken; raises OSError."""
    for _ in range(LOOKS):
        with suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(LOOK_S)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _upgrade(db: sqlite3.Connection, version: int) -> None:
    """Take the steps from a version (0: an empty file) to ours, all in the caller's transaction."""
    db.create_function("repack_pairs", 1, repack_pairs)
    for step in range(version + 1, schema.VERSION + 1):
        for statement in schema.STEPS[step]:
            db.execute(statement)
    db.execute(f"PRAGMA user_version = {schema.VERSION}")
