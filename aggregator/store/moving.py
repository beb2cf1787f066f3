"""A SQLite store moved into an empty PostgreSQL database: everything in one transaction (AGG-22).

The service is stopped meanwhile; the broker keeps its messages, and devices what has no receipt.
The file is marked before and after, so that a move that was cut off is made again or ended, and
the file is never counted into again.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import uuid4

import psycopg

from aggregator.counting.record_rows import row_record
from aggregator.errors import StoreError
from aggregator.store.contract import new_flush
from aggregator.store.flush_ids import flush_day
from aggregator.store.packed_records import pack_record
from aggregator.store.postgres import statements as schema
from aggregator.store.postgres.flush import add_audit
from aggregator.store.postgres.store import PostgresStore
from aggregator.store.rows import ALIVE, ALIVE_TIMES, MOVED, AuditRow
from aggregator.store.sqlite import schema as sqlite_schema
from aggregator.store.sqlite.store import SqliteStore

Tell = Callable[[str, int, int], None]  # table, rows so far, rows in all
MOVING, MOVED_FROM = "moving", "moved from"
ROWS = 5000  # between two reports of progress
OWN_FACTS = ("committed_s", MOVING, MOVED)  # of a SQLite file only
TABLES = (
    *("groups", "devices", "records", "counts", "presence", "refused", "plans", "looks"),
    *("watched", "marks", "held_counts", "held_presence", "rolled", "sums"),
    *("released_designs", "released_chunks", "released_values", "audit"),
    *("period_sums", "period_totals"),
)
_EMPTY = ("facts", "flushes", "count_deltas", *TABLES)
_MARK = "INSERT OR REPLACE INTO facts VALUES (?, ?)"


def move(
    source: SqliteStore, target: PostgresStore, tell: Tell, orders: Sequence[AuditRow] = ()
) -> dict[str, int]:
    """Copy a store and return the rows of each table, none if it had been copied before.

    Both are held by the caller, so nobody else writes to either. `orders`: who moves it. Raises
    StoreError; then the file goes on being the store.
    """
    with source.reading() as old:
        token = _fact(old, MOVING) or str(uuid4())
        old.execute(_MARK, (MOVING, token))
    copied: dict[str, int] = {}

    def work(db: psycopg.Connection[Any]) -> None:
        if not _is_ours(db, target.where, token):
            with source.reading() as old:
                copied.update(_copy(old, db, tell))
            db.execute("INSERT INTO facts VALUES (%s, %s)", (MOVED_FROM, token))
            add_audit(db, orders)

    target.in_transaction(work)
    with source.reading() as old:
        old.execute(_MARK, (MOVED, target.where))
    return copied


def _is_ours(db: psycopg.Connection[Any], where: str, token: str) -> bool:
    """Say whether this very store was copied here before; raises StoreError where another is."""
    found = db.execute("SELECT value FROM facts WHERE name = %s", (MOVED_FROM,)).fetchone()
    if found == (token,):
        return True
    for table in _EMPTY:
        only = " WHERE id <> 0" if table == "groups" else ""
        if db.execute(f"SELECT 1 FROM {table}{only} LIMIT 1".encode()).fetchone():  # noqa: S608 (our own tables)
            raise StoreError(where, f"is not empty ({table})", "name an empty database")
    return False


def _copy(old: sqlite3.Connection, db: psycopg.Connection[Any], tell: Tell) -> dict[str, int]:
    db.execute("DELETE FROM groups")
    copied = {table: _copy_table(old, db, table, tell) for table in TABLES}
    for name, value in old.execute("SELECT name, value FROM facts").fetchall():
        if name not in OWN_FACTS and not name.startswith((ALIVE, ALIVE_TIMES)):
            db.execute("INSERT INTO facts VALUES (%s, %s)", (name, value))
    db.execute("UPDATE enrolled SET devices = %s", (copied["devices"],))
    db.execute(
        """SELECT setval(pg_get_serial_sequence('released_designs', 'id'),
        (SELECT coalesce(max(id), 1) FROM released_designs))"""
    )
    committed_s = _fact(old, "committed_s")
    if committed_s is not None:
        flush = new_flush()
        db.execute(schema.PUT_FLUSH, (flush_day(flush.bytes), flush, int(committed_s)))
    return copied


def _copy_table(
    old: sqlite3.Connection, db: psycopg.Connection[Any], table: str, tell: Tell
) -> int:
    columns, rows = _rows(old, table)
    (size,) = old.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 (our own tables)
    copy = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
    done = 0
    with db.cursor() as cursor, cursor.copy(copy.encode()) as out:
        for row in rows:
            out.write_row(row)
            done += 1
            if done % ROWS == 0:
                tell(table, done, size)
    if done != size:
        raise StoreError(table, f"gave {done} of {size} rows", "report it; nothing was changed")
    tell(table, size, size)
    return done


def _rows(old: sqlite3.Connection, table: str) -> tuple[list[str], Iterator[Any]]:
    """Return the columns of a table as PostgreSQL has them, and its rows."""
    if table == "records":
        query = f"SELECT {sqlite_schema.RECORD} FROM records"  # noqa: S608 (our own columns)
        packed = ((row[0], row[1], pack_record(row_record(row))) for row in old.execute(query))
        return ["device", "stream", "record"], packed
    columns = [row[1] for row in old.execute(f"PRAGMA table_info({table})")]
    return columns, old.execute(f"SELECT {', '.join(columns)} FROM {table}")  # noqa: S608 (same)


def _fact(old: sqlite3.Connection, name: str) -> str | None:
    row = old.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])
