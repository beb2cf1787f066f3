"""Reading an aggregator's SQLite store, also while `edge-ldp aggregator run` writes to it."""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from aggregator.counting.record_rows import row_record
from aggregator.counting.records import Doubt, Key, Record
from aggregator.counting.seen_batches import is_settled
from aggregator.counting.tally import CountRows
from aggregator.errors import OldStoreError, StoreError, StoreHeldError
from aggregator.store.contract import LAST_BUCKET
from aggregator.store.reader import Reader
from aggregator.store.rows import MOVED, THERE, ReleasedChunk, ReportSum
from aggregator.store.shared_reads import WHOSE, added_up
from aggregator.store.sqlite import curated_schema, schema
from edge_ldp.errors import RowError
from edge_ldp.protocol.released import FIRST_KEY

BUSY_S = 0.2  # a lock held longer is the caller's to wait for
_HELD = {
    sqlite3.SQLITE_BUSY: "is locked by another process",
    sqlite3.SQLITE_LOCKED: "is locked",
    sqlite3.SQLITE_FULL: "has no space left on its disk",
    sqlite3.SQLITE_IOERR_SHMSIZE: "has no space left on its disk",
    sqlite3.SQLITE_IOERR: "met an input/output error",
    sqlite3.SQLITE_READONLY: "is read-only",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened",
}
# as counting.records.Record has them
_SETTLED = "(counted + rejected - before)"
_PENDING = f"max(0, created - {_SETTLED} - expired)"
_GIVEN_UP = f"min(expired, max(0, created - {_SETTLED}))"
# a stream's buckets are found epoch by epoch: its key has the epoch first, and without this a day
# is found by reading the year
_EACH_EPOCH = """stream = ?1 AND epoch IN (WITH RECURSIVE used(epoch) AS (
    SELECT min(epoch) FROM counts WHERE stream = ?1
    UNION ALL SELECT (SELECT min(epoch) FROM counts WHERE stream = ?1 AND epoch > used.epoch)
    FROM used WHERE used.epoch IS NOT NULL) SELECT epoch FROM used)"""
_DAMAGED = "set the file aside (never delete it) and restore a backup, or start with a new one"


# what would run, or answer, in the place of our own statements and tables (AGG-20)
_FOREIGN = """SELECT CASE WHEN type = 'table' THEN 'virtual table' ELSE type END, name
    FROM sqlite_schema WHERE type NOT IN ('table', 'index') OR sql LIKE 'CREATE VIRTUAL%'"""


def lock_of(path: Path) -> Path:
    """Return the file that the one writer of a store holds locked."""
    return path.with_name(f"{path.name}.lock")


def translate(exc: Exception, path: Path) -> StoreError:
    """Return the store's error for one of SQLite's."""
    code = getattr(exc, "sqlite_errorcode", None)
    held = None if code is None else _HELD.get(code, _HELD.get(code & 0xFF))
    if held:
        return StoreHeldError(str(path), held, "nothing is acknowledged until it works")
    reason = " ".join(str(exc).split())  # one line, whatever SQLite says
    return StoreError(str(path), f"is damaged or not ours ({reason})", _DAMAGED)


def check(db: sqlite3.Connection, path: Path) -> int:
    """Return the version; refuse a file that is damaged, another program's, or newer than we.

    One with triggers or views is not ours either: they would do more than our statements say.
    """
    if db.execute("PRAGMA application_id").fetchone()[0] != schema.APPLICATION_ID:
        raise StoreError(str(path), "is not an aggregator's store", "name another file")
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > schema.VERSION:
        raise StoreError(
            str(path),
            f"was written by a newer version (schema {version}, this one reads {schema.VERSION})",
            "upgrade edge-ldp",
        )
    if foreign := db.execute(_FOREIGN).fetchone():
        kind, name = foreign
        raise StoreError(str(path), f"holds a {kind} ({name!r}), and no store has one", _DAMAGED)
    return int(version)


