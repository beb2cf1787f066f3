"""The tables of the SQLite store; how a record lies in its row: aggregator.row_forms."""

from __future__ import annotations

APPLICATION_ID = 0x4C445041  # "LDPA"
VERSION = 2
_FIRST = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE devices (
        device TEXT PRIMARY KEY, state TEXT NOT NULL, software TEXT NOT NULL,
        seen_s INTEGER NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TABLE records (
        device TEXT NOT NULL, stream INTEGER NOT NULL, highest INTEGER NOT NULL,
        last_slot INTEGER NOT NULL, floor INTEGER NOT NULL, gaps BLOB NOT NULL,
        digests BLOB NOT NULL, first_slot INTEGER, counted INTEGER NOT NULL,
        rejected INTEGER NOT NULL, duplicates INTEGER NOT NULL, conflicts INTEGER NOT NULL,
        created INTEGER NOT NULL, expired INTEGER NOT NULL, first INTEGER NOT NULL,
        next INTEGER NOT NULL, before INTEGER NOT NULL, PRIMARY KEY (device, stream)
    ) WITHOUT ROWID""",
    """CREATE TABLE counts (
        stream INTEGER NOT NULL, epoch INTEGER NOT NULL, bucket INTEGER NOT NULL,
        pairs BLOB NOT NULL, PRIMARY KEY (stream, epoch, bucket)
    ) WITHOUT ROWID""",
    """CREATE TABLE presence (
        stream INTEGER NOT NULL, bucket INTEGER NOT NULL, slots INTEGER NOT NULL,
        PRIMARY KEY (stream, bucket)
    ) WITHOUT ROWID""",
    """CREATE TABLE refused (
        reason TEXT NOT NULL, stream INTEGER NOT NULL, messages INTEGER NOT NULL,
        reports INTEGER NOT NULL, PRIMARY KEY (reason, stream)
    ) WITHOUT ROWID""",
    """CREATE TABLE plans (
        stream INTEGER NOT NULL, epoch INTEGER NOT NULL, issued_s INTEGER NOT NULL,
        payload BLOB NOT NULL, PRIMARY KEY (stream, epoch)
    ) WITHOUT ROWID""",
)
_SECOND = (
    """CREATE TABLE looks (
        stream INTEGER NOT NULL, at_s INTEGER NOT NULL, payload BLOB NOT NULL,
        PRIMARY KEY (stream, at_s)
    ) WITHOUT ROWID""",
    """CREATE TABLE watched (
        device TEXT NOT NULL, stream INTEGER NOT NULL, law TEXT NOT NULL, kept BLOB NOT NULL,
        PRIMARY KEY (device, stream, law)
    ) WITHOUT ROWID""",
    """CREATE TABLE marks (
        device TEXT NOT NULL, stream INTEGER NOT NULL, first_s INTEGER NOT NULL,
        last_s INTEGER NOT NULL, times INTEGER NOT NULL, name TEXT NOT NULL,
        seen INTEGER NOT NULL, reports INTEGER NOT NULL, bound REAL NOT NULL,
        chance REAL NOT NULL, PRIMARY KEY (device, stream)
    ) WITHOUT ROWID""",
)
# What makes a store of the version before into one of this version; a new one takes every step.
STEPS = {1: _FIRST, 2: _SECOND}
RECORD = """highest, last_slot, floor, gaps, digests, first_slot, counted, rejected, duplicates,
    conflicts, created, expired, first, next, before"""
PUT_RECORD = "INSERT OR REPLACE INTO records VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
PUT_STATUS = """INSERT INTO devices VALUES (?, ?, ?, ?) ON CONFLICT (device) DO UPDATE
    SET state = excluded.state, software = excluded.software, seen_s = excluded.seen_s"""
ADD_DEVICE = "INSERT OR IGNORE INTO devices VALUES (?, 'unknown', '', ?)"
GET_PAIRS = "SELECT pairs FROM counts WHERE stream = ? AND epoch = ? AND bucket = ?"
PUT_PAIRS = "INSERT OR REPLACE INTO counts VALUES (?, ?, ?, ?)"
ADD_PRESENCE = """INSERT INTO presence VALUES (?, ?, ?)
    ON CONFLICT (stream, bucket) DO UPDATE SET slots = slots + excluded.slots"""
ADD_REFUSED = """INSERT INTO refused VALUES (?, ?, ?, ?) ON CONFLICT (reason, stream) DO UPDATE
    SET messages = messages + excluded.messages, reports = reports + excluded.reports"""
PUT_WATCHED = "INSERT OR REPLACE INTO watched VALUES (?, ?, ?, ?)"
PUT_MARK = """INSERT INTO marks VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?)
    ON CONFLICT (device, stream) DO UPDATE SET last_s = excluded.last_s, times = times + 1,
    name = excluded.name, seen = excluded.seen, reports = excluded.reports,
    bound = excluded.bound, chance = excluded.chance"""
PUT_LOOK = "INSERT OR REPLACE INTO looks VALUES (?, ?, ?)"
