"""The tables of the PostgreSQL store; records and histograms lie in them as they do in SQLite.

What every flush adds to (counts, presence, refusals) is appended as delta rows, so that workers
never wait for each other there; `MERGE` folds them into the rows that readers add them to anyway.
"""

from __future__ import annotations

from typing import Any

VERSION = 1
LOCKS = 0x4C445041  # "LDPA": the class of our advisory locks; the second number says what for
MIGRATING, MERGING, WRITING, LEADING = 1, 2, 3, 4
MERGE_EVERY = 64  # flushes of one writer
KEEP_FLUSHES = "7 days"  # an unknown commit is asked for within seconds of the server's return

RECORD_TYPES = {
    "highest": "bigint",
    "last_slot": "bigint",
    "floor": "bigint",
    "gaps": "bytea",
    "digests": "bytea",
    "first_slot": "bigint",
    "counted": "bigint",
    "rejected": "bigint",
    "duplicates": "bigint",
    "conflicts": "bigint",
    "created": "bigint",
    "expired": "bigint",
    "first": "bigint",
    "next": "bigint",
    "before": "bigint",
}
RECORD = ", ".join(RECORD_TYPES)
_RECORD_COLUMNS = ", ".join(
    f"{name} {kind}{'' if name == 'first_slot' else ' NOT NULL'}"
    for name, kind in RECORD_TYPES.items()
)
_NAME = 'text COLLATE "C" NOT NULL'  # sorts as Python does: locks are taken in one order

_FIRST = (
    "CREATE TABLE facts (name text PRIMARY KEY, value text NOT NULL)",
    # one row for each transaction that may have to be asked for after a lost connection
    """CREATE TABLE flushes (
        id uuid PRIMARY KEY, at_s bigint NOT NULL, made timestamptz NOT NULL DEFAULT now()
    )""",
    f"""CREATE TABLE devices (
        device {_NAME} PRIMARY KEY, state text NOT NULL, software text NOT NULL,
        seen_s bigint NOT NULL
    ) WITH (fillfactor = 80)""",
    # its one row is locked by whoever enrols, so that the limit is exact with several workers
    "CREATE TABLE enrolled (devices bigint NOT NULL)",
    "INSERT INTO enrolled VALUES (0)",
    f"""CREATE TABLE records (
        device {_NAME}, stream integer NOT NULL, {_RECORD_COLUMNS}, PRIMARY KEY (device, stream)
    ) WITH (fillfactor = 70)""",
    """CREATE TABLE counts (
        stream integer NOT NULL, epoch bigint NOT NULL, bucket bigint NOT NULL,
        pairs bytea NOT NULL, PRIMARY KEY (stream, epoch, bucket)
    )""",
    """CREATE TABLE count_deltas (
        stream integer NOT NULL, epoch bigint NOT NULL, bucket bigint NOT NULL,
        pairs bytea NOT NULL
    )""",
    """CREATE TABLE presence (
        stream integer NOT NULL, bucket bigint NOT NULL, slots bigint NOT NULL,
        PRIMARY KEY (stream, bucket)
    )""",
    """CREATE TABLE presence_deltas (
        stream integer NOT NULL, bucket bigint NOT NULL, slots bigint NOT NULL
    )""",
    f"""CREATE TABLE refused (
        reason {_NAME}, stream integer NOT NULL, messages bigint NOT NULL, reports bigint NOT NULL,
        PRIMARY KEY (reason, stream)
    )""",
    f"""CREATE TABLE refused_deltas (
        reason {_NAME}, stream integer NOT NULL, messages bigint NOT NULL, reports bigint NOT NULL
    )""",
    """CREATE TABLE plans (
        stream integer NOT NULL, epoch bigint NOT NULL, issued_s bigint NOT NULL,
        payload bytea NOT NULL, PRIMARY KEY (stream, epoch)
    )""",
    """CREATE TABLE looks (
        stream integer NOT NULL, at_s bigint NOT NULL, payload bytea NOT NULL,
        PRIMARY KEY (stream, at_s)
    )""",
    f"""CREATE TABLE watched (
        device {_NAME}, stream integer NOT NULL, law {_NAME}, kept bytea NOT NULL,
        PRIMARY KEY (device, stream, law)
    ) WITH (fillfactor = 70)""",
    f"""CREATE TABLE marks (
        device {_NAME}, stream integer NOT NULL, first_s bigint NOT NULL, last_s bigint NOT NULL,
        times bigint NOT NULL, name text NOT NULL, seen bigint NOT NULL, reports bigint NOT NULL,
        bound double precision NOT NULL, chance double precision NOT NULL,
        PRIMARY KEY (device, stream)
    )""",
    """CREATE TABLE released_designs (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, design bytea NOT NULL UNIQUE
    )""",
    f"""CREATE TABLE released_chunks (
        device {_NAME}, stream integer NOT NULL, series bigint NOT NULL, chunk bigint NOT NULL,
        theta bigint NOT NULL, design bigint NOT NULL REFERENCES released_designs (id),
        PRIMARY KEY (device, stream, series, chunk)
    )""",
    f"""CREATE TABLE released_values (
        device {_NAME}, stream integer NOT NULL, slot bigint NOT NULL, series bigint NOT NULL,
        position bigint NOT NULL, value bigint NOT NULL, PRIMARY KEY (device, stream, slot)
    )""",
)
# What makes a store of the version before into one of this version; a new one takes every step.
STEPS = {1: _FIRST}

