"""An operator's connection to a PostgreSQL store, beside the workers that write to it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from aggregator.counting.records import Record
from aggregator.errors import StoreError
from aggregator.store.contract import CountedCell, PlanRow, Session
from aggregator.store.packed_records import pack_record
from aggregator.store.postgres import statements as schema
from aggregator.store.postgres.flush import add_audit, add_plan
from aggregator.store.postgres.link import RIGHTS
from aggregator.store.postgres.reader import PostgresReader

# of the catalogue, which names also those that this user may not read: none is left out unsaid
_TABLES = """SELECT relname::text FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
    WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND attname = 'device'
    AND relname NOT IN ('devices', 'records') ORDER BY 1"""
_FOUND = "SELECT count(*) FROM devices WHERE device = ANY(%s)"
_ONLY_READS = """SELECT current_setting('default_transaction_read_only') = 'on'
    AND NOT pg_is_in_recovery()"""
# appended as a flush's are; whoever merges folds them
_PRESENCE = b"""INSERT INTO presence_deltas (stream, bucket, grp, cls, slots)
    SELECT stream, bucket, grp, %s, slots FROM held_presence WHERE device = %s"""


class PostgresSession(PostgresReader, Session):
    """Reads as a reader does, and writes without being one of the workers."""

    TABLES = _TABLES

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Begin, and commit at the end: no flush of any worker lies in between."""
        with self.reading() as db:
            db.execute("BEGIN")
            try:
                self._refuse_who_reads(db)
                # flushes share this lock: those that run end first, the next ones wait
                db.execute("SELECT pg_advisory_xact_lock(%s, %s)", (schema.LOCKS, schema.MEMBERS))
                db.execute("SELECT pg_advisory_xact_lock(%s, %s)", (schema.LOCKS, schema.MERGING))
                yield
                add_audit(db, self.orders)
                db.execute("COMMIT")
                self.orders = ()
            except BaseException:
                if not db.closed:
                    db.execute("ROLLBACK")
                raise

    def _refuse_who_reads(self, db: psycopg.Connection[Any]) -> None:
        """Raise StoreError where this user's sessions are read-only: waiting would help nobody."""
        if db.execute(_ONLY_READS).fetchone() == (True,):
            raise StoreError(self.where, "refuses us (this user only reads)", RIGHTS)

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a statement with ? in the place of values."""
        with self.reading() as db:
            done = db.execute(query.replace("?", "%s").encode(), tuple(values))
            return done.fetchall() if done.description else []

    def each(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        """Execute a statement with ? for each of the values."""
        with self.reading() as db, db.cursor() as cursor:
            cursor.executemany(statement.replace("?", "%s").encode(), values)

    def put_record(self, device: str, stream: int, record: Record) -> None:
        """Put a record in the place of the one that there is."""
        with self.reading() as db:
            db.execute(schema.PUT_RECORDS, ([device], [stream], [pack_record(record)]))

    def forget_deleted(self) -> bool:
        """Return False: the server overwrites dead rows and its logs by itself, in its own time."""
        return False

    def enrol(self, devices: Sequence[str], at_s: int) -> None:
        """Give devices that have none a row."""
        if devices:
            with self.reading() as db:
                db.execute(schema.ADD_DEVICES, (at_s, list(devices)))
                found = db.execute(_FOUND, (list(devices),)).fetchone()
                if found != (len({*devices}),):  # this login sees only some groups
                    raise StoreError(self.where, "refuses us (a device of another group)", RIGHTS)

    def fold(self, device: str, cls: int, counted: Sequence[CountedCell]) -> None:
        """Add what is kept apart of a device to the counts; see Session."""
        with self.reading() as db:
            if counted:
                db.execute(schema.ADD_COUNTS, schema.columns([*counted], 7))
            db.execute(_PRESENCE, (cls, device))

    def add_plan(self, row: PlanRow) -> None:
        """Keep a plan; raises FencedError for an epoch that is not above every stored one."""
        with self.transaction(), self.reading() as db:
            add_plan(db, self.where, row)
