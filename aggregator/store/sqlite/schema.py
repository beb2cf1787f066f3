"""The tables of the SQLite store; how a record lies in its row: aggregator.store.forms."""

from aggregator.store.rows import heard_since

APPLICATION_ID = 0x4C445041  # "LDPA"
VERSION = 8
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
_THIRD = (
    # groups of devices: in the key of what is counted, last, so that a bucket's rows lie together
    "CREATE TABLE groups (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "INSERT INTO groups VALUES (0, '')",
    "ALTER TABLE devices ADD COLUMN grp INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE devices ADD COLUMN enrolled_s INTEGER",  # null: before there was this column
    "ALTER TABLE devices ADD COLUMN revoked_s INTEGER",
    "ALTER TABLE devices ADD COLUMN held_s INTEGER",
    "ALTER TABLE devices ADD COLUMN cleared_s INTEGER",
    "ALTER TABLE counts RENAME TO old_counts",
    """CREATE TABLE counts (
        stream INTEGER NOT NULL, epoch INTEGER NOT NULL, grp INTEGER NOT NULL,
        bucket INTEGER NOT NULL, pairs BLOB NOT NULL, PRIMARY KEY (stream, epoch, bucket, grp)
    ) WITHOUT ROWID""",
    "INSERT INTO counts SELECT stream, epoch, 0, bucket, repack_pairs(pairs) FROM old_counts",
    "DROP TABLE old_counts",
    "ALTER TABLE presence RENAME TO old_presence",
    """CREATE TABLE presence (
        stream INTEGER NOT NULL, bucket INTEGER NOT NULL, grp INTEGER NOT NULL,
        slots INTEGER NOT NULL, PRIMARY KEY (stream, bucket, grp)
    ) WITHOUT ROWID""",
    "INSERT INTO presence SELECT stream, bucket, 0, slots FROM old_presence",
    "DROP TABLE old_presence",
    # what was counted of devices that are held: kept apart until an operator releases them
    """CREATE TABLE held_counts (
        device TEXT NOT NULL, stream INTEGER NOT NULL, epoch INTEGER NOT NULL, grp INTEGER NOT NULL,
        bucket INTEGER NOT NULL, pairs BLOB NOT NULL,
        PRIMARY KEY (device, stream, epoch, bucket, grp)
    ) WITHOUT ROWID""",
    """CREATE TABLE held_presence (
        device TEXT NOT NULL, stream INTEGER NOT NULL, bucket INTEGER NOT NULL,
        grp INTEGER NOT NULL, slots INTEGER NOT NULL,
        PRIMARY KEY (device, stream, bucket, grp)
    ) WITHOUT ROWID""",
    # how far buckets were added up, and the hours' sums (counting.rollup, aggregator.store.moments)
    """CREATE TABLE rolled (
        stream INTEGER NOT NULL, what INTEGER NOT NULL, until INTEGER NOT NULL,
        PRIMARY KEY (stream, what)
    ) WITHOUT ROWID""",
    """CREATE TABLE sums (
        stream INTEGER NOT NULL, bucket INTEGER NOT NULL, epoch INTEGER NOT NULL,
        grp INTEGER NOT NULL, sums BLOB NOT NULL, PRIMARY KEY (stream, bucket, epoch, grp)
    ) WITHOUT ROWID""",
)
_FOURTH = ("ALTER TABLE devices ADD COLUMN refusals TEXT NOT NULL DEFAULT ''",)
_FIFTH = (
    # what operators changed; kept for ever
    """CREATE TABLE audit (
        id INTEGER PRIMARY KEY, at_s INTEGER NOT NULL, who TEXT NOT NULL, command TEXT NOT NULL
    )""",
    # how a device is, as its last status told it
    "ALTER TABLE devices ADD COLUMN health TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE devices ADD COLUMN ages TEXT NOT NULL DEFAULT ''",
)
_SIXTH = (
    # the series that a record's batches are of, and the series before (counting.seen_batches)
    "ALTER TABLE records ADD COLUMN series INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE records ADD COLUMN earlier BLOB NOT NULL DEFAULT x''",
    # who reported (counting.reporters; x'': not known), how often devices may (counting.classes)
    "ALTER TABLE devices ADD COLUMN cls INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE counts RENAME TO old_counts",
    """CREATE TABLE counts (
        stream INTEGER NOT NULL, epoch INTEGER NOT NULL, grp INTEGER NOT NULL,
        cls INTEGER NOT NULL, bucket INTEGER NOT NULL, reporters BLOB NOT NULL,
        pairs BLOB NOT NULL, PRIMARY KEY (stream, epoch, bucket, grp, cls)
    ) WITHOUT ROWID""",
    "INSERT INTO counts SELECT stream, epoch, grp, 0, bucket, x'', pairs FROM old_counts",
    "DROP TABLE old_counts",
    "ALTER TABLE presence RENAME TO old_presence",
    """CREATE TABLE presence (
        stream INTEGER NOT NULL, bucket INTEGER NOT NULL, grp INTEGER NOT NULL,
        cls INTEGER NOT NULL, slots INTEGER NOT NULL, PRIMARY KEY (stream, bucket, grp, cls)
    ) WITHOUT ROWID""",
    "INSERT INTO presence SELECT stream, bucket, grp, 0, slots FROM old_presence",
    "DROP TABLE old_presence",
    "ALTER TABLE sums RENAME TO old_sums",
    """CREATE TABLE sums (
        stream INTEGER NOT NULL, bucket INTEGER NOT NULL, epoch INTEGER NOT NULL,
        grp INTEGER NOT NULL, cls INTEGER NOT NULL, reporters BLOB NOT NULL, sums BLOB NOT NULL,
        PRIMARY KEY (stream, bucket, epoch, grp, cls)
    ) WITHOUT ROWID""",
    "INSERT INTO sums SELECT stream, bucket, epoch, grp, 0, x'', sums FROM old_sums",
    "DROP TABLE old_sums",
)
_SEVENTH = (
    # homes' sums of a period as they came, one a device and period, and what they add up to
    """CREATE TABLE period_sums (
        device TEXT NOT NULL, name TEXT NOT NULL, first_s INTEGER NOT NULL, end_s INTEGER NOT NULL,
        grp INTEGER NOT NULL, held INTEGER NOT NULL, payload BLOB NOT NULL,
        PRIMARY KEY (device, name, first_s)
    ) WITHOUT ROWID""",
    """CREATE TABLE period_totals (
        name TEXT NOT NULL, first_s INTEGER NOT NULL, end_s INTEGER NOT NULL,
        layout TEXT NOT NULL, grp INTEGER NOT NULL, total TEXT NOT NULL,
        PRIMARY KEY (name, first_s, end_s, layout, grp)
    ) WITHOUT ROWID""",
)
_EIGHTH = (  # days on which a status came (aggregator.store.rows.DeviceRow), from now on
    "ALTER TABLE devices ADD COLUMN heard INTEGER NOT NULL DEFAULT 2",
    "UPDATE devices SET heard = 3 WHERE state <> 'unknown'",
)
# What makes a store of the version before into one of this version; a new one takes every step.
_STEPS = (_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH, _SIXTH, _SEVENTH, _EIGHTH)
STEPS = dict(enumerate(_STEPS, 1))
# of counting.record_rows
RECORD = """device, stream, highest, last_slot, floor, gaps, digests, series, earlier,
    first_slot, counted, rejected, duplicates, conflicts, created, expired, first, next, before"""
