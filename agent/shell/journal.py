"""The agent's one file: ledger, plans, waiting reports and packed batches, in SQLite.

One synchronous commit per slot holds the claim and its reports, so that no crash randomises a slot
twice (DESIGN §3). Only codes are ever written here, never a reading or a value. 512-byte pages and
grouped deletions keep the bytes written to flash small.
"""

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.errors import StorageError
from agent.outbox import Batch, Key
from agent.pipeline import Claim, Report
from edge_ldp.ledger import Ledger, parse_ledger
from edge_ldp.messages import StreamStatus
from edge_ldp.strict_json import MessageError

SCHEMA = 1
_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE streams (stream INTEGER PRIMARY KEY, first INTEGER NOT NULL, next INTEGER NOT NULL,
  created INTEGER NOT NULL, expired INTEGER NOT NULL);
CREATE TABLE plans (name TEXT PRIMARY KEY, epoch INTEGER NOT NULL, payload BLOB NOT NULL)
  WITHOUT ROWID;
CREATE TABLE waiting (stream INTEGER, slot INTEGER, epoch INTEGER NOT NULL, code INTEGER NOT NULL,
  PRIMARY KEY (stream, slot)) WITHOUT ROWID;
CREATE TABLE batches (stream INTEGER, number INTEGER, last_slot INTEGER NOT NULL,
  reports INTEGER NOT NULL, payload BLOB NOT NULL, PRIMARY KEY (stream, number)) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """The plan in force of one stream name, in its exact bytes."""

    name: str
    epoch: int
    payload: bytes


class Journal:
    """One open state file, locked against a second agent; every method is one transaction.

    Raises StorageError(path, reason, remedy) when the file cannot be used or written.
    """

    def __init__(self, path: Path, *, create: bool = True) -> None:
        self.path = path
        self._lock = _lock(path) if create else None
        self.set_aside = _set_aside_if_damaged(path) if create else None
        self._db = _connect(path, create=create)
        with self._translated():
            self._prepare(create=create)

    def close(self) -> None:
        """Close the file and let go of the lock."""
        self._db.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def ledger(self) -> Ledger | None:
        """Return the stored ledger, or None when there is none or it is damaged."""
        with self._translated():
            row = self._db.execute("SELECT value FROM meta WHERE key = 'ledger'").fetchone()
        try:
            return parse_ledger(row[0]) if row else None
        except MessageError:
            return None

    def save_ledger(self, ledger: Ledger) -> None:
        """Store a ledger that was opened or adopted."""
        with self._transaction():
            self._put_ledger(ledger)

    def commit(self, claim: Claim | None, batches: Sequence[Batch], first_batch: int) -> None:
        """Store a claim and the batches packed with it, all or nothing, synchronously.

        Reports that no batch carries wait in their table; `first_batch` numbers the first batch of
        a stream that has none yet.
        """
        packed = {batch.key.stream: batch.last_slot for batch in batches}
        with self._transaction():
            if claim:
                self._put_ledger(claim.ledger)
                for report in claim.reports:
                    self._count(report, first_batch)
                    if report.slot > packed.get(report.stream, -1):
                        self._db.execute(
                            "INSERT INTO waiting VALUES (?, ?, ?, ?)",
                            (report.stream, report.slot, report.epoch, report.code),
                        )
            for batch in batches:
                self._put_batch(batch)

    def waiting(self) -> list[Report]:
        """Return the reports not yet packed, in order of stream and slot."""
        with self._translated():
            rows = self._db.execute(
                "SELECT stream, slot, epoch, code FROM waiting ORDER BY stream, slot"
            ).fetchall()
        return [Report(*row) for row in rows]

    def numbers(self) -> dict[int, int]:
        """Return the next batch number of each stream."""
        with self._translated():
            return dict(self._db.execute("SELECT stream, next FROM streams").fetchall())

    def keys(self) -> list[Key]:
        """Return the batches kept, oldest first."""
        with self._translated():
            rows = self._db.execute("SELECT stream, number FROM batches ORDER BY last_slot")
            return [Key(*row) for row in rows]

    def payload(self, key: Key) -> bytes | None:
        """Return a batch's bytes, or None when it was settled meanwhile."""
        with self._translated():
            row = self._db.execute(
                "SELECT payload FROM batches WHERE stream = ? AND number = ?", key
            ).fetchone()
        return bytes(row[0]) if row else None

    def settle(self, keys: Iterable[Key]) -> None:
        """Delete batches that a receipt covers."""
        with self._transaction():
            self._db.executemany("DELETE FROM batches WHERE stream = ? AND number = ?", keys)

    def expire(self, before_slot: int) -> list[Key]:
        """Give up batches whose slots are all too old, counted as expired; return their keys."""
        with self._transaction():
            rows = self._db.execute(
                "SELECT stream, number, reports FROM batches WHERE last_slot < ?", (before_slot,)
            ).fetchall()
            for stream, number, reports in rows:
                self._db.execute(
                    "DELETE FROM batches WHERE stream = ? AND number = ?", (stream, number)
                )
                self._db.execute(
                    "UPDATE streams SET expired = expired + ? WHERE stream = ?", (reports, stream)
                )
        return [Key(stream, number) for stream, number, _ in rows]

    def plans(self) -> list[StoredPlan]:
        """Return the plans in force."""
        with self._translated():
            rows = self._db.execute("SELECT name, epoch, payload FROM plans").fetchall()
        return [StoredPlan(name, epoch, bytes(payload)) for name, epoch, payload in rows]

    def save_plan(self, plan: StoredPlan) -> None:
        """Put a plan in force."""
        with self._transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO plans VALUES (?, ?, ?)",
                (plan.name, plan.epoch, plan.payload),
            )

    def status(self) -> list[StreamStatus]:
        """Return each stream's account: batches made and kept, reports created and expired."""
        with self._translated():
            rows = self._db.execute(
                "SELECT stream, first, next, coalesce((SELECT min(number) FROM batches"
                " WHERE batches.stream = streams.stream), next), created, expired"
                " FROM streams ORDER BY stream"
            ).fetchall()
        return [StreamStatus(*row) for row in rows]

    def _prepare(self, *, create: bool) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0 and create:
            self._db.executescript(f"BEGIN;{_TABLES}PRAGMA user_version = {SCHEMA};COMMIT;")
        elif version != SCHEMA:
            raise StorageError(
                str(self.path),
                f"its schema is {version}, this version reads {SCHEMA}",
                "use the version of edge-ldp that wrote it, or a new state file",
            )

    def _count(self, report: Report, first_batch: int) -> None:
        self._db.execute(
            "INSERT INTO streams VALUES (?1, ?2, ?2, 1, 0)"
            " ON CONFLICT (stream) DO UPDATE SET created = created + 1",
            (report.stream, first_batch),
        )

    def _put_batch(self, batch: Batch) -> None:
        stream, number = batch.key
        self._db.execute(
            "INSERT INTO batches VALUES (?, ?, ?, ?, ?)",
            (stream, number, batch.last_slot, batch.reports, batch.payload),
        )
        self._db.execute(
            "DELETE FROM waiting WHERE stream = ? AND slot <= ?", (stream, batch.last_slot)
        )
        self._db.execute("UPDATE streams SET next = ? WHERE stream = ?", (number + 1, stream))

    def _put_ledger(self, ledger: Ledger) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES ('ledger', ?)", (ledger.to_json(),))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._translated():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as exc:
            raise StorageError(str(self.path), str(exc), "check the disk and the rights") from exc


