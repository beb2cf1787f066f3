"""The tables that curators have in the agent's one file, and what a look at them alone can tell.

`curated`: one row for each series ever begun: the last slot taken, its public design, its terms
(for the ledger) and its state, in which running totals are unreadable without the chunk's key.
`curator_keys`: the key of each stream's running chunk and nothing else, so that it is written once
a chunk and wiped at the chunk's end. `released`: released values that no batch carries yet. A
`stream` is its key, from 256.
"""

import sqlite3
from collections.abc import Sequence
from typing import Any

from edge_ldp.device.errors import WireError
from edge_ldp.released import FIRST_KEY, decode_released

CURATOR_TABLES = (
    """CREATE TABLE curated (stream INTEGER, series INTEGER, slot INTEGER NOT NULL,
  design BLOB NOT NULL, terms BLOB NOT NULL, state BLOB NOT NULL, ended INTEGER NOT NULL,
  PRIMARY KEY (stream, series)) WITHOUT ROWID""",
    "CREATE TABLE curator_keys (stream INTEGER PRIMARY KEY, key BLOB NOT NULL)",
    """CREATE TABLE released (stream INTEGER, slot INTEGER, series INTEGER NOT NULL,
  position INTEGER NOT NULL, theta INTEGER NOT NULL, value INTEGER NOT NULL,
  PRIMARY KEY (stream, slot)) WITHOUT ROWID""",
)


def curator_rows(db: sqlite3.Connection) -> list[list[Any]]:
    """Return the rows that budget and noise depend on, for the seal; empty where none ever ran."""
    if not has_curators(db):
        return []
    return [
        db.execute("SELECT * FROM curated ORDER BY stream, series").fetchall(),
        db.execute("SELECT * FROM curator_keys ORDER BY stream").fetchall(),
    ]


def has_curators(db: sqlite3.Connection) -> bool:
    """Say whether a curator ever ran on this file, whatever its version."""
    known = db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'curated'").fetchone()
    return bool(known and db.execute("SELECT 1 FROM curated LIMIT 1").fetchone())


def is_released(row: Sequence[int], payload: bytes) -> bool:
    """Say whether a batch is of released values; raises WireError when it is not as its row says.

    row: (stream, number, last slot, values).
    """
    if row[0] < FIRST_KEY:
        return False
    frame = decode_released(payload)
    if list(row) != [frame.key, frame.batch, frame.slots[-1], len(frame.slots)]:
        raise WireError("row", 0)
    return True
