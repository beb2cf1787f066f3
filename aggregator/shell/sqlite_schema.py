"""The tables of the SQLite store and how a record lies in its row."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregator.receipts import DeviceState, Gap
from aggregator.records import Key, Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

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
_GAP = struct.Struct("<IIII")  # first, last, after + 1, before (all ones: none)
_DIGEST = struct.Struct("<I8s")
_U32 = (1 << 32) - 1
PAIR_BYTES = 10


def record_row(key: Key, record: Record) -> tuple[Any, ...]:
    """Return the row of a record, in the order of the table."""
    s = record.state
    return (
        *key,
        s.highest,
        s.last_slot,
        s.floor,
        _pack_gaps(s.gaps),
        b"".join(_DIGEST.pack(batch, digest) for batch, digest in s.digests),
        record.first_slot,
        record.counted,
        record.rejected,
        record.duplicates,
        record.conflicts,
        record.created,
        record.expired,
        record.first,
        record.next,
        record.before,
    )


def row_record(row: Sequence[Any]) -> Record:
    """Return the record in a row of RECORD's columns; raises DatabaseError when it is damaged."""
    highest, last_slot, floor, gaps, digests, *rest = row
    try:
        state = DeviceState(
            highest=highest,
            last_slot=last_slot,
            floor=floor,
            gaps=tuple(_unpack_gap(*fields) for fields in _GAP.iter_unpack(gaps)),
            digests=tuple((batch, digest) for batch, digest in _DIGEST.iter_unpack(digests)),
        )
    except (struct.error, TypeError) as exc:
        raise sqlite3.DatabaseError("a device's record does not parse") from exc
    return Record(state, *rest)


def pack_pairs(codes: Ints, counts: Ints) -> bytes:
    """Return a bucket's histogram as stored: codes (u16, rising), then counts (u64)."""
    return codes.astype("<u2").tobytes() + counts.astype("<u8").tobytes()


def unpack_pairs(blob: bytes) -> tuple[Ints, Ints]:
    """Return (codes, counts) of a stored histogram; raises DatabaseError when it is damaged."""
    size, rest = divmod(len(blob), PAIR_BYTES)
    codes = np.frombuffer(blob, "<u2", count=size).astype(np.int64)
    counts = np.frombuffer(blob[2 * size :], "<u8", count=size if not rest else 0).astype(np.int64)
    if rest or (np.diff(codes) <= 0).any() or (counts <= 0).any():
        raise sqlite3.DatabaseError("a bucket's counts do not parse")
    return codes, counts


def _pack_gaps(gaps: Iterable[Gap]) -> bytes:
    """16 bytes a gap; counted slots lie below 2**32 - 1: the guard lets none be in the future."""
    return b"".join(
        _GAP.pack(g.first, g.last, min(g.after + 1, _U32), _U32 if g.before is None else g.before)
        for g in gaps
    )


def _unpack_gap(first: int, last: int, after: int, before: int) -> Gap:
    return Gap(first, last, after - 1, None if before == _U32 else before)
