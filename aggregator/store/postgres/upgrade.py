"""What a step from one version of the PostgreSQL store to the next has to convert."""

from typing import Any

import psycopg

from aggregator.counting.record_rows import row_record
from aggregator.store.forms import repack_pairs
from aggregator.store.packed_records import pack_record
from aggregator.store.postgres import schema as tables
from aggregator.store.postgres import statements as schema
from aggregator.store.postgres.link import check

_PAGE = 5000
_OLD = f"""SELECT device, stream, {tables.OLD_RECORD} FROM old_records
    WHERE (device, stream) > (%s, %s) ORDER BY device, stream LIMIT {_PAGE}"""  # noqa: S608 (our own columns)
_PAIRS = "SELECT ctid::text, pairs FROM {}"
_PUT_PAIRS = "UPDATE {} SET pairs = %s WHERE ctid = %s::tid"


def upgrade(db: psycopg.Connection[Any], where: str) -> None:
    """Take the steps from the version found (0: an empty database) to ours."""
    db.execute("SELECT pg_advisory_xact_lock(%s, %s)", (schema.LOCKS, schema.MIGRATING))
    version = check(db, where)
    if version == tables.VERSION:
        return
    if not version:
        db.execute("CREATE TABLE edge_ldp_schema (version integer NOT NULL)")
        db.execute("INSERT INTO edge_ldp_schema VALUES (0)")
    # flushes of workers that run end first, and those that wait here see what they wait for
    db.execute("SELECT pg_advisory_xact_lock(%s, %s)", (schema.LOCKS, schema.MEMBERS))
    for step in range(version + 1, tables.VERSION + 1):
        for statement in tables.STEPS[step]:
            db.execute(statement.encode())
        convert(db, step)
    db.execute("UPDATE edge_ldp_schema SET version = %s", (tables.VERSION,))


def convert(db: psycopg.Connection[Any], step: int) -> None:
    """Carry over what no statement can, in the transaction of the step; raises RowError."""
    if step != 2:  # noqa: PLR2004 (a version)
        return
    last = ("", -1)
    while rows := db.execute(_OLD.encode(), last, binary=True).fetchall():
        whole = [(*row[:7], 0, b"", *row[7:]) for row in rows]  # there were no series
        made = [(*row[:2], pack_record(row_record(row))) for row in whole]
        db.execute(schema.NEW_RECORDS, schema.columns(made, 3))
        last = rows[-1][:2]
    db.execute("DROP TABLE old_records")
    for table in ("counts", "count_deltas"):
        found = db.execute(_PAIRS.format(table).encode(), binary=True).fetchall()
        with db.cursor() as cursor:
            cursor.executemany(
                _PUT_PAIRS.format(table).encode(), [(repack_pairs(blob), at) for at, blob in found]
            )
