"""The tables of the PostgreSQL store, from one version to the next.

Histograms lie in them as in SQLite (aggregator.store.forms), a record is one blob. What every flush
adds to (counts, presence, refusals) is appended as delta rows, so that workers never wait for each
other there; `postgres_schema.MERGE` folds them into the rows that readers add them to anyway.
"""

from aggregator.store.flush_ids import DAY_MS, DAYS

VERSION = 8
_RECORD = """highest bigint NOT NULL, last_slot bigint NOT NULL, floor bigint NOT NULL,
        gaps bytea NOT NULL, digests bytea NOT NULL, first_slot bigint, counted bigint NOT NULL,
        rejected bigint NOT NULL, duplicates bigint NOT NULL, conflicts bigint NOT NULL,
        created bigint NOT NULL, expired bigint NOT NULL, first bigint NOT NULL,
        next bigint NOT NULL, before bigint NOT NULL"""  # of version 1
OLD_RECORD = ", ".join(column.split()[0] for column in _RECORD.split(","))
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
        device {_NAME}, stream integer NOT NULL, {_RECORD}, PRIMARY KEY (device, stream)
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
    # how far buckets were added up, and the hours' sums (counting.rollup, aggregator.store.moments)
    """CREATE TABLE rolled (
        stream integer NOT NULL, what integer NOT NULL, until bigint NOT NULL,
        PRIMARY KEY (stream, what)
    )""",
    """CREATE TABLE sums (
        stream integer NOT NULL, bucket bigint NOT NULL, epoch bigint NOT NULL,
        grp integer NOT NULL, sums bytea NOT NULL, PRIMARY KEY (stream, bucket, epoch, grp)
    )""",
)
# Ids of flushes in a ring of days, each of which is emptied at once: TRUNCATE in the place of
# millions of single deletions. What day an id is of, it says itself (counting.flush_ids).
_DAY = f"('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / {DAY_MS} % {DAYS}"
_THIRD = (
    "ALTER TABLE flushes RENAME TO old_flushes",
    "ALTER INDEX flushes_pkey RENAME TO old_flushes_pkey",
    "DROP INDEX flushes_made, flushes_at_s",
    """CREATE TABLE flushes (
        day integer NOT NULL, id uuid NOT NULL, at_s bigint NOT NULL,
        made timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (day, id)
    ) PARTITION BY LIST (day)""",
    *(
        f"CREATE TABLE flushes_{day} PARTITION OF flushes FOR VALUES IN ({day})"
        for day in range(DAYS)
    ),
    "CREATE INDEX flushes_made ON flushes (made)",
    "CREATE INDEX flushes_at_s ON flushes (at_s)",
    f"INSERT INTO flushes SELECT {_DAY}, id, at_s, made FROM old_flushes",  # noqa: S608 (our own constants)
    "DROP TABLE old_flushes",
)
_FOURTH = ("ALTER TABLE devices ADD COLUMN refusals text NOT NULL DEFAULT ''",)
_FIFTH = (
    # what operators changed; kept for ever
    """CREATE TABLE audit (
        id bigint PRIMARY KEY, at_s bigint NOT NULL, who text NOT NULL, command text NOT NULL
    )""",
    # how a device is, as its last status told it
    """ALTER TABLE devices ADD COLUMN health text NOT NULL DEFAULT '',
        ADD COLUMN ages text NOT NULL DEFAULT ''""",
)
_WHO = "ADD COLUMN cls integer NOT NULL DEFAULT 0, ADD COLUMN reporters bytea NOT NULL DEFAULT ''"
_SIXTH = (  # a record's series lie in its blob
    # who reported (counting.reporters; '': not known), and how often devices may (counting.classes)
    "ALTER TABLE devices ADD COLUMN cls integer NOT NULL DEFAULT 0",
    f"""ALTER TABLE counts {_WHO}, DROP CONSTRAINT counts_pkey,
        ADD PRIMARY KEY (stream, epoch, bucket, grp, cls)""",
    f"ALTER TABLE count_deltas {_WHO}",
    """ALTER TABLE presence ADD COLUMN cls integer NOT NULL DEFAULT 0,
        DROP CONSTRAINT presence_pkey, ADD PRIMARY KEY (stream, bucket, grp, cls)""",
    "ALTER TABLE presence_deltas ADD COLUMN cls integer NOT NULL DEFAULT 0",
    f"""ALTER TABLE sums {_WHO}, DROP CONSTRAINT sums_pkey,
        ADD PRIMARY KEY (stream, bucket, epoch, grp, cls)""",
)
_SEVENTH = (
    # homes' sums of a period as they came, one a device and period, and what they add up to
    f"""CREATE TABLE period_sums (
        device {_NAME}, name {_NAME}, first_s bigint NOT NULL, end_s bigint NOT NULL,
        grp integer NOT NULL, held integer NOT NULL, payload bytea NOT NULL,
        PRIMARY KEY (device, name, first_s)
    )""",
    f"""CREATE TABLE period_totals (
        name {_NAME}, first_s bigint NOT NULL, end_s bigint NOT NULL, layout {_NAME},
        grp integer NOT NULL, total text NOT NULL, PRIMARY KEY (name, first_s, end_s, layout, grp)
    ) WITH (fillfactor = 50)""",
)
_EIGHTH = (  # days on which a status came (aggregator.store.rows.DeviceRow), from now on
    "ALTER TABLE devices ADD COLUMN heard bigint NOT NULL DEFAULT 2",
    "UPDATE devices SET heard = 3 WHERE state <> 'unknown'",
)
# What makes a store of the version before into one of this version; a new one takes every step.
_STEPS = (_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH, _SIXTH, _SEVENTH, _EIGHTH)
STEPS = dict(enumerate(_STEPS, 1))
