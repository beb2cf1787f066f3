"""What is said to the PostgreSQL store: locks, and the statements of a flush and of a merge."""

from typing import Any

from aggregator.store.flush_ids import DAYS
from aggregator.store.rows import heard_since

LOCKS = 0x4C445041  # "LDPA": the class of our advisory locks; the second number says what for
TURNS, WORKERS, SUMS = (
    LOCKS + 1,
    LOCKS + 2,
    LOCKS + 3,
)  # classes whose second number is a hash of a name
MIGRATING, MERGING, WRITING, LEADING, MEMBERS = 1, 2, 3, 4, 5
MERGE_EVERY = 64  # flushes of one writer
KEEP_FLUSHES = "1 day"  # an unknown commit is asked for within seconds of the server's return

LOCK_RECORDS = r"""WITH locked AS (SELECT device, stream, record FROM records
    WHERE (device, stream) IN (SELECT * FROM unnest(%b::text[], %b::integer[]))
    ORDER BY device, stream FOR UPDATE)
    SELECT string_agg(device, E'\n'), string_agg(stream::text, ' '),
    string_agg(length(record)::text, ' '), string_agg(record, '') FROM locked"""
# a record that another worker made meanwhile is an error here, and the flush is decided again
NEW_RECORDS = """INSERT INTO records
    SELECT * FROM unnest(%b::text[], %b::integer[], %b::bytea[])"""
PUT_RECORDS = """UPDATE records AS old SET record = new.record
    FROM unnest(%b::text[], %b::integer[], %b::bytea[]) AS new (device, stream, record)
    WHERE old.device = new.device AND old.stream = new.stream"""
