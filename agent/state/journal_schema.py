"""The journal's tables, version by version, and whether a file holds what they say.

A file of an older version is changed in one transaction, budget and reports as they were, after it
was found sound as it is. A newer one is left alone.

Curators have three tables. `curated`: one row for each series ever begun: the last slot taken, its
public design, its terms (for the ledger) and what may be known of its state; the rest of it is in
the running file (`agent.curator.running_file`). `curator_keys`: empty, but in a file of an earlier
version: the key of each stream's running chunk. `released`: released values that no batch
carries yet. A `stream` of theirs is its key, from 256.

Sums have two. `summed`: one row for each period released, from its first to after its last second:
no slot in it is ever summed again; and what it cost, slots times span over scale. `sharing`: how
the window's ε is shared, as the agent's file had it last.

Batches are kept under numbers of the file's own, which only rise (`streams.next`); `series` says
what they are on the wire: those above `base` are 1, 2, 3 … in it, up to the next series' base, and
their slots are so long. BatchSeries 0, of base 0: frames v1. `streams.first`: the slot in which the
account began. `told`: the highest numbers that others told of and this state never made.
"""

import sqlite3
from hashlib import sha256
from typing import Any

from agent.claims.batches import BatchSeries, Numbering, pack
from agent.claims.elapsed import decode_elapsed
from agent.claims.pipeline import Report
from edge_ldp.device.errors import EdgeLdpError
from edge_ldp.device.frame import decode
from edge_ldp.device.sums_frame import decode_sums, last_slot_of
from edge_ldp.protocol.released import FIRST_KEY, FIRST_SUMS_KEY, decode_released
from edge_ldp.protocol.strict_json import MessageError

SCHEMA = 6
WITH_SHED, WITH_ELAPSED, WITH_SERIES, WITH_SUMS = 2, 4, 5, 6  # the versions that brought these
_LEDGER = (
    "CREATE TABLE ledger (id INTEGER PRIMARY KEY, commits INTEGER NOT NULL, seal BLOB NOT NULL,\n"
    "  value BLOB NOT NULL{})"
)
_ELAPSED = "elapsed BLOB NOT NULL DEFAULT x''"  # time, and the claims in it
_STREAMS = """CREATE TABLE streams (stream INTEGER PRIMARY KEY, first INTEGER NOT NULL,
  next INTEGER NOT NULL, created INTEGER NOT NULL, expired INTEGER NOT NULL{})"""
_PLANS = (
    "CREATE TABLE plans (name TEXT PRIMARY KEY, epoch INTEGER NOT NULL, payload BLOB NOT NULL)\n"
    "  WITHOUT ROWID"
)
_WAITING = """CREATE TABLE waiting (stream INTEGER, slot INTEGER, epoch INTEGER NOT NULL,
  code INTEGER NOT NULL{}, PRIMARY KEY ({})) WITHOUT ROWID"""
_BY_SLOT = _WAITING.format("", "slot, stream")  # a slot's reports on one page: less is written
_TAGGED = _WAITING.format(", tag INTEGER NOT NULL", "slot, stream")
_SERIES = (
    """CREATE TABLE series (stream INTEGER, base INTEGER, series INTEGER NOT NULL,
  slot_seconds INTEGER NOT NULL, PRIMARY KEY (stream, base)) WITHOUT ROWID""",
    """CREATE TABLE told (stream INTEGER, series INTEGER, highest INTEGER NOT NULL,
  settled INTEGER NOT NULL, PRIMARY KEY (stream, series)) WITHOUT ROWID""",
)
_BATCHES = """CREATE TABLE batches (stream INTEGER, number INTEGER, last_slot INTEGER NOT NULL,
  reports INTEGER NOT NULL, payload BLOB NOT NULL, PRIMARY KEY (stream, number)) WITHOUT ROWID"""
_PLAN_LOG = """CREATE TABLE plan_log (id INTEGER PRIMARY KEY, at_s INTEGER NOT NULL,
  stream TEXT NOT NULL, code TEXT NOT NULL, words TEXT NOT NULL, epoch INTEGER NOT NULL,
  theta INTEGER, question TEXT NOT NULL, reports INTEGER NOT NULL, times INTEGER NOT NULL)"""
_SHED = "shed INTEGER NOT NULL DEFAULT 0"  # those of `expired` that were given up for their size
_CURATORS = (
    """CREATE TABLE curated (stream INTEGER, series INTEGER, slot INTEGER NOT NULL,
  design BLOB NOT NULL, terms BLOB NOT NULL, state BLOB NOT NULL, ended INTEGER NOT NULL,
  PRIMARY KEY (stream, series)) WITHOUT ROWID""",
    "CREATE TABLE curator_keys (stream INTEGER PRIMARY KEY, key BLOB NOT NULL)",
    """CREATE TABLE released (stream INTEGER, slot INTEGER, series INTEGER NOT NULL,
  position INTEGER NOT NULL, theta INTEGER NOT NULL, value INTEGER NOT NULL,
  PRIMARY KEY (stream, slot)) WITHOUT ROWID""",
)
_SUMS = (
    """CREATE TABLE summed (stream INTEGER, first_s INTEGER, until_s INTEGER,
  slots INTEGER NOT NULL, span INTEGER NOT NULL, scale INTEGER NOT NULL,
  PRIMARY KEY (stream, first_s, until_s)) WITHOUT ROWID""",
    "CREATE TABLE sharing (id INTEGER PRIMARY KEY, terms BLOB NOT NULL)",
)

