"""An operator's connection to a SQLite store, beside the service that writes to it."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from aggregator.counting.record_rows import record_row
from aggregator.counting.records import Record
from aggregator.counting.reporters import united
from aggregator.counting.tally import add_pairs
from aggregator.store.contract import CountedCell, PlanRow, Session
from aggregator.store.forms import pack_pairs, unpack_pairs
from aggregator.store.shared_reads import ADD_AUDIT
from aggregator.store.sqlite import schema
from aggregator.store.sqlite.flush import insert_plan
from aggregator.store.sqlite.reader import SqliteReader, connect, refuse_moved

WAIT_S = 20.0  # for the service's flush, or a merge of many
_TABLES = """SELECT one.name FROM sqlite_master AS one, pragma_table_info(one.name) AS part
    WHERE one.type = 'table' AND part.name = 'device' AND one.name NOT IN ('devices', 'records')
    ORDER BY 1"""
_PRESENCE = """INSERT INTO presence (stream, bucket, grp, cls, slots)
    SELECT stream, bucket, grp, ?, slots FROM held_presence WHERE device = ?
    ON CONFLICT (stream, bucket, grp, cls) DO UPDATE SET slots = slots + excluded.slots"""


class SqliteSession(SqliteReader, Session):
    """Reads as a reader does, and writes without being the service's writer."""

    TABLES = _TABLES

    def prepare(self) -> None:
        """Look whether there is a store of our version that was not moved."""
        super().prepare()
        with self.reading() as db:
            refuse_moved(db, self.path)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Begin, and commit at the end: no flush of the service lies in between."""
        with self.reading() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                refuse_moved(db, self.path)  # while this was open
                yield
                db.executemany(ADD_AUDIT, self.orders)
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")
            self.orders = ()

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a statement with ? in the place of values."""
        return self._rows(query, tuple(values))

    def each(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        """Execute a statement with ? for each of the values."""
        with self.reading() as db:
            db.executemany(statement, values)

    def put_record(self, device: str, stream: int, record: Record) -> None:
        """Put a record in the place of the one that there is."""
        self._rows(schema.PUT_RECORD, record_row((device, stream), record))

    def forget_deleted(self) -> bool:
        """Write the file anew while no service runs on it: free pages have what once lay there."""
        if self.is_served() is not False:
            return False
        self._rows("VACUUM")
        self._rows("PRAGMA wal_checkpoint(TRUNCATE)")
        return True

    def enrol(self, devices: Sequence[str], at_s: int) -> None:
        """Give devices that have none a row."""
        self.each(schema.ADD_DEVICE, [(device, at_s) for device in devices])

    def fold(self, device: str, cls: int, counted: Sequence[CountedCell]) -> None:
        """Add what is kept apart of a device to the counts; see Session."""
        with self.reading() as db:
            for *key, who, blob in counted:
                row = (who, blob)
                for known, pairs in db.execute(schema.GET_PAIRS, key).fetchall():
                    summed = add_pairs(unpack_pairs(pairs), unpack_pairs(blob))
                    row = (united((known, who)), pack_pairs(*summed))
                db.execute(schema.PUT_PAIRS, (*key, *row))
            db.execute(_PRESENCE, (cls, device))

    def add_plan(self, row: PlanRow) -> None:
        """Keep a plan; raises FencedError for an epoch that is not above every stored one."""
        with self.transaction():
            insert_plan(self._rows, self.where, row)

    def _connect(self) -> sqlite3.Connection:
        return connect(self.path, "rw", WAIT_S, "synchronous = FULL")