PUT_RECORD = f"""INSERT OR REPLACE INTO records ({RECORD})
    VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"""  # noqa: S608 (our own columns)
# what `follow` changes, and whose: all columns take half as much again
FOLLOWED = ("highest", "last_slot", "digests", "first_slot", "counted", "device", "stream")
PUT_FOLLOWED = """UPDATE records
    SET highest = ?, last_slot = ?, digests = ?, first_slot = ?, counted = ?
    WHERE device = ? AND stream = ?"""
PUT_STATUS = f"""INSERT INTO devices
    (device, state, software, refusals, health, ages, cls, seen_s, enrolled_s, heard)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, 3) ON CONFLICT (device) DO UPDATE
    SET state = excluded.state, software = excluded.software, refusals = excluded.refusals,
    health = excluded.health, ages = excluded.ages, seen_s = excluded.seen_s,
    heard = {heard_since("excluded.seen_s")},
    cls = CASE excluded.cls WHEN 0 THEN devices.cls ELSE excluded.cls END"""  # noqa: S608 (our own words)
ADD_DEVICE = """INSERT OR IGNORE INTO devices (device, state, software, seen_s, enrolled_s)
    VALUES (?1, 'unknown', '', ?2, ?2)"""
HOLD_DEVICE = "UPDATE devices SET held_s = ? WHERE device = ? AND held_s IS NULL"
# of many devices at once, named in JSON: half the time of a statement for each
GET_DEVICES = """SELECT device,
    grp = 0 AND cls = 0 AND coalesce(revoked_s, held_s, cleared_s) IS NULL,
    grp, revoked_s IS NOT NULL, held_s IS NOT NULL, cleared_s IS NOT NULL, cls
    FROM json_each(?) CROSS JOIN devices ON device = value"""