TABLES: dict[int, tuple[str, ...]] = {
    1: (
        _LEDGER.format(""),
        _STREAMS.format(""),
        _PLANS,
        _WAITING.format("", "stream, slot"),
        _BATCHES,
    ),
    2: (_LEDGER.format(""), _STREAMS.format(", " + _SHED), _PLANS, _BY_SLOT, _BATCHES, *_CURATORS),
}
TABLES[3] = (*TABLES[2], _PLAN_LOG)
TABLES[4] = (_LEDGER.format(", " + _ELAPSED), *TABLES[3][1:])
TABLES[5] = (*TABLES[4][:3], _TAGGED, *TABLES[4][4:], *_SERIES)
TABLES[6] = (*TABLES[5], *_SUMS)
STEPS = {  # from this version to the next
    1: (
        f"ALTER TABLE streams ADD COLUMN {_SHED}",
        "CREATE TEMP TABLE kept AS SELECT stream, slot, epoch, code FROM waiting",
        "DROP TABLE waiting",
        _BY_SLOT,
        "INSERT INTO waiting SELECT stream, slot, epoch, code FROM kept",
        "DROP TABLE kept",
        *_CURATORS,
    ),
    2: (_PLAN_LOG,),
    3: (f"ALTER TABLE ledger ADD COLUMN {_ELAPSED}",),
    4: (
        "CREATE TEMP TABLE kept AS SELECT stream, slot, epoch, code FROM waiting",
        "DROP TABLE waiting",
        _TAGGED,
        "INSERT INTO waiting SELECT stream, slot, epoch, code, 0 FROM kept",
        "DROP TABLE kept",
        *_SERIES,
        "INSERT INTO series SELECT stream, 0, 0, 0 FROM streams",
    ),
    5: _SUMS,
}
_COLUMNS = ("stream", "slot", "epoch", "code")
_EXTREMES = (  # packing asks of each column that it is an integer in a range: one look at each row
    f"SELECT {', '.join(f'min({name}), max({name})' for name in _COLUMNS)}, max("  # noqa: S608 (our own names)
    + " OR ".join(f"typeof({name}) != 'integer'" for name in _COLUMNS)
    + " OR stream NOT IN (SELECT stream FROM streams)) FROM waiting"
)


def create(db: sqlite3.Connection) -> None:
    """Make the tables of this version in an empty file, in one transaction."""
    tables = ";".join(TABLES[SCHEMA])
    db.executescript(f"BEGIN;{tables};PRAGMA user_version = {SCHEMA};COMMIT;")


def migrate(db: sqlite3.Connection, version: int) -> None:
    """Bring a sound file of an older version to this one: all of it, or nothing after a crash."""
    db.execute("BEGIN IMMEDIATE")
    try:
        for step in range(version, SCHEMA):
            for statement in STEPS[step]:
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {SCHEMA}")
        if version < WITH_SERIES:
            _number_anew(db)
        db.execute("UPDATE ledger SET seal = ?", (seal(db),))
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _number_anew(db: sqlite3.Connection) -> None:
    """Take apart batches v1 that no aggregator can ever have counted: numbered above their slots.

    Their reports wait, to be packed in a series. What the batches left are of is written down: the
    slot length, where it is known.
    """
    outrun = db.execute(
        "SELECT payload FROM batches WHERE stream < ? AND number > last_slot + 1", (FIRST_KEY,)
    ).fetchall()
    for (payload,) in outrun:
        frame = decode(payload)
        pairs = zip(frame.slots, frame.codes, strict=True)
        rows = [(frame.stream, slot, frame.epoch, code) for slot, code in pairs]
        db.executemany("INSERT OR IGNORE INTO waiting VALUES (?, ?, ?, ?, 0)", rows)
        db.execute("DELETE FROM batches WHERE stream = ? AND number = ?", frame[:2])
    row = db.execute("SELECT elapsed FROM ledger").fetchone()
    try:
        seconds = decode_elapsed(row[0]).slot_seconds if row and row[0] else 0
    except MessageError:  # said where it is needed
        seconds = 0
    db.execute("UPDATE series SET slot_seconds = ?", (seconds,))