def refuse_moved(db: sqlite3.Connection, path: Path) -> None:
    """Raise StoreError for a store that went on elsewhere: what is changed here nobody sees."""
    row = db.execute("SELECT value FROM facts WHERE name = ?", (MOVED,)).fetchone()
    if row is not None:
        raise StoreError(str(path), f"was moved to {row[0]}", THERE)


def connect(
    path: Path, mode: str, wait_s: float, *pragmas: str, any_thread: bool = False
) -> sqlite3.Connection:
    """Open a store's file and set the connection up; one that cannot be set up is closed."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    db = sqlite3.connect(
        uri, uri=True, timeout=wait_s, isolation_level=None, check_same_thread=not any_thread
    )
    with ExitStack() as failed:
        failed.callback(db.close)
        for pragma in pragmas:
            db.execute(f"PRAGMA {pragma}")
        failed.pop_all()
    return db


def _state_of(path: Path) -> tuple[int, ...] | None:
    """Return what shows that a file was written to; None: somebody has it open to write."""
    if path.with_name(f"{path.name}-wal").exists():
        return None
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


class SqliteReader(Reader):
    """A read-only view of the store."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.where = str(path)
        self._db: sqlite3.Connection | None = None
        self._still: tuple[int, ...] | None = None  # what the file was when it was opened as still

    @classmethod
    def open(cls, path: Path) -> Self:
        """Return a reader; raises StoreError when there is no usable store."""
        return cls(path).opened()

    def prepare(self) -> None:
        """Look whether there is a store of our version."""
        if not self.path.exists():
            raise StoreError(self.where, "does not exist", "start `edge-ldp aggregator run` first")
        with self.reading() as db:
            version = check(db, self.path)
        if version < schema.VERSION:
            remedy = "start `edge-ldp aggregator run`: it upgrades it"
            raise OldStoreError(self.where, version, schema.VERSION, remedy)

    def _histograms(
        self, stream: int, first_bucket: int, last_bucket: int, group: int | None
    ) -> sqlite3.Cursor:
        """Return rows of epoch, bucket, whose, reporters and stored histogram, rising."""
        query = f"""SELECT epoch, bucket, {WHOSE}, reporters, pairs FROM counts WHERE {_EACH_EPOCH}
            AND bucket BETWEEN ?2 AND ?3 AND (?4 IS NULL OR grp = ?4) ORDER BY 1, 2, grp, cls"""  # noqa: S608 (our own words)
        with self.reading() as db:
            return db.execute(query, (stream, first_bucket, last_bucket, group))

    def totals(
        self,
        stream: int,
        first_bucket: int = 0,
        last_bucket: int = LAST_BUCKET,
        group: int | None = None,
    ) -> CountRows:
        """Return the counts of a stream, the buckets first..last added up."""
        query = f"""SELECT epoch, {WHOSE}, pairs FROM counts WHERE {_EACH_EPOCH}
            AND bucket BETWEEN ?2 AND ?3 AND (?4 IS NULL OR grp = ?4)"""  # noqa: S608 (our own words)
        with self.reading() as db:
            return added_up(db.execute(query, (stream, first_bucket, last_bucket, group)))

    def records(self) -> Iterator[tuple[Key, Record]]:
        """Yield every device's and stream's record, by key."""
        query = f"SELECT {schema.RECORD} FROM records ORDER BY 1, 2"  # noqa: S608 (our own columns)
        with self.reading() as db:
            for row in db.execute(query):
                yield row[:2], row_record(row)

    def report_sums(self) -> list[ReportSum]:
        """Return all records added up, of devices alike."""
        rows = self._rows(
            f"""SELECT stream, grp, held_s IS NOT NULL, first_slot, last_slot, count(*),
            sum(counted), sum(rejected), sum({_GIVEN_UP}), sum({_PENDING}), sum(duplicates),
            sum(conflicts) FROM records LEFT JOIN devices USING (device) GROUP BY 1, 2, 3, 4, 5"""  # noqa: S608 (our own columns)
        )
        return [ReportSum._make((*row[:2], bool(row[2]), *row[3:])) for row in rows]

    def _reports_of(self, name: str) -> dict[str, int]:
        what = {"counted": "counted", "pending": _PENDING}[name]
        return dict(
            self._rows(
                f"SELECT device, sum({what}) FROM records WHERE stream < ? GROUP BY 1",  # noqa: S608 (our own columns)
                (FIRST_KEY,),
            )
        )

    def version(self) -> str:
        """Return what is another after every commit of anybody."""
        return str(self._rows("PRAGMA data_version")[0][0])

    def last_commit_s(self) -> int | None:
        """Return when a flush was last committed (seconds UTC), or None if never."""
        rows = self._rows("SELECT value FROM facts WHERE name = 'committed_s'")
        return int(rows[0][0]) if rows else None

    def is_served(self) -> bool | None:
        """Say whether a process holds the writer's lock; None where we may not look."""
        try:
            lock = os.open(lock_of(self.path), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except OSError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False

    def room_bytes(self) -> int | None:
        """Return how much room is left on the file's disk for us; None where we may not look."""
        try:
            disk = os.statvfs(self.path.parent)
        except OSError:
            return None
        return disk.f_bavail * disk.f_frsize

    def unwritable(self) -> str:
        """Say why we may not write, "" where we may; what SQLite keeps beside it counts, too."""
        names = ["", "-wal", "-shm", ".lock"]
        files = [self.path.with_name(self.path.name + name) for name in names]
        closed = [
            str(path)
            for path in (self.path.absolute().parent, *files)
            if path.exists() and not os.access(path, os.W_OK, effective_ids=True)
        ]
        return f"{', '.join(closed)} cannot be written by this user" if closed else ""

    def states(self, device: str) -> list[tuple[int, Record]]:
        """Return (stream, record) of one device."""
        query = f"SELECT {schema.RECORD} FROM records WHERE device = ? ORDER BY 2"  # noqa: S608 (our own columns)
        with self.reading() as db:
            return [(row[1], row_record(row)) for row in db.execute(query, (device,))]

    def committed(self, doubt: Doubt) -> bool:
        """Say whether a flush was committed: its first frame is settled (there is one writer)."""
        record = dict(self.states(doubt.device)).get(doubt.stream)
        return record is not None and is_settled(record.state, doubt.batch, doubt.series)

    def released_chunks(self) -> list[ReleasedChunk]:
        """Return every chunk of every curated stream, by device, key, series and chunk."""
        with self.reading() as db:
            if not curated_schema.exist(db):
                return []
        return super().released_chunks()

    def close(self) -> None:
        """Let go of the file."""
        db, self._db = self._db, None
        if db is not None:
            db.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give the connection, opened when needed; SQLite's errors become the store's."""
        try:
            if self._db is None:
                self._db = self._connect()
            self._check_still()
            yield self._db
            self._check_still()
        except (sqlite3.Error, RowError) as exc:
            raise translate(exc, self.path) from exc

    def _connect(self) -> sqlite3.Connection:
        """Open it; where nobody writes and we may not, as it lies there.

        SQLite would make a -wal and a -shm beside it, even to read. Without them it takes no locks
        and sees no commit, so from then on the file must stay as it is.
        """
        self._still = None
        still = _state_of(self.path)
        if still is None or os.access(self.path.parent, os.W_OK, effective_ids=True):
            return connect(self.path, "ro", BUSY_S)
        self._still = still
        return connect(self.path, "ro&immutable=1", BUSY_S)

    def _check_still(self) -> None:
        """Raise StoreHeldError if somebody has written to what was to lie still."""
        if self._still is not None and _state_of(self.path) != self._still:
            self.close()
            raise StoreHeldError(self.where, "is written to again", "asking again")

    def _rows(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with self.reading() as db:
            return db.execute(query, values).fetchall()