GET_WATCHED = r"""SELECT string_agg(device, E'\n'), string_agg(stream::text, ' '),
    string_agg(law, E'\n'), string_agg(length(kept)::text, ' '), string_agg(kept, '') FROM watched
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
IS_WRITTEN = """SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid = %s::bigint::oid AND objid = %s::bigint::oid LIMIT 1"""
# rising: who waits for one holds none above it
LOCK_SUMS = """SELECT pg_advisory_xact_lock(%b::integer, hash) FROM (
    SELECT DISTINCT hashtext(device) AS hash FROM unnest(%b::text[]) AS device ORDER BY 1
    ) AS every"""
CLAIM_NAME = "SELECT pg_advisory_lock(%s, hashtext(%s))"
GET_ENROLLED = "SELECT devices FROM enrolled"
LOCK_ENROLLED = "SELECT devices FROM enrolled FOR UPDATE"
# With a lock: no command changes what devices are, and no newer version the tables, until the
# commit. Statements that read what it guards come later, so that they see it as it is.
BEGIN_FLUSH = """INSERT INTO flushes (day, id, at_s)
    SELECT %s::integer, %s::uuid, %s::bigint FROM pg_advisory_xact_lock_shared(%s, %s)
    ON CONFLICT DO NOTHING RETURNING 1"""
GET_VERSION = "SELECT version FROM edge_ldp_schema"
PUT_FLUSH = "INSERT INTO flushes (day, id, at_s) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
DROP_FLUSH = "DELETE FROM flushes WHERE day = %s AND id = %s"
PUT_SPOOLED = """INSERT INTO spooled VALUES (%s, %s)
    ON CONFLICT (worker) DO UPDATE SET flush = excluded.flush"""
KNOWS_FLUSH = """SELECT EXISTS (SELECT FROM flushes WHERE day = %s AND id = %s)
    OR EXISTS (SELECT FROM spooled WHERE flush = %s)"""
GET_DEVICES = r"""SELECT string_agg(device, E'\n'), grp, revoked_s IS NOT NULL, held_s IS NOT NULL,
    cleared_s IS NOT NULL, cls FROM devices WHERE device = ANY(%b::text[])
    GROUP BY 2, 3, 4, 5, 6"""
HOLD_DEVICES = "UPDATE devices SET held_s = %s WHERE device = ANY(%b::text[]) AND held_s IS NULL"
ADD_DEVICES = """WITH added AS (
        INSERT INTO devices (device, state, software, seen_s, enrolled_s)
        SELECT name, 'unknown', '', at_s, at_s FROM (SELECT %s::bigint AS at_s) AS now,
        unnest(%b::text[]) AS name ON CONFLICT DO NOTHING RETURNING 1
    ) UPDATE enrolled SET devices = devices + (SELECT count(*) FROM added)"""
PUT_STATUSES = f"""INSERT INTO devices
    (device, state, software, refusals, health, ages, cls, seen_s, enrolled_s, heard)
    SELECT new.*, at_s, at_s, 3 FROM (SELECT %s::bigint AS at_s) AS now, unnest(%b::text[],
        %b::text[], %b::text[], %b::text[], %b::text[], %b::text[], %b::integer[]) AS new
    ON CONFLICT (device) DO UPDATE SET state = excluded.state, software = excluded.software,
    refusals = excluded.refusals, health = excluded.health, ages = excluded.ages,
    cls = CASE excluded.cls WHEN 0 THEN devices.cls ELSE excluded.cls END,
    heard = {heard_since("excluded.seen_s")}, seen_s = excluded.seen_s"""  # noqa: S608 (our own words)
ADD_COUNTS = """INSERT INTO count_deltas (stream, epoch, grp, cls, bucket, reporters, pairs)
    SELECT * FROM unnest(%b::integer[], %b::bigint[], %b::integer[], %b::integer[], %b::bigint[],
        %b::bytea[], %b::bytea[])"""
ADD_PRESENCE = """INSERT INTO presence_deltas (stream, bucket, grp, cls, slots)
    SELECT * FROM unnest(%b::integer[], %b::bigint[], %b::integer[], %b::integer[], %b::bigint[])"""
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

TAKE_COUNTS = """DELETE FROM count_deltas
    RETURNING stream, epoch, grp, cls, bucket, reporters, pairs"""
GET_COUNTS = """SELECT stream, epoch, grp, cls, bucket, reporters, pairs FROM counts
    WHERE (stream, epoch, grp, cls, bucket) IN (SELECT * FROM
    unnest(%b::integer[], %b::bigint[], %b::integer[], %b::integer[], %b::bigint[]))"""
PUT_COUNTS = """INSERT INTO counts (stream, epoch, grp, cls, bucket, reporters, pairs)
    SELECT * FROM unnest(%b::integer[], %b::bigint[], %b::integer[], %b::integer[], %b::bigint[],
        %b::bytea[], %b::bytea[])
    ON CONFLICT (stream, epoch, bucket, grp, cls) DO UPDATE
    SET reporters = excluded.reporters, pairs = excluded.pairs"""
MERGE = (
    """WITH gone AS (DELETE FROM presence_deltas RETURNING stream, bucket, grp, cls, slots)
    INSERT INTO presence AS kept (stream, bucket, grp, cls, slots)
    SELECT stream, bucket, grp, cls, sum(slots) FROM gone GROUP BY 1, 2, 3, 4
    ON CONFLICT (stream, bucket, grp, cls) DO UPDATE SET slots = kept.slots + excluded.slots""",
    """WITH gone AS (DELETE FROM refused_deltas RETURNING reason, stream, messages, reports)
    INSERT INTO refused AS kept SELECT reason, stream, sum(messages), sum(reports)
    FROM gone GROUP BY 1, 2 ON CONFLICT (reason, stream) DO UPDATE
    SET messages = kept.messages + excluded.messages, reports = kept.reports + excluded.reports""",
)
# Days of flush ids that no flush was written to for so long. Whoever's clock is wrong writes to
# another day; a day that is written to is kept whole, for then one cannot tell what is asked for.
STALE_DAYS = " UNION ALL ".join(
    f"""SELECT {day} AS day WHERE EXISTS (SELECT FROM flushes_{day}) AND coalesce((
        SELECT made FROM flushes_{day} WHERE made < now() + interval '{KEEP_FLUSHES}'
        ORDER BY made DESC LIMIT 1
    ) < now() - interval '{KEEP_FLUSHES}', true)"""  # noqa: S608 (our own constants)
    for day in range(DAYS)
)
LOCK_DAY = "LOCK TABLE flushes_{} IN ACCESS EXCLUSIVE MODE NOWAIT"
EMPTY_DAY = "TRUNCATE flushes_{}"
LAST_FLUSH = "SELECT day, id, at_s FROM flushes ORDER BY at_s DESC LIMIT 1"


def columns(rows: list[tuple[Any, ...]], width: int) -> list[list[Any]]:
    """Return rows as so many columns, also when there are none."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]