def is_usable(db: sqlite3.Connection, commits: int) -> bool:
    """Say whether an open file is whole, ours, and not older than `commits`; or of a newer version.

    Raises sqlite3.Error and UnicodeDecodeError for what SQLite cannot read.
    """
    if db.execute("PRAGMA quick_check").fetchone()[0] != "ok":
        return False
    tables = {row[0] for row in db.execute("SELECT sql FROM sqlite_schema")}
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version not in TABLES:
        return bool(version) or not (tables or commits)
    if tables != set(TABLES[version]):
        return False
    row = db.execute("SELECT commits, seal FROM ledger").fetchone() or (0, seal(db))
    return row[0] >= commits and row[1] == seal(db) and _is_sendable(db)


def seal(db: sqlite3.Connection) -> bytes:
    """Return a digest of what budget, numbering and plans depend on; codes are not in it."""
    version = db.execute("PRAGMA user_version").fetchone()[0]
    kept = "value, elapsed" if version >= WITH_ELAPSED else "value"
    rows = [
        db.execute(f"SELECT {kept} FROM ledger").fetchall(),  # noqa: S608 (our own names)
        db.execute("SELECT * FROM streams ORDER BY stream").fetchall(),
        db.execute("SELECT * FROM plans ORDER BY name").fetchall(),
        *_curator_rows(db),
    ]
    if version >= WITH_SUMS and (shared := db.execute("SELECT * FROM sharing").fetchall()):
        rows += [shared, db.execute("SELECT * FROM summed ORDER BY 1, 2, 3").fetchall()]
    if version >= WITH_SERIES:
        rows += [
            db.execute("SELECT * FROM series ORDER BY stream, base").fetchall(),
            db.execute("SELECT * FROM told ORDER BY stream, series").fetchall(),
        ]
    return sha256(repr(rows).encode()).digest()[:8]


def has_curators(db: sqlite3.Connection) -> bool:
    """Say whether a curator ever ran on this file, whatever its version."""
    known = db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'curated'").fetchone()
    return bool(known and db.execute("SELECT 1 FROM curated LIMIT 1").fetchone())


def _is_sendable(db: sqlite3.Connection) -> bool:
    """Say whether waiting reports can be packed, and batches are what their rows say."""
    *extremes, is_foreign = db.execute(_EXTREMES).fetchone()
    waiting = [] if is_foreign is None else {Report(*extremes[::2]), Report(*extremes[1::2])}
    if is_foreign:
        return False
    batches = db.execute("SELECT stream, number, last_slot, reports, payload FROM batches")
    try:
        pack(sorted(waiting), numberings(db))
        ways = series_of_streams(db)
        for stream, number, last_slot, reports, payload in batches:
            one = next(one for one in reversed(ways[stream]) if one.base < number)
            row = [stream, one.series, number - one.base, last_slot, reports]
            if row != _on_wire(stream, payload):
                return False
    except (EdgeLdpError, KeyError, TypeError, StopIteration):
        return False
    return True


def series_of_streams(db: sqlite3.Connection) -> dict[int, list[BatchSeries]]:
    """Return the series of each stream that are still known, oldest first: the last one is new."""
    if db.execute("PRAGMA user_version").fetchone()[0] < WITH_SERIES:
        told = "SELECT stream, next, 0, 0, 0 FROM streams"
    else:
        told = (
            "SELECT stream, next, base, series, slot_seconds FROM streams JOIN series"
            " USING (stream) ORDER BY stream, base"
        )
    found: dict[int, list[BatchSeries]] = {}
    for stream, following, base, series, slot_seconds in db.execute(told):
        earlier = found.setdefault(stream, [])
        if earlier:
            earlier[-1] = earlier[-1]._replace(last=base)
        earlier.append(BatchSeries(stream, base, series, slot_seconds, following - 1))
    return found


def numberings(db: sqlite3.Connection) -> dict[int, Numbering]:
    """Return how each stream's next batch is numbered."""
    found = series_of_streams(db).items()
    return {s: Numbering(all_[-1].last + 1, all_[-1].series, all_[-1].base) for s, all_ in found}


def _curator_rows(db: sqlite3.Connection) -> list[list[Any]]:
    """Return the rows that budget and noise depend on, for the seal; empty where none ever ran."""
    if not has_curators(db):
        return []
    return [
        db.execute("SELECT * FROM curated ORDER BY stream, series").fetchall(),
        db.execute("SELECT * FROM curator_keys ORDER BY stream").fetchall(),
    ]


def _on_wire(stream: int, payload: bytes) -> list[int]:
    """Return stream key, series, number, last slot and count of a batch; raises WireError."""
    if stream < FIRST_KEY:
        frame = decode(payload)
        return [frame.stream, frame.series, frame.batch, frame.slots[-1], len(frame.slots)]
    if stream >= FIRST_SUMS_KEY:  # one report, whose last slot is its period's
        sums = decode_sums(payload)
        return [FIRST_SUMS_KEY + sums.stream, sums.series, sums.batch, last_slot_of(sums), 1]
    released = decode_released(payload)
    last, count = released.slots[-1], len(released.slots)
    return [released.key, released.numbering, released.batch, last, count]