def _connect(path: Path, *, create: bool) -> sqlite3.Connection:
    mode = "rwc" if create else "ro"
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=5)
        db.isolation_level = None  # transactions are written out
        if create:
            db.execute("PRAGMA page_size = 512")
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA wal_autocheckpoint = 1024")
    except sqlite3.Error as exc:
        raise StorageError(str(path), str(exc), "check the directory and its rights") from exc
    return db


def _lock(path: Path) -> int:
    """Lock the state file's neighbour for this process; the lock ends with the process."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        raise StorageError(str(path), exc.strerror or "", "check the directory") from exc
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as exc:
        holder = os.read(handle, 32).decode(errors="replace").strip() or "unknown"
        os.close(handle)
        raise StorageError(
            str(path), f"process {holder} holds it", "stop that agent first, or use its own file"
        ) from exc
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    return handle


def _set_aside_if_damaged(path: Path) -> Path | None:
    """Rename a damaged file (never delete it) and return where it went, or None if it is sound."""
    if not path.exists():
        return None
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=5)
        try:
            sound = db.execute("PRAGMA quick_check").fetchone()[0] == "ok"
        finally:
            db.close()
    except sqlite3.OperationalError as exc:
        raise StorageError(str(path), str(exc), "check the rights and what holds it") from exc
    except sqlite3.DatabaseError:
        sound = False
    if sound:
        return None
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    path.rename(aside)
    for ending in ("-wal", "-shm"):
        extra = path.with_name(path.name + ending)
        if extra.exists():
            extra.rename(aside.with_name(aside.name + ending))
    return aside
