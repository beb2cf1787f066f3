"""What one flush reads from PostgreSQL, locks and writes there; what folds it; and plans."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, cast

import psycopg

from aggregator.counting.record_rows import RecordRows, Row
from aggregator.counting.records import (
    Cell,
    Changes,
    HeldCounts,
    Key,
    Known,
    Member,
    Record,
    ReleasedArrival,
)
from aggregator.counting.reporters import NOBODY, united
from aggregator.counting.tally import add_pairs
from aggregator.errors import FencedError
from aggregator.store.contract import PlanRow, RevisionRow
from aggregator.store.forms import pack_pairs, status_row, unpack_pairs
from aggregator.store.packed_records import pack_record, pack_row, unpack_row
from aggregator.store.period_sums import CLAIMED_S, CLAIMS, put_sums
from aggregator.store.postgres import statements as schema
from aggregator.store.postgres.arrays import bigints, blobs, split_blobs, texts
from aggregator.store.rows import AuditRow
from aggregator.store.shared_reads import ADD_AUDIT, FACTS, PUT_REVISION, RETIRED, streams_of
from edge_ldp.protocol.released import FIRST_SUMS_KEY

_PLAIN = Member()
_CLAIMS = CLAIMS.replace("?", "%b").format("= ANY(%b::text[])").encode()


def lock_records(
    db: psycopg.Connection[Any], keys: AbstractSet[Key], devices: AbstractSet[str], at_s: int
) -> Known:
    """Lock the records of `keys` and return what is known; later statements see the newest.

    Everything is asked for before the first answer is read: one round trip in a pipeline, two
    when a device is new. Locks: records by their keys, then the counter of enrolled devices.
    """
    named = texts(sorted(devices))
    summing = sorted({device for device, key in keys if key >= FIRST_SUMS_KEY})
    if summing:  # a home's sums under another number are another worker's to judge
        db.execute(schema.LOCK_SUMS, (schema.SUMS, summing))
    pairs = _keys(sorted(keys))
    asked = db.execute(schema.LOCK_RECORDS, pairs, binary=True) if keys else None
    kept = db.execute(schema.GET_WATCHED, pairs, binary=True) if keys else None
    found = db.execute(schema.GET_DEVICES, (named,), binary=True)
    count = db.execute(schema.GET_ENROLLED)
    facts = db.execute(FACTS)
    claimed = db.execute(_CLAIMS, (at_s - CLAIMED_S, summing)) if summing else ()
    records = {key: unpack_row(key, blob) for key, blob in _joined(asked)}
    watched = {(*key, law): blob for key, law, blob in _joined(kept)}
    known = _members(found)
    if len(known) < len(devices):
        # who enrols does so alone, so that the limit on devices is exact with several workers
        count = db.execute(schema.LOCK_ENROLLED)
        known = _members(db.execute(schema.GET_DEVICES, (named,), binary=True))
    (devices_ever,) = count.fetchone() or (0,)
    members = {name: one for name, one in known.items() if one is not _PLAIN}
    return Known(
        RecordRows(records),
        frozenset(known),
        devices_ever,
        watched,
        members,
        frozenset(streams_of(facts, RETIRED)),
        [*claimed],
    )


def write(db: psycopg.Connection[Any], known: Known, changes: Changes, at_s: int) -> None:
    """Write what a flush changes, within its transaction; rows are locked in a fixed order."""
    if changes.enrolled:
        db.execute(schema.ADD_DEVICES, (at_s, sorted(changes.enrolled)))
    _write_records(db, known, RecordRows.of(changes.records).rows)
    statuses = sorted(changes.statuses.items())
    if statuses:
        rows = [(name, *status_row(s)) for name, s in statuses]
        db.execute(schema.PUT_STATUSES, (at_s, *schema.columns(rows, 7)))
    _write_sums(db, changes)
    for device, held in sorted(changes.held.items()):
        _write_held(db, device, held)
    if changes.holds:
        db.execute(schema.HOLD_DEVICES, (at_s, sorted(changes.holds)))
    if changes.watched:
        keys, kept = zip(*sorted(changes.watched.items()), strict=True)
        laws = texts([law for _, _, law in keys])
        db.execute(schema.PUT_WATCHED, (*_keys(keys), laws, blobs(kept)))
    marks = [
        (*key, at_s, mark.name, mark.seen, mark.reports, mark.bound, mark.chance)
        for key, mark in sorted(changes.marked.items())
    ]
    if marks:
        db.execute(schema.PUT_MARKS, schema.columns(marks, 8))
    _write_released(db, changes.released)
    put_sums(partial(rows_told, db), changes.summed, " FOR UPDATE")


def add_plan(
    db: psycopg.Connection[Any], where: str, row: PlanRow, revision: RevisionRow | None = None
) -> None:
    """Keep an issued plan, and the revision that led to it, in the transaction that runs.

    The same plan once more changes nothing. Raises FencedError (see Store.add_plan).
    """
    db.execute("LOCK TABLE plans IN SHARE ROW EXCLUSIVE MODE")
    query = "SELECT epoch, issued_s, payload FROM plans WHERE stream = %s ORDER BY 1 DESC"
    newest = db.execute(f"{query} LIMIT 1".encode(), (row.stream,)).fetchone()
    if newest == (row.epoch, row.issued_s, row.payload):
        return
    if newest is not None and row.epoch <= newest[0]:
        raise FencedError(where, row.stream, row.epoch, newest[0])
    values = (row.stream, row.epoch, row.issued_s, row.payload)
    db.execute("INSERT INTO plans VALUES (%s, %s, %s, %s)", values)
    if revision is not None:
        rows_told(db, PUT_REVISION, (revision.stream, revision.at_s, revision.payload))


def add_audit(db: psycopg.Connection[Any], rows: Sequence[AuditRow]) -> None:
    """Keep what operators did, in the transaction that runs."""
    for row in rows:
        rows_told(db, ADD_AUDIT, row)


def fold_deltas(db: psycopg.Connection[Any]) -> None:
    """Fold delta rows into counts, presence and refusals, unless another writer is at it."""
    if not _is_ours(db):
        return
    sums: dict[tuple[int, ...], Any] = {}
    whose: dict[tuple[int, ...], set[bytes]] = {}

    def add(rows: Iterable[tuple[Any, ...]]) -> None:
        for *key, who, blob in rows:
            place, pairs = tuple(key), unpack_pairs(blob)
            sums[place] = add_pairs(sums[place], pairs) if place in sums else pairs
            whose.setdefault(place, set()).add(who)

    add(db.execute(schema.TAKE_COUNTS, binary=True))
    if sums:
        places = sorted(sums)
        keys = schema.columns(places, 5)
        add(db.execute(schema.GET_COUNTS, keys, binary=True))
        found = [(united(whose[place]), pack_pairs(*sums[place])) for place in places]
        db.execute(schema.PUT_COUNTS, (*keys, *schema.columns(found, 2)))
    for statement in schema.MERGE:
        db.execute(statement.encode())


def forget(db: psycopg.Connection[Any]) -> None:
    """Empty one day of flush ids that nobody will ask for, unless another writer is at it.

    When the store's last commit was among them, its row is written anew: `status` tells of it.
    Raises psycopg's LockNotAvailable while somebody reads the day, such as a backup.
    """
    stale = db.execute(schema.STALE_DAYS.encode()).fetchone() if _is_ours(db) else None
    if stale is None:
        return
    db.execute(schema.LOCK_DAY.format(*stale).encode())
    if stale not in db.execute(schema.STALE_DAYS.encode()).fetchall():
        return  # written to meanwhile
    last = db.execute(schema.LAST_FLUSH).fetchone()
    db.execute(schema.EMPTY_DAY.format(*stale).encode())
    if last is not None:
        db.execute(schema.PUT_FLUSH, last)  # which changes nothing where it still is


def _is_ours(db: psycopg.Connection[Any]) -> bool:
    """Say whether merging and forgetting are ours until the transaction ends."""
    query = "SELECT pg_try_advisory_xact_lock(%s, %s)"
    return db.execute(query, (schema.LOCKS, schema.MERGING)).fetchone() == (True,)


def _keys(keys: Sequence[tuple[Any, ...]]) -> tuple[bytes, bytes]:
    """Return the devices and the streams of keys as arrays."""
    return texts([key[0] for key in keys]), bigints([key[1] for key in keys])


def _joined(found: psycopg.Cursor[Any] | None) -> Iterator[tuple[Any, ...]]:
    """Give key, further texts and blob of the rows that a statement joined to one; none of none."""
    row = None if found is None else found.fetchone()
    if row is None or row[0] is None:
        return iter(())
    devices, streams, *more, sizes, joined = row
    keys = zip(devices.split("\n"), map(int, streams.split()), strict=True)
    return zip(keys, *(one.split("\n") for one in more), split_blobs(joined, sizes), strict=True)


def _members(found: psycopg.Cursor[Any]) -> dict[str, Member]:
    """Return what was decided of the devices that have a row, of plain ones _PLAIN itself."""
    known: dict[str, Member] = {}
    for names, *decided in found:
        member = Member(*decided)
        known.update(dict.fromkeys(names.split("\n"), _PLAIN if member == _PLAIN else member))
    return known


def _write_records(
    db: psycopg.Connection[Any], known: Known, records: Mapping[Key, Record | Row]
) -> None:
    for statement, is_known in ((schema.PUT_RECORDS, True), (schema.NEW_RECORDS, False)):
        keys = sorted([key for key in records if (key in known.records) is is_known])
        if keys:
            packed = [
                pack_record(one) if isinstance(one, Record) else pack_row(one)
                for one in map(records.__getitem__, keys)
            ]
            db.execute(statement, (*_keys(keys), blobs(packed)))


def _write_sums(db: psycopg.Connection[Any], changes: Changes) -> None:
    counts = [
        (*cell, changes.reporters.get(cell, NOBODY), pack_pairs(codes, found))
        for *key, codes, found in changes.tally.buckets()
        for cell in [cast("Cell", tuple(key))]
    ]
    if counts:
        db.execute(schema.ADD_COUNTS, schema.columns(counts, 7))
    presence = [(*key, slots) for key, slots in changes.presence.items()]
    if presence:
        db.execute(schema.ADD_PRESENCE, schema.columns(presence, 5))
    refused = [(str(reason), stream, *n) for (reason, stream), n in changes.refused.items()]
    if refused:
        db.execute(schema.ADD_REFUSED, schema.columns(refused, 4))


def _write_held(db: psycopg.Connection[Any], device: str, held: HeldCounts) -> None:
    """Add to what is kept of a device that is held; rows of it are few."""
    added = {
        (stream, epoch, group, bucket): (codes, counts)
        for stream, epoch, group, _, bucket, codes, counts in held.tally.buckets()
    }
    keys = schema.columns(sorted(added), 4)
    for *key, blob in db.execute(schema.LOCK_HELD, (device, *keys), binary=True).fetchall():
        place = tuple(key)
        added[place] = add_pairs(added[place], unpack_pairs(blob))
    db.execute(schema.PUT_HELD, (device, *keys, [pack_pairs(*added[key]) for key in sorted(added)]))
    presence = [(*key[:3], slots) for key, slots in sorted(held.presence.items())]
    db.execute(schema.ADD_HELD_PRESENCE, (device, *schema.columns(presence, 4)))


def rows_told(db: psycopg.Connection[Any], query: str, values: tuple[Any, ...]) -> list[Any]:
    """Return the rows of a statement with ? in the place of values."""
    done = db.execute(query.replace("?", "%s").encode(), values, binary=True)
    return done.fetchall() if query.startswith("SELECT") else []


def _write_released(db: psycopg.Connection[Any], arrivals: Iterable[ReleasedArrival]) -> None:
    """Store frames of curated streams that count; what a chunk was first stands."""
    for arrival in arrivals:
        frame = arrival.frame
        block = frame.design.encode()
        db.execute(
            "INSERT INTO released_designs (design) VALUES (%s) ON CONFLICT DO NOTHING", (block,)
        )
        chunk = frame.position // frame.design.chunk
        db.execute(
            """INSERT INTO released_chunks SELECT %s, %s, %s, %s, %s, id FROM released_designs
            WHERE design = %s ON CONFLICT DO NOTHING""",
            (arrival.device, frame.key, frame.series, chunk, frame.theta, block),
        )
        places = list(range(frame.position, frame.position + len(frame.values)))
        db.execute(
            """INSERT INTO released_values SELECT %s, %s, slot, %s, place, value FROM
            unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS new (slot, place, value)
            ON CONFLICT DO NOTHING""",
            (arrival.device, frame.key, frame.series, list(frame.slots), places, [*frame.values]),
        )
