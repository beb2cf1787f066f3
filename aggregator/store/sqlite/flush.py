"""What one flush reads from SQLite and writes there: one statement for many rows."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import groupby
from operator import itemgetter

from aggregator.counting.record_rows import RecordRows, Row, record_row
from aggregator.counting.records import Cell, Changes, Key, Known, Member, Record, WatchKey
from aggregator.counting.reporters import NOBODY, united
from aggregator.counting.tally import Tally, add_pairs
from aggregator.errors import FencedError
from aggregator.store.forms import pack_pairs, status_row, unpack_pairs
from aggregator.store.period_sums import CLAIMED_S, CLAIMS, Rows, put_sums
from aggregator.store.rows import PlanRow
from aggregator.store.shared_reads import FACTS, RETIRED, streams_of
from aggregator.store.sqlite import curated_schema, schema
from edge_ldp.protocol.released import FIRST_SUMS_KEY

_KEY = itemgetter(0, 1)  # of a row
_FOLLOWED = itemgetter(*(schema.RECORD.replace(",", "").split().index(n) for n in schema.FOLLOWED))
_CLAIMS = CLAIMS.format("IN (SELECT value FROM json_each(?))")


@lru_cache(maxsize=1024)  # nearly all of a fleet are alike
def _member(group: int, revoked: int, held: int, cleared: int, cls: int) -> Member:
    return Member(group, bool(revoked), bool(held), bool(cleared), cls)


def known(
    db: sqlite3.Connection,
    keys: AbstractSet[Key],
    devices: AbstractSet[str],
    device_count: int,
    at_s: int,
) -> Known:
    """Return what the store holds of these; `device_count`: of all devices with a row."""
    streams: defaultdict[int, list[str]] = defaultdict(list)
    for device, stream in keys:
        streams[stream].append(device)
    records: dict[Key, Record | Row] = {}
    watched: dict[WatchKey, bytes] = {}
    for stream, names in streams.items():
        named = (json.dumps(sorted(names)), stream)
        rows = db.execute(schema.GET_RECORDS, named).fetchall()
        records |= zip(map(_KEY, rows), rows, strict=True)
        watched |= {
            (device, stream, law): kept
            for device, law, kept in db.execute(schema.GET_WATCHED, named)
        }
    rows = db.execute(schema.GET_DEVICES, (json.dumps(sorted(devices)),)).fetchall()
    found = [row[0] for row in rows]
    members = {row[0]: _member(*row[2:]) for row in rows if not row[1]}
    retired = frozenset(streams_of(db.execute(FACTS), RETIRED))
    summing = json.dumps(sorted({device for device, key in keys if key >= FIRST_SUMS_KEY}))
    claims = db.execute(_CLAIMS, (at_s - CLAIMED_S, summing)).fetchall()
    return Known(
        RecordRows(records), frozenset(found), device_count, watched, members, retired, claims
    )


def _add_counts(db: sqlite3.Connection, tally: Tally, reporters: Mapping[Cell, bytes]) -> None:
    """Add a tally, and who is in it, to the counts."""
    rows: list[tuple[object, ...]] = []
    for part, found in groupby(tally.buckets(), key=itemgetter(0, 1, 2, 3)):
        added = {bucket: (codes, counts) for *_, bucket, codes, counts in found}
        who = {bucket: reporters.get((*part, bucket), NOBODY) for bucket in added}
        for bucket, known, blob in db.execute(schema.GET_BUCKETS, (json.dumps([*added]), *part)):
            added[bucket] = add_pairs(unpack_pairs(blob), added[bucket])
            who[bucket] = united((known, who[bucket]))
        rows += [(*part, at, who[at], pack_pairs(*pairs)) for at, pairs in added.items()]
    db.executemany(schema.PUT_PAIRS, rows)


def _add_held(db: sqlite3.Connection, device: str, tally: Tally) -> None:
    """Add a tally to what is kept apart of a device."""
    rows: list[tuple[object, ...]] = []
    for part, found in groupby(tally.buckets(), key=itemgetter(0, 1, 2)):
        key = (device, *part)
        added = {bucket: (codes, counts) for *_, bucket, codes, counts in found}
        for bucket, blob in db.execute(schema.GET_HELD_BUCKETS, (json.dumps([*added]), *key)):
            added[bucket] = add_pairs(unpack_pairs(blob), added[bucket])
        rows += [(*key, bucket, pack_pairs(*pairs)) for bucket, pairs in added.items()]
    db.executemany(schema.PUT_HELD_PAIRS, rows)


def insert_plan(rows: Rows, where: str, row: PlanRow) -> None:
    """Keep a plan, in a transaction; raises FencedError for an epoch that is not above all."""
    ((newest,),) = rows("SELECT max(epoch) FROM plans WHERE stream = ?", (row.stream,))
    if newest is not None and row.epoch <= newest:
        raise FencedError(where, row.stream, row.epoch, newest)
    values = (row.stream, row.epoch, row.issued_s, row.payload)
    rows("INSERT INTO plans VALUES (?, ?, ?, ?)", values)


def asking(db: sqlite3.Connection) -> Rows:
    """Return what gives the rows of a statement with ? in the place of values."""
    return lambda query, values: db.execute(query, values).fetchall()


def write(db: sqlite3.Connection, changes: Changes, at_s: int) -> None:
    """Write what a flush changes, within its transaction."""
    db.executemany(schema.ADD_DEVICE, [(device, at_s) for device in sorted(changes.enrolled)])
    db.executemany(
        schema.PUT_STATUS,
        [(device, *status_row(s), at_s) for device, s in changes.statuses.items()],
    )
    made, followed = [], []
    for key, one in RecordRows.of(changes.records).rows.items():
        if isinstance(one, Record):
            made.append(record_row(key, one))
        else:
            followed.append(_FOLLOWED(one))
    db.executemany(schema.PUT_RECORD, made)
    db.executemany(schema.PUT_FOLLOWED, followed)
    _add_counts(db, changes.tally, changes.reporters)
    db.executemany(
        schema.ADD_PRESENCE, [(*key, slots) for key, slots in sorted(changes.presence.items())]
    )
    for device, held in sorted(changes.held.items()):
        _add_held(db, device, held.tally)
        presence = [(device, *key[:3], slots) for key, slots in sorted(held.presence.items())]
        db.executemany(schema.ADD_HELD_PRESENCE, presence)
    db.executemany(schema.HOLD_DEVICE, [(at_s, device) for device in sorted(changes.holds)])
    db.executemany(schema.ADD_REFUSED, [(*key, *n) for key, n in sorted(changes.refused.items())])
    curated_schema.write_curated(db, changes.released)
    put_sums(asking(db), changes.summed)
    db.executemany(schema.PUT_WATCHED, [(*key, kept) for key, kept in changes.watched.items()])
    db.executemany(
        schema.PUT_MARK,
        [
            (*key, at_s, at_s, m.name, m.seen, m.reports, m.bound, m.chance)
            for key, m in changes.marked.items()
        ],
    )
    db.execute(schema.PUT_COMMITTED, (str(at_s),))
