"""The tables of curated streams in the SQLite store: kept apart from the fleet's counts.

`create` may be called on any version of the store: it adds what is not there.
"""

import sqlite3
from collections.abc import Iterable

from aggregator.counting.records import ReleasedArrival

TABLES = (
    """CREATE TABLE IF NOT EXISTS released_designs (
        id INTEGER PRIMARY KEY, design BLOB NOT NULL UNIQUE
    )""",
    """CREATE TABLE IF NOT EXISTS released_chunks (
        device TEXT NOT NULL, stream INTEGER NOT NULL, series INTEGER NOT NULL,
        chunk INTEGER NOT NULL, theta INTEGER NOT NULL, design INTEGER NOT NULL,
        PRIMARY KEY (device, stream, series, chunk)
    ) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS released_values (
        device TEXT NOT NULL, stream INTEGER NOT NULL, slot INTEGER NOT NULL,
        series INTEGER NOT NULL, position INTEGER NOT NULL, value INTEGER NOT NULL,
        PRIMARY KEY (device, stream, slot)
    ) WITHOUT ROWID""",
)


def create_curated(db: sqlite3.Connection) -> None:
    """Add the tables where they are missing; within the caller's transaction."""
    for statement in TABLES:
        db.execute(statement)


def exist(db: sqlite3.Connection) -> bool:
    """Say whether the store has them: an older one has not."""
    query = "SELECT count(*) FROM sqlite_master WHERE name LIKE 'released!_%' ESCAPE '!'"
    return bool(db.execute(query).fetchone()[0])


def write_curated(db: sqlite3.Connection, arrivals: Iterable[ReleasedArrival]) -> None:
    """Store frames that count, within the flush's transaction; what a chunk was first stands."""
    for arrival in arrivals:
        frame = arrival.frame
        block = frame.design.encode()
        db.execute("INSERT OR IGNORE INTO released_designs (design) VALUES (?)", (block,))
        query = "SELECT id FROM released_designs WHERE design = ?"
        (design,) = db.execute(query, (block,)).fetchone()
        whose = (arrival.device, frame.key)
        chunk = (*whose, frame.series, frame.position // frame.design.chunk)
        db.execute(
            "INSERT OR IGNORE INTO released_chunks VALUES (?, ?, ?, ?, ?, ?)",
            (*chunk, frame.theta, design),
        )
        db.executemany(
            "INSERT OR IGNORE INTO released_values VALUES (?, ?, ?, ?, ?, ?)",
            [
                (*whose, slot, frame.series, frame.position + at, value)
                for at, (slot, value) in enumerate(zip(frame.slots, frame.values, strict=True))
            ],
        )
