"""What one flush writes to PostgreSQL, and the folding of what flushes appended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aggregator.row_forms import pack_pairs, record_row, unpack_pairs
from aggregator.shell import postgres_schema as schema
from aggregator.tally import add_pairs

if TYPE_CHECKING:
    from collections.abc import Iterable

    import psycopg

    from aggregator.records import Changes, Key, Known, Record
    from aggregator.released import ReleasedArrival

_RECORD_WIDTH = 2 + len(schema.RECORD_TYPES)


class RacedError(Exception):
    """Another writer made a record that this flush believed to be new: decide again."""


def write(db: psycopg.Connection[Any], known: Known, changes: Changes, at_s: int) -> None:
    """Write what a flush changes, within its transaction; rows are locked in a fixed order."""
    if changes.enrolled:
        added = db.execute(schema.ADD_DEVICES, (at_s, sorted(changes.enrolled)))
        db.execute("UPDATE enrolled SET devices = devices + %s", (added.rowcount,))
    _write_records(db, known, sorted(changes.records.items(), key=lambda pair: pair[0]))
    statuses = sorted(changes.statuses.items())
    if statuses:
        told = [(device, status.state, status.software) for device, status in statuses]
        db.execute(schema.PUT_STATUSES, (at_s, *schema.columns(told, 3)))
    _write_sums(db, changes)
    watched = [(*key, kept) for key, kept in sorted(changes.watched.items())]
    if watched:
        db.execute(schema.PUT_WATCHED, schema.columns(watched, 4))
    marks = [
        (*key, at_s, mark.name, mark.seen, mark.reports, mark.bound, mark.chance)
        for key, mark in sorted(changes.marked.items())
    ]
    if marks:
        db.execute(schema.PUT_MARKS, schema.columns(marks, 8))
    _write_released(db, changes.released)


def merge(db: psycopg.Connection[Any]) -> None:
    """Fold delta rows into counts, presence and refusals, unless another writer is at it."""
    query = "SELECT pg_try_advisory_xact_lock(%s, %s)"
    if db.execute(query, (schema.LOCKS, schema.MERGING)).fetchone() != (True,):
        return
    sums: dict[tuple[int, int, int], Any] = {}

    def add(rows: Iterable[tuple[Any, ...]]) -> None:
        for *key, blob in rows:
            bucket, pairs = (key[0], key[1], key[2]), unpack_pairs(blob)
            sums[bucket] = add_pairs(sums[bucket], pairs) if bucket in sums else pairs

    add(db.execute(schema.TAKE_COUNTS, binary=True))
    if sums:
        keys = schema.columns(sorted(sums), 3)
        add(db.execute(schema.GET_COUNTS, keys, binary=True))
        db.execute(schema.PUT_COUNTS, (*keys, [pack_pairs(*sums[key]) for key in sorted(sums)]))
    for statement in schema.MERGE:
        db.execute(statement.encode())


def _write_records(
    db: psycopg.Connection[Any], known: Known, records: list[tuple[Key, Record]]
) -> None:
    rows = [record_row(*pair) for pair in records if pair[0] in known.records]
    if rows:
        db.execute(schema.PUT_RECORDS, schema.columns(rows, _RECORD_WIDTH))
    rows = [record_row(*pair) for pair in records if pair[0] not in known.records]
    if rows:
        added = db.execute(schema.NEW_RECORDS, schema.columns(rows, _RECORD_WIDTH))
        if added.rowcount != len(rows):
            raise RacedError


def _write_sums(db: psycopg.Connection[Any], changes: Changes) -> None:
    counts = [
        (stream, epoch, bucket, pack_pairs(codes, found))
        for stream, epoch, bucket, codes, found in changes.tally.buckets()
    ]
    if counts:
        db.execute(schema.ADD_COUNTS, schema.columns(counts, 4))
    presence = [(*key, slots) for key, slots in changes.presence.items()]
    if presence:
        db.execute(schema.ADD_PRESENCE, schema.columns(presence, 3))
    refused = [(str(reason), stream, *n) for (reason, stream), n in changes.refused.items()]
    if refused:
        db.execute(schema.ADD_REFUSED, schema.columns(refused, 4))


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
