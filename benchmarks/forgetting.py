"""What forgetting old flush ids costs PostgreSQL, beside dropping a day's partition of them.

`python -m benchmarks.forgetting [--flushes 4320000]` starts a server of its own (its programs must
be installed, as for the tests) and fills a store with the ids of so many flushes, by default those
of a day at 50 a second. It prints how long the store's own statement takes for the 64 that fall due
between two of its turns (median and most of 200), what VACUUM takes then, how long the statement
takes for all ids at once, as after a long stop, and what dropping a partition with as many takes,
which is the way that was not chosen (ADR 18).
"""

from __future__ import annotations

import argparse
import sys
import time
from statistics import median
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from aggregator.shell.postgres_schema import KEEP_FLUSHES, MERGE, MERGE_EVERY
from aggregator.shell.postgres_store import PostgresStore
from tests.postgres import running_postgres

if TYPE_CHECKING:
    from typing import Any

    Database = psycopg.Connection[Any]

FORGET = MERGE[-1]
TURNS = 200
PARTED = """CREATE TABLE parted (LIKE flushes INCLUDING DEFAULTS) PARTITION BY RANGE (made);
    CREATE TABLE a_day PARTITION OF parted DEFAULT; CREATE INDEX ON parted (made);
    CREATE INDEX ON parted (at_s); CREATE INDEX ON parted (id)"""


def fill(db: Database, table: str, count: int, age: str) -> None:
    """Insert so many ids, made so long ago."""
    query = """INSERT INTO {} (id, at_s, made)
        SELECT gen_random_uuid(), k, now() - {}::interval FROM generate_series(1, {}) k"""
    db.execute(sql.SQL(query).format(sql.Identifier(table), age, count))


def ms(db: Database, statement: str) -> float:
    """Run a statement by itself; return how long it took, its commit included."""
    began = time.perf_counter()
    db.execute(statement.encode())
    return (time.perf_counter() - began) * 1000


def measure(db: Database, count: int) -> dict[str, float]:
    """Return what was measured, in ms, but for bytes an id."""
    fill(db, "flushes", count, "0 s")
    db.execute(b"VACUUM ANALYZE flushes")
    size = db.execute(b"SELECT pg_total_relation_size('flushes')").fetchone()
    turns = []
    for _ in range(TURNS):
        fill(db, "flushes", MERGE_EVERY, f"{KEEP_FLUSHES} 1 hour")
        turns.append(ms(db, FORGET))
    found = {"bytes an id": size[0] / count if size else 0.0}
    found |= {"a turn, median": median(turns), "a turn, most": max(turns)}
    found["VACUUM after 200 turns"] = ms(db, "VACUUM flushes")
    due = sql.SQL("UPDATE flushes SET made = now() - {}::interval")
    db.execute(due.format(f"{KEEP_FLUSHES} 1 hour"))
    db.execute(b"INSERT INTO flushes (id, at_s) VALUES (gen_random_uuid(), 1099511627776)")  # stays
    found["all at once"] = ms(db, FORGET)
    db.execute(PARTED.encode())
    fill(db, "parted", count, "0 s")
    found["dropping a partition of as many"] = ms(db, "DROP TABLE a_day")
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
            for what, figure in measure(db, given.flushes).items():
                sys.stdout.write(f"{what}: {figure:,.1f}{'' if 'bytes' in what else ' ms'}\n")


if __name__ == "__main__":
    main()
