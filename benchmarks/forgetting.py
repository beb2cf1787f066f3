"""What forgetting flush ids costs PostgreSQL: a day at once, beside row by row.

`python -m benchmarks.forgetting [--flushes 4320000]` starts a server of its own (its programs must
be installed, as for the tests) and fills a store's day with the ids of so many flushes, by default
those of a day at 50 a second. It prints how long the store's turn takes while no day is due (median
and most of 200) and when this one is, its commit included. Beside it the same ids in a table of one
piece: what deleting the 64 that fall due between two turns takes, and deleting all at once, as
after a long stop; both leave their room to VACUUM.
"""

from __future__ import annotations

import argparse
import sys
import time
from statistics import median
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from aggregator.store.postgres.flush import forget
from aggregator.store.postgres.statements import KEEP_FLUSHES, MERGE_EVERY
from aggregator.store.postgres.store import PostgresStore
from tests.postgres import running_postgres

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Database = psycopg.Connection[Any]

TURNS = 200
WHOLE = """CREATE TABLE whole (LIKE flushes INCLUDING DEFAULTS);
    ALTER TABLE whole ADD PRIMARY KEY (id);
    CREATE INDEX ON whole (made); CREATE INDEX ON whole (at_s)"""
DUE = f"{KEEP_FLUSHES} 1 hour"
FORGET = f"DELETE FROM whole WHERE made < now() - interval '{KEEP_FLUSHES}'"  # noqa: S608 (our own constant)


def fill(db: Database, table: str, count: int, age: str) -> None:
    """Insert so many ids, made so long ago, in the order of their time."""
    query = """INSERT INTO {} (day, id, at_s, made) SELECT 1, (lpad(to_hex(k), 12, '0')
        || right(replace(gen_random_uuid()::text, '-', ''), 20))::uuid, k, now() - {}::interval
        FROM generate_series(1, {}) AS k"""
    db.execute(sql.SQL(query).format(sql.Identifier(table), age, count))


def ms(db: Database, work: Callable[[Database], object]) -> float:
    """Do something in a transaction; return how long it took, its commit included."""
    began = time.perf_counter()
    with db.transaction():
        work(db)
    return (time.perf_counter() - began) * 1000


def a_day(db: Database, count: int) -> dict[str, float]:
    """Return what a day of ids takes, and what it takes to forget it; in ms but for the bytes."""
    fill(db, "flushes", count, "0 s")
    db.execute(b"VACUUM ANALYZE flushes")
    size = db.execute(b"SELECT pg_total_relation_size('flushes_1')").fetchone()
    turns = [ms(db, forget) for _ in range(TURNS)]
    found = {"bytes an id": size[0] / count if size else 0.0}
    found |= {"a turn without a day due, median": median(turns), "most": max(turns)}
    db.execute(b"TRUNCATE flushes")  # an update would leave dead rows beside them
    fill(db, "flushes", count, DUE)
    db.execute(b"CHECKPOINT")
    found["the day at once"] = ms(db, forget)
    left = db.execute(b"SELECT count(*) FROM flushes").fetchone()
    assert left == (1,), left  # the last one's
    return found


def row_by_row(db: Database, count: int) -> dict[str, float]:
    """Return what the same ids take to delete, in ms."""
    db.execute(WHOLE.encode())
    fill(db, "whole", count, "0 s")
    db.execute(b"VACUUM ANALYZE whole")
    turns = []
    for _ in range(TURNS):
        fill(db, "whole", MERGE_EVERY, DUE)
        turns.append(ms(db, lambda db: db.execute(FORGET.encode())))
    found = {"row by row: 64 of them, median": median(turns), "row by row: most": max(turns)}
    db.execute(b"TRUNCATE whole")
    fill(db, "whole", count, DUE)
    db.execute(b"CHECKPOINT")
    found["row by row: all at once"] = ms(db, lambda db: db.execute(FORGET.encode()))
    return found


def main() -> None:
    """Print what each way takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flushes", type=int, default=4_320_000)
    given = parser.parse_args()
    with running_postgres(durable=True) as server:
        url = server.new_database()
        PostgresStore.open(url).close()
        with psycopg.connect(url, autocommit=True) as db:
            for work in (a_day, row_by_row):
                for what, figure in work(db, given.flushes).items():
                    sys.stdout.write(f"{what}: {figure:,.1f}{'' if 'bytes' in what else ' ms'}\n")


if __name__ == "__main__":
    main()
