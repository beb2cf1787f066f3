"""The tables of the PostgreSQL store; histograms lie in them as in SQLite, a record is one blob.

What every flush adds to (counts, presence, refusals) is appended as delta rows, so that workers
never wait for each other there; `MERGE` folds them into the rows that readers add them to anyway.
"""

from __future__ import annotations

from typing import Any

VERSION = 2
LOCKS = 0x4C445041  # "LDPA": the class of our advisory locks; the second number says what for
TURNS, WORKERS = LOCKS + 1, LOCKS + 2  # classes whose second number is a hash of a name
MIGRATING, MERGING, WRITING, LEADING, MEMBERS = 1, 2, 3, 4, 5
MERGE_EVERY = 64  # flushes of one writer
KEEP_FLUSHES = "1 day"  # an unknown commit is asked for within seconds of the server's return

_RECORD_TYPES = {  # of version 1
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
OLD_RECORD = ", ".join(_RECORD_TYPES)
_RECORD_COLUMNS = ", ".join(
    f"{name} {kind}{'' if name == 'first_slot' else ' NOT NULL'}"
    for name, kind in _RECORD_TYPES.items()
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
_SECOND = (
    # groups of devices: in the key of what is counted, last, so that a bucket's rows lie together
    "CREATE TABLE groups (id integer PRIMARY KEY, name text NOT NULL UNIQUE)",
    "INSERT INTO groups VALUES (0, '')",
    """ALTER TABLE devices ADD COLUMN grp integer NOT NULL DEFAULT 0,
        ADD COLUMN enrolled_s bigint, ADD COLUMN revoked_s bigint, ADD COLUMN held_s bigint,
        ADD COLUMN cleared_s bigint""",
    """ALTER TABLE counts ADD COLUMN grp integer NOT NULL DEFAULT 0,
        DROP CONSTRAINT counts_pkey, ADD PRIMARY KEY (stream, epoch, bucket, grp)""",
    "ALTER TABLE count_deltas ADD COLUMN grp integer NOT NULL DEFAULT 0",
    """ALTER TABLE presence ADD COLUMN grp integer NOT NULL DEFAULT 0,
        DROP CONSTRAINT presence_pkey, ADD PRIMARY KEY (stream, bucket, grp)""",
    "ALTER TABLE presence_deltas ADD COLUMN grp integer NOT NULL DEFAULT 0",
    # the last flush of each worker that its archive's spool holds: kept however old it is
    f"CREATE TABLE spooled (worker {_NAME} PRIMARY KEY, flush uuid NOT NULL)",
    # what was counted of devices that are held: kept apart until an operator releases them
    f"""CREATE TABLE held_counts (
        device {_NAME}, stream integer NOT NULL, epoch bigint NOT NULL, grp integer NOT NULL,
        bucket bigint NOT NULL, pairs bytea NOT NULL,
        PRIMARY KEY (device, stream, epoch, bucket, grp)
    )""",
    f"""CREATE TABLE held_presence (
        device {_NAME}, stream integer NOT NULL, bucket bigint NOT NULL, grp integer NOT NULL,
        slots bigint NOT NULL, PRIMARY KEY (device, stream, bucket, grp)
    )""",
    "ALTER TABLE records RENAME TO old_records",
    "ALTER INDEX records_pkey RENAME TO old_records_pkey",
    # one blob of some 110 bytes in the place of 15 columns; its free space is for updates in place
    f"""CREATE TABLE records (
        device {_NAME}, stream integer NOT NULL, record bytea NOT NULL,
        PRIMARY KEY (device, stream)
    ) WITH (fillfactor = 85)""",
    # histograms are narrow already: neither compressed nor, up to a page, put aside
    *(
        f"ALTER TABLE {table} ALTER pairs SET STORAGE EXTERNAL, SET (toast_tuple_target = 8160)"
        for table in ("counts", "count_deltas", "held_counts")
    ),
    # millions of ids: forgetting the oldest and finding the last must not look at all of them
    "CREATE INDEX flushes_made ON flushes (made)",
    "CREATE INDEX flushes_at_s ON flushes (at_s)",
    # how far buckets were added up, and the hours' sums (aggregator.rollup, aggregator.moments)
    """CREATE TABLE rolled (
        stream integer NOT NULL, what integer NOT NULL, until bigint NOT NULL,
        PRIMARY KEY (stream, what)
    )""",
    """CREATE TABLE sums (
        stream integer NOT NULL, bucket bigint NOT NULL, epoch bigint NOT NULL,
        grp integer NOT NULL, sums bytea NOT NULL, PRIMARY KEY (stream, bucket, epoch, grp)
    )""",
)
# What makes a store of the version before into one of this version; a new one takes every step.
STEPS = {1: _FIRST, 2: _SECOND}

LOCK_RECORDS = """SELECT device, stream, record FROM records
    WHERE (device, stream) IN (SELECT * FROM unnest(%b::text[], %b::integer[]))
    ORDER BY device, stream FOR UPDATE"""
# a record that another worker made meanwhile is an error here, and the flush is decided again
NEW_RECORDS = """INSERT INTO records
    SELECT * FROM unnest(%b::text[], %b::integer[], %b::bytea[])"""
PUT_RECORDS = """UPDATE records AS old SET record = new.record
    FROM unnest(%b::text[], %b::integer[], %b::bytea[]) AS new (device, stream, record)
    WHERE old.device = new.device AND old.stream = new.stream"""
GET_WATCHED = """SELECT device, stream, law, kept FROM watched
    WHERE (device, stream) IN (SELECT * FROM unnest(%b::text[], %b::integer[]))"""
PUT_WATCHED = """INSERT INTO watched
    SELECT * FROM unnest(%b::text[], %b::integer[], %b::text[], %b::bytea[])
    ON CONFLICT (device, stream, law) DO UPDATE SET kept = excluded.kept"""
PUT_MARKS = """INSERT INTO marks AS old
    SELECT device, stream, at_s, at_s, 1, name, seen, reports, bound, chance FROM unnest(
        %b::text[], %b::integer[], %b::bigint[], %b::text[], %b::bigint[], %b::bigint[],
        %b::double precision[], %b::double precision[]
    ) AS new (device, stream, at_s, name, seen, reports, bound, chance)
    ON CONFLICT (device, stream) DO UPDATE SET last_s = excluded.last_s, times = old.times + 1,
    name = excluded.name, seen = excluded.seen, reports = excluded.reports,
    bound = excluded.bound, chance = excluded.chance"""
CLAIM_ALONE = "SELECT pg_advisory_lock(%s, %s)"
CLAIM_SHARED = "SELECT pg_advisory_lock_shared(%s, %s)"
CLAIM_NAME = "SELECT pg_advisory_lock(%s, hashtext(%s))"
GET_ENROLLED = "SELECT devices FROM enrolled"
LOCK_ENROLLED = "SELECT devices FROM enrolled FOR UPDATE"
# With a lock: no command changes what devices are until the commit. Statements that read what it
# guards come later, so that they see it as it is.
BEGIN_FLUSH = """INSERT INTO flushes (id, at_s)
    SELECT %s::uuid, %s::bigint FROM pg_advisory_xact_lock_shared(%s, %s)
    ON CONFLICT DO NOTHING RETURNING 1"""
TRY_FLUSH = "INSERT INTO flushes (id, at_s) VALUES (%s, 0) ON CONFLICT DO NOTHING"
DROP_FLUSH = "DELETE FROM flushes WHERE id = %s"
PUT_SPOOLED = """INSERT INTO spooled VALUES (%s, %s)
    ON CONFLICT (worker) DO UPDATE SET flush = excluded.flush"""
KNOWS_FLUSH = """SELECT EXISTS (SELECT FROM flushes WHERE id = %s)
    OR EXISTS (SELECT FROM spooled WHERE flush = %s)"""
GET_DEVICES = """SELECT device, grp, revoked_s IS NOT NULL, held_s IS NOT NULL,
    cleared_s IS NOT NULL FROM devices WHERE device = ANY(%b::text[])"""
HOLD_DEVICES = "UPDATE devices SET held_s = %s WHERE device = ANY(%b::text[]) AND held_s IS NULL"
ADD_DEVICES = """WITH added AS (
        INSERT INTO devices (device, state, software, seen_s, enrolled_s)
        SELECT name, 'unknown', '', at_s, at_s FROM (SELECT %s::bigint AS at_s) AS now,
        unnest(%b::text[]) AS name ON CONFLICT DO NOTHING RETURNING 1
    ) UPDATE enrolled SET devices = devices + (SELECT count(*) FROM added)"""
PUT_STATUSES = """INSERT INTO devices (device, state, software, seen_s, enrolled_s)
    SELECT new.*, at_s, at_s FROM (SELECT %s::bigint AS at_s) AS now,
    unnest(%b::text[], %b::text[], %b::text[]) AS new
    ON CONFLICT (device) DO UPDATE SET state = excluded.state, software = excluded.software,
    seen_s = excluded.seen_s"""
ADD_COUNTS = """INSERT INTO count_deltas (stream, epoch, grp, bucket, pairs)
    SELECT * FROM unnest(%b::integer[], %b::bigint[], %b::integer[], %b::bigint[], %b::bytea[])"""
ADD_PRESENCE = """INSERT INTO presence_deltas (stream, bucket, grp, slots)
    SELECT * FROM unnest(%b::integer[], %b::bigint[], %b::integer[], %b::bigint[])"""
LOCK_HELD = """SELECT stream, epoch, grp, bucket, pairs FROM held_counts
    WHERE device = %s AND (stream, epoch, grp, bucket) IN
    (SELECT * FROM unnest(%b::integer[], %b::bigint[], %b::integer[], %b::bigint[]))
    ORDER BY stream, epoch, bucket, grp FOR UPDATE"""
PUT_HELD = """INSERT INTO held_counts SELECT %s, * FROM
    unnest(%b::integer[], %b::bigint[], %b::integer[], %b::bigint[], %b::bytea[])
    ON CONFLICT (device, stream, epoch, bucket, grp) DO UPDATE SET pairs = excluded.pairs"""
ADD_HELD_PRESENCE = """INSERT INTO held_presence AS old SELECT %s, * FROM
    unnest(%b::integer[], %b::bigint[], %b::integer[], %b::bigint[])
    ON CONFLICT (device, stream, bucket, grp) DO UPDATE SET slots = old.slots + excluded.slots"""
ADD_REFUSED = """INSERT INTO refused_deltas
    SELECT * FROM unnest(%b::text[], %b::integer[], %b::bigint[], %b::bigint[])"""
PUT_LOOK = """INSERT INTO looks VALUES (%s, %s, %s)
    ON CONFLICT (stream, at_s) DO UPDATE SET payload = excluded.payload"""

TAKE_COUNTS = "DELETE FROM count_deltas RETURNING stream, epoch, grp, bucket, pairs"
GET_COUNTS = """SELECT stream, epoch, grp, bucket, pairs FROM counts
    WHERE (stream, epoch, grp, bucket) IN
    (SELECT * FROM unnest(%b::integer[], %b::bigint[], %b::integer[], %b::bigint[]))"""
PUT_COUNTS = """INSERT INTO counts (stream, epoch, grp, bucket, pairs)
    SELECT * FROM unnest(%b::integer[], %b::bigint[], %b::integer[], %b::bigint[], %b::bytea[])
    ON CONFLICT (stream, epoch, bucket, grp) DO UPDATE SET pairs = excluded.pairs"""
MERGE = (
    """WITH gone AS (DELETE FROM presence_deltas RETURNING stream, bucket, grp, slots)
    INSERT INTO presence AS kept (stream, bucket, grp, slots)
    SELECT stream, bucket, grp, sum(slots) FROM gone GROUP BY 1, 2, 3
    ON CONFLICT (stream, bucket, grp) DO UPDATE SET slots = kept.slots + excluded.slots""",
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