GET_RECORDS = f"""SELECT {RECORD}
    FROM json_each(?) CROSS JOIN records ON device = value AND stream = ?"""  # noqa: S608 (our own columns)
GET_WATCHED = """SELECT device, law, kept
    FROM json_each(?) CROSS JOIN watched ON device = value AND stream = ?"""
GET_PAIRS = """SELECT reporters, pairs FROM counts
    WHERE stream = ? AND epoch = ? AND grp = ? AND cls = ? AND bucket = ?"""
# of many buckets at once, in JSON
GET_BUCKETS = """SELECT bucket, reporters, pairs FROM json_each(?) CROSS JOIN counts
    ON stream = ? AND epoch = ? AND grp = ? AND cls = ? AND bucket = value"""
GET_HELD_BUCKETS = """SELECT bucket, pairs FROM json_each(?) CROSS JOIN held_counts
    ON device = ? AND stream = ? AND epoch = ? AND grp = ? AND bucket = value"""
PUT_PAIRS = "INSERT OR REPLACE INTO counts VALUES (?, ?, ?, ?, ?, ?, ?)"
ADD_PRESENCE = """INSERT INTO presence (stream, bucket, grp, cls, slots) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (stream, bucket, grp, cls) DO UPDATE SET slots = slots + excluded.slots"""
PUT_HELD_PAIRS = "INSERT OR REPLACE INTO held_counts VALUES (?, ?, ?, ?, ?, ?)"
ADD_HELD_PRESENCE = """INSERT INTO held_presence (device, stream, bucket, grp, slots)
    VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (device, stream, bucket, grp) DO UPDATE SET slots = slots + excluded.slots"""
ADD_REFUSED = """INSERT INTO refused VALUES (?, ?, ?, ?) ON CONFLICT (reason, stream) DO UPDATE
    SET messages = messages + excluded.messages, reports = reports + excluded.reports"""
PUT_WATCHED = "INSERT OR REPLACE INTO watched VALUES (?, ?, ?, ?)"
PUT_MARK = """INSERT INTO marks VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?)
    ON CONFLICT (device, stream) DO UPDATE SET last_s = excluded.last_s, times = times + 1,
    name = excluded.name, seen = excluded.seen, reports = excluded.reports,
    bound = excluded.bound, chance = excluded.chance"""
# never back: time buckets that were closed stay closed, whatever a clock says later
PUT_COMMITTED = """INSERT INTO facts VALUES ('committed_s', ?) ON CONFLICT (name) DO UPDATE
    SET value = max(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER))"""
