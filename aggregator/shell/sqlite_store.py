"""The embedded store: one SQLite file, WAL, one synchronous=FULL transaction for each flush."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from aggregator.records import Known
from aggregator.row_forms import pack_pairs, record_row, row_record, unpack_pairs
from aggregator.shell import released_schema
from aggregator.shell import sqlite_schema as schema
from aggregator.shell.sqlite_reader import BUSY_S, SqliteReader, check
from aggregator.shell.store import StoreError
from aggregator.tally import add_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet
    from pathlib import Path
    from uuid import UUID

    from aggregator.records import Changes, Key, Record
    from aggregator.shell.store import Decide, LookRow, PlanRow

_GET_RECORD = f"SELECT {schema.RECORD} FROM records WHERE device = ? AND stream = ?"  # noqa: S608 (our own columns)

_GET_WATCHED = "SELECT law, kept FROM watched WHERE device = ? AND stream = ?"


class SqliteStore(SqliteReader):
    """The one writer of a store; a second one is refused with the first one's process id.

    May be used from any thread, by one at a time.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._lock: int | None = None
        self._device_count = 0

    @classmethod
    def open(cls, path: Path) -> SqliteStore:
        """Return the store, made if there is none; raises StoreError when it cannot be used."""
        store = cls(path)
        try:
            store._take_lock()
            with store._transaction() as db:
                if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    db.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
                _upgrade(db, check(db, path))
                released_schema.create(db)
            with store.reading() as db:
                verdict = db.execute("PRAGMA quick_check(1)").fetchone()[0]
                if verdict != "ok":
                    raise sqlite3.DatabaseError(verdict)
                store._device_count = db.execute("SELECT count(*) FROM devices").fetchone()[0]
        except StoreError:
            store.close()
            raise
        return store

    def pin(self, facts: Mapping[str, str]) -> None:
        """Remember what the counts are about; raises StoreError when it differs later."""
        with self._transaction() as db:
            for name, value in facts.items():
                db.execute("INSERT OR IGNORE INTO facts VALUES (?, ?)", (name, value))
                (kept,) = db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
                if kept != value:
                    reason = f"was made for {name} = {kept}, not {value}"
                    raise StoreError(str(self.path), reason, "put it back, or name a new store")

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
            changes = decide(self._known(db, keys, devices))
            _write(db, changes, at_s)
        self._device_count += len(changes.enrolled)
        return changes

    def states(self, device: str) -> list[tuple[int, Record]]:
        """Return (stream, record) of one device."""
        query = f"SELECT stream, {schema.RECORD} FROM records WHERE device = ? ORDER BY 1"  # noqa: S608 (our own columns)
        with self.reading() as db:
            return [(stream, row_record(row)) for stream, *row in db.execute(query, (device,))]

    def add_plan(self, row: PlanRow, look: LookRow | None = None) -> None:
        """Keep an issued plan, and the look that led to it, durably."""
        with self._transaction() as db:
            values = (row.stream, row.epoch, row.issued_s, row.payload)
            db.execute("INSERT INTO plans VALUES (?, ?, ?, ?)", values)
            if look is not None:
                db.execute(schema.PUT_LOOK, (look.stream, look.at_s, look.payload))

    def add_look(self, row: LookRow) -> None:
        """Keep a look after which the plan stayed durably."""
        with self._transaction() as db:
            db.execute(schema.PUT_LOOK, (row.stream, row.at_s, row.payload))

    def close(self) -> None:
        """Let go of the file and of the lock."""
        super().close()
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def _known(
        self, db: sqlite3.Connection, keys: AbstractSet[Key], devices: AbstractSet[str]
    ) -> Known:
        records, watched = {}, {}
        for key in keys:
            row = db.execute(_GET_RECORD, key).fetchone()
            if row is not None:
                records[key] = row_record(row)
                watched.update({(*key, law): kept for law, kept in db.execute(_GET_WATCHED, key)})
        query = "SELECT 1 FROM devices WHERE device = ?"
        found = frozenset(name for name in devices if db.execute(query, (name,)).fetchone())
        return Known(records, found, self._device_count, watched)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self.reading() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                self._abandon(db)
                raise

    def _abandon(self, db: sqlite3.Connection) -> None:
        """Roll back by closing: after a failed commit nothing of the connection is trusted."""
        self._db = None
        with suppress(sqlite3.Error):
            db.close()

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(
            self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        return db

    def _take_lock(self) -> None:
        name = self.path.with_name(self.path.name + ".lock")
        try:
            lock = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        except OSError as exc:
            remedy = "its directory must exist and be writable for the service's user"
            raise StoreError(str(self.path), exc.strerror or str(exc), remedy) from exc
        self._lock = lock
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            holder = os.read(lock, 32).decode(errors="replace").strip()
            remedy = "stop it first, or name another store"
            reason = f"is in use by process {holder}"
            raise StoreError(str(self.path), reason, remedy) from exc
        os.ftruncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())


def _upgrade(db: sqlite3.Connection, version: int) -> None:
    """Take the steps from a version (0: an empty file) to ours, all in the caller's transaction."""
    for step in range(version + 1, schema.VERSION + 1):
        for statement in schema.STEPS[step]:
            db.execute(statement)
    db.execute(f"PRAGMA user_version = {schema.VERSION}")


def _write(db: sqlite3.Connection, changes: Changes, at_s: int) -> None:
    db.executemany(schema.ADD_DEVICE, [(device, at_s) for device in sorted(changes.enrolled)])
    db.executemany(
        schema.PUT_STATUS,
        [(device, s.state, s.software, at_s) for device, s in changes.statuses.items()],
    )
    db.executemany(schema.PUT_RECORD, [record_row(*pair) for pair in changes.records.items()])
    for stream, epoch, bucket, codes, counts in changes.tally.buckets():
        key = (stream, epoch, bucket)
        row = db.execute(schema.GET_PAIRS, key).fetchone()
        pairs = add_pairs(unpack_pairs(row[0]), (codes, counts)) if row else (codes, counts)
        db.execute(schema.PUT_PAIRS, (*key, pack_pairs(*pairs)))
    db.executemany(
        schema.ADD_PRESENCE, [(*key, slots) for key, slots in sorted(changes.presence.items())]
    )
    db.executemany(schema.ADD_REFUSED, [(*key, *n) for key, n in sorted(changes.refused.items())])
    released_schema.write(db, changes.released)
    db.executemany(schema.PUT_WATCHED, [(*key, kept) for key, kept in changes.watched.items()])
    db.executemany(
        schema.PUT_MARK,
        [
            (*key, at_s, at_s, m.name, m.seen, m.reports, m.bound, m.chance)
            for key, m in changes.marked.items()
        ],
    )
    db.execute("INSERT OR REPLACE INTO facts VALUES ('committed_s', ?)", (str(at_s),))
