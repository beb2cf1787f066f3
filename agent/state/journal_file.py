"""The agent's state as a file: opened whole or set aside, sealed, one transaction at a time."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from agent.errors import StateGoneError, StorageError
from agent.state.journal_schema import SCHEMA, TABLES, is_usable, migrate, seal
from agent.state.journal_schema import create as make_tables
from agent.state.state_file import (
    Hold,
    is_environment,
    looks_damaged,
    noted_commits,
    passes_by_itself,
    reading_options,
    set_aside,
)


class JournalFile:
    """One open state file, locked against a second agent unless it is only read (not `create`).

    `connection`: the class of the open file's connection, `sqlite3.connect`'s factory. Raises
    StorageError(path, reason, remedy) when the file cannot be used or written.
    """

    def __init__(
        self,
        path: Path,
        *,
        create: bool = True,
        connection: type[sqlite3.Connection] = sqlite3.Connection,
    ) -> None:
        self.path = path
        self.set_aside: Path | None = None
        self._hold = Hold(path) if create else None
        try:
            if self._hold:
                self._set_aside_if_damaged(self._hold)
            else:
                self._refuse_if_gone()
            self._db = _connect(path, create=create, factory=connection)
            self._prepare(create=create)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file and let go of the lock."""
        if hasattr(self, "_db"):
            self._db.close()
        if self._hold:
            self._hold.release()

    def _set_aside_if_damaged(self, hold: Hold) -> None:
        """Set a file that is not sound aside, with every byte it had."""
        if looks_damaged(self.path, hold.commits) or not self._is_sound(hold.commits):
            self.set_aside = set_aside(self.path)
            hold.note(0)

    def _refuse_if_gone(self) -> None:
        """Raise StateGoneError for a reader of what an agent would set aside, or has not yet made.

        Looked at twice: an agent may have begun to write after the first look.
        """
        commits = noted_commits(self.path)  # first: a commit is noted after it is in the file
        try:
            is_empty = not self.path.exists() or not self.path.stat().st_size
        except OSError as exc:
            raise _storage_error(self.path, exc) from exc
        if is_empty and not looks_damaged(self.path, commits):
            reason = (
                "there is no state, so nothing is known of what was spent: no agent ran with it "
                "yet, or it was deleted; the agent begins with a silence"
            )
            raise StateGoneError(str(self.path), "absent", reason)
        if any(not looks_damaged(self.path, commits) and self._is_sound(commits) for _ in range(2)):
            return
        state = "damaged" if self.path.exists() else "lost"
        reason = f"the state is {state}: nothing is known of what was spent until now"
        remedy = "the agent keeps what is left, and begins anew with a silence of one window"
        raise StateGoneError(str(self.path), state, reason, remedy)

    def _is_sound(self, commits: int) -> bool:
        """Say whether a file is there and ours, or not there at all; opens it for reading only."""
        if not self.path.exists():
            return True
        try:
            with closing(_connect(self.path, create=False)) as db:
                db.execute("BEGIN")  # all of it as of one commit
                return is_usable(db, commits)
        except (sqlite3.Error, UnicodeDecodeError) as exc:  # SQLite quotes what it cannot read
            if is_environment(exc):
                raise _storage_error(self.path, exc) from exc
            return False

    def _prepare(self, *, create: bool) -> None:
        with self.reading():
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version == 0 and create:
                make_tables(self._db)
            elif version in TABLES and version < SCHEMA and create:
                migrate(self._db, version)
            elif version not in TABLES:
                raise StorageError(
                    str(self.path),
                    f"its schema is {version}, this version reads {SCHEMA}",
                    "use the version of edge-ldp that wrote it, or a new state file",
                )

    @property
    def is_read_only(self) -> bool:
        """Whether this is a mere reader: another process may have the file open and write."""
        return self._hold is None

    @contextmanager
    def transaction(self, *, sealed: bool = True) -> Iterator[sqlite3.Connection]:
        """Commit what is done inside, all or nothing; sealed: and note how far the file now is."""
        with self.reading() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                if sealed:
                    self._db.execute(
                        "UPDATE ledger SET commits = commits + 1, seal = ?", (seal(self._db),)
                    )
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            if sealed and self._hold:
                row = self._db.execute("SELECT commits FROM ledger").fetchone()
                self._hold.note(row[0] if row else 0)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give the database; what SQLite raises becomes a StorageError."""
        try:
            yield self._db
        except sqlite3.Error as exc:
            raise _storage_error(self.path, exc) from exc

    def rows(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        """Return the rows of a query; raises as `reading`."""
        with self.reading() as db:
            return db.execute(query, values).fetchall()


def _connect(
    path: Path, *, create: bool, factory: type[sqlite3.Connection] = sqlite3.Connection
) -> sqlite3.Connection:
    with ExitStack() as stack:
        try:
            if create:  # only its owner may read what waits here
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            options = "mode=rwc" if create else reading_options(path)
            place = f"{path.absolute().as_uri()}?{options}"
            db = sqlite3.connect(place, uri=True, timeout=5, factory=factory)
            stack.callback(db.close)
            db.isolation_level = None  # transactions are written out
            if create:
                db.execute("PRAGMA page_size = 512")
                db.execute("PRAGMA synchronous = EXTRA")  # the making's own log is gone for good
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = FULL")
                db.execute("PRAGMA wal_autocheckpoint = 1024")
        except (sqlite3.Error, OSError) as exc:
            raise _storage_error(path, exc) from exc
        stack.pop_all()
    return db


def _storage_error(path: Path, exc: Exception) -> StorageError:
    passes = passes_by_itself(exc)
    return StorageError(str(path), str(exc), "check the disk and the rights", passes=passes)