_GIVEN = ", ".join(f"%s::{kind}[]" for kind in RECORD_TYPES.values())
LOCK_RECORDS = f"""SELECT device, stream, {RECORD} FROM records
    WHERE (device, stream) IN (SELECT * FROM unnest(%s::text[], %s::integer[]))
    ORDER BY device, stream FOR UPDATE"""  # noqa: S608 (our own columns)
NEW_RECORDS = f"""INSERT INTO records (device, stream, {RECORD})
    SELECT * FROM unnest(%s::text[], %s::integer[], {_GIVEN})
    ON CONFLICT DO NOTHING"""  # noqa: S608 (our own columns)
PUT_RECORDS = f"""UPDATE records AS old SET ({RECORD}) = ROW ({
    ", ".join(f"new.{name}" for name in RECORD_TYPES)
}) FROM unnest(%s::text[], %s::integer[], {_GIVEN}) AS new (device, stream, {RECORD})
    WHERE old.device = new.device AND old.stream = new.stream"""  # noqa: S608 (our own columns)
GET_WATCHED = """SELECT device, stream, law, kept FROM watched
    WHERE (device, stream) IN (SELECT * FROM unnest(%s::text[], %s::integer[]))"""
PUT_WATCHED = """INSERT INTO watched
    SELECT * FROM unnest(%s::text[], %s::integer[], %s::text[], %s::bytea[])
    ON CONFLICT (device, stream, law) DO UPDATE SET kept = excluded.kept"""
PUT_MARKS = """INSERT INTO marks AS old
    SELECT device, stream, at_s, at_s, 1, name, seen, reports, bound, chance FROM unnest(
        %s::text[], %s::integer[], %s::bigint[], %s::text[], %s::bigint[], %s::bigint[],
        %s::double precision[], %s::double precision[]
    ) AS new (device, stream, at_s, name, seen, reports, bound, chance)
    ON CONFLICT (device, stream) DO UPDATE SET last_s = excluded.last_s, times = old.times + 1,
    name = excluded.name, seen = excluded.seen, reports = excluded.reports,
    bound = excluded.bound, chance = excluded.chance"""
CLAIM_ALONE = "SELECT pg_advisory_lock(%s, %s)"
CLAIM_SHARED = "SELECT pg_advisory_lock_shared(%s, %s)"
GET_ENROLLED = "SELECT devices FROM enrolled"
LOCK_ENROLLED = "SELECT devices FROM enrolled FOR UPDATE"
GET_DEVICES = "SELECT device FROM devices WHERE device = ANY(%s::text[])"
ADD_DEVICES = """INSERT INTO devices SELECT name, 'unknown', '', %s FROM unnest(%s::text[]) AS name
    ON CONFLICT DO NOTHING"""
PUT_STATUSES = """INSERT INTO devices
    SELECT *, %s::bigint FROM unnest(%s::text[], %s::text[], %s::text[])
    ON CONFLICT (device) DO UPDATE SET state = excluded.state, software = excluded.software,
    seen_s = excluded.seen_s"""
ADD_COUNTS = """INSERT INTO count_deltas
    SELECT * FROM unnest(%s::integer[], %s::bigint[], %s::bigint[], %s::bytea[])"""
ADD_PRESENCE = """INSERT INTO presence_deltas
    SELECT * FROM unnest(%s::integer[], %s::bigint[], %s::bigint[])"""
ADD_REFUSED = """INSERT INTO refused_deltas
    SELECT * FROM unnest(%s::text[], %s::integer[], %s::bigint[], %s::bigint[])"""
PUT_LOOK = """INSERT INTO looks VALUES (%s, %s, %s)
    ON CONFLICT (stream, at_s) DO UPDATE SET payload = excluded.payload"""

TAKE_COUNTS = "DELETE FROM count_deltas RETURNING stream, epoch, bucket, pairs"
GET_COUNTS = """SELECT stream, epoch, bucket, pairs FROM counts WHERE (stream, epoch, bucket) IN
    (SELECT * FROM unnest(%s::integer[], %s::bigint[], %s::bigint[]))"""
PUT_COUNTS = """INSERT INTO counts
    SELECT * FROM unnest(%s::integer[], %s::bigint[], %s::bigint[], %s::bytea[])
    ON CONFLICT (stream, epoch, bucket) DO UPDATE SET pairs = excluded.pairs"""
MERGE = (
    """WITH gone AS (DELETE FROM presence_deltas RETURNING stream, bucket, slots)
    INSERT INTO presence AS kept SELECT stream, bucket, sum(slots) FROM gone GROUP BY 1, 2
    ON CONFLICT (stream, bucket) DO UPDATE SET slots = kept.slots + excluded.slots""",
    """WITH gone AS (DELETE FROM refused_deltas RETURNING reason, stream, messages, reports)
    INSERT INTO refused AS kept SELECT reason, stream, sum(messages), sum(reports)
    FROM gone GROUP BY 1, 2 ON CONFLICT (reason, stream) DO UPDATE
    SET messages = kept.messages + excluded.messages, reports = kept.reports + excluded.reports""",
    f"""DELETE FROM flushes WHERE made < now() - interval '{KEEP_FLUSHES}'
    AND at_s < (SELECT max(at_s) FROM flushes)""",  # noqa: S608 (our own constant)
)


def columns(rows: list[tuple[Any, ...]], width: int) -> list[list[Any]]:
    """Return rows as so many columns, also when there are none."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]
