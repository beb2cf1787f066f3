"""Reading an aggregator's PostgreSQL store, also while workers write to it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any, Self
from uuid import UUID

import psycopg
from psycopg import errors

from aggregator.counting.records import Doubt, Key, Record
from aggregator.counting.tally import CountRows
from aggregator.errors import OldStoreError, StoreError
from aggregator.store.contract import LAST_BUCKET
from aggregator.store.flush_ids import flush_day
from aggregator.store.packed_records import sum_records, unpack_record
from aggregator.store.postgres import schema as tables
from aggregator.store.postgres import statements as schema
from aggregator.store.postgres.link import DAMAGED, check, connect, end_silent, translate
from aggregator.store.reader import Reader
from aggregator.store.rows import ReportSum
from aggregator.store.shared_reads import WHOSE, added_up
from aggregator.store.store_thread import one_ahead
from edge_ldp.errors import RowError
from edge_ldp.protocol.released import FIRST_KEY

PAGE = 10_000  # records fetched at a time


class PostgresReader(Reader):
    """A view of the store; connects when needed, and again after the connection was lost."""

    VALUE = "%s"
    COUNTED: tuple[str, ...] = ("counts", "count_deltas")
    PRESENT: tuple[str, ...] = ("presence", "presence_deltas")
    REFUSED: tuple[str, ...] = ("refused", "refused_deltas")
    # nobody waits for it, so it may think longer than a writer
    SNAPSHOT = """BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
        SET LOCAL idle_in_transaction_session_timeout = '10min'"""

    def __init__(self, url: str, password: str | None = None) -> None:
        self.where = url
        self._password = password
        self._db: psycopg.Connection[Any] | None = None

    @classmethod
    def open(cls, url: str, password: str | None = None) -> Self:
        """Return a reader; raises StoreError when there is no usable store."""
        return cls(url, password).opened()

    def prepare(self) -> None:
        """Look whether there is a store of our version."""
        with self.reading() as db:
            version = check(db, self.where)
        if version < tables.VERSION:
            remedy = "start `edge-ldp aggregator run`: it makes or upgrades it"
            raise OldStoreError(self.where, version, tables.VERSION, remedy)

    def totals(
        self,
        stream: int,
        first_bucket: int = 0,
        last_bucket: int = LAST_BUCKET,
        group: int | None = None,
    ) -> CountRows:
        """Return the counts of a stream, the buckets first..last added up."""
        rows = self._histograms(stream, first_bucket, last_bucket, group)
        with self.reading():
            return added_up((epoch, whose, blob) for epoch, _, whose, _, blob in rows)

    def records(self) -> Iterator[tuple[Key, Record]]:
        """Yield every device's and stream's record, by key."""
        query = f"""SELECT device, stream, record FROM records
            WHERE (device, stream) > (%s, %s) ORDER BY device, stream LIMIT {PAGE}"""  # noqa: S608 (our own number)
        last: Key = ("", -1)
        while rows := self._rows(query, last):
            with self.reading():
                found = [((row[0], row[1]), unpack_record(row[2])) for row in rows]
            yield from found
            last = found[-1][0]

    def report_sums(self) -> list[ReportSum]:
        """Return all records added up, of devices alike; each is a blob: they are added here."""
        query = """SELECT stream, grp, held_s IS NOT NULL, count(*), string_agg(record, '')
            FROM records LEFT JOIN devices
            ON devices.device = records.device AND devices.device BETWEEN %s AND %s
            WHERE (records.device, stream) > (%s, %s) AND (records.device, stream) <= (%s, %s)
            GROUP BY 1, 2, 3"""
        pages = (
            self._rows(query, (before[0], last[0], *before, *last))
            for before, last in self._pages()
        )
        sums: dict[tuple[Any, ...], list[int]] = {}
        for *key, records, blobs in chain.from_iterable(one_ahead(pages)):
            with self.reading():
                found = list(sum_records(blobs, records))
            for first, final, row in found:
                old = sums.setdefault((*key, first, final), [0] * len(row))
                sums[*key, first, final] = [a + b for a, b in zip(old, row, strict=True)]
        return [ReportSum(*key, *found) for key, found in sums.items()]

    def _pages(self) -> Iterator[tuple[Key, Key]]:
        """Yield the key before each page of records and that of its last, page by page."""
        beyond = "SELECT device, stream FROM records WHERE (device, stream) > (%s, %s)"
        full = f"{beyond} ORDER BY device, stream OFFSET {PAGE - 1} LIMIT 1"
        rest = f"{beyond} ORDER BY device DESC, stream DESC LIMIT 1"
        last: Key = ("", -1)
        while found := self._rows(full, last) or self._rows(rest, last):
            yield last, found[0]
            last = found[0]

    def _reports_of(self, name: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for (device, key), record in self.records():
            if key < FIRST_KEY:
                found[device] = found.get(device, 0) + int(getattr(record, name))
        return found

    def version(self) -> str:
        """Return what is another after every commit of anybody (and of other databases)."""
        return str(self._rows("SELECT pg_current_snapshot()::text")[0][0])

    def last_commit_s(self) -> int | None:
        """Return when a flush was last committed (seconds UTC), or None if never."""
        found = self._rows("SELECT max(at_s) FROM flushes")[0][0]
        return None if found is None else int(found)

    def states(self, device: str) -> list[tuple[int, Record]]:
        """Return (stream, record) of one device."""
        query = "SELECT stream, record FROM records WHERE device = %s ORDER BY 1"
        rows = self._rows(query, (device,))
        with self.reading():
            return [(stream, unpack_record(blob)) for stream, blob in rows]

    def is_served(self) -> bool | None:
        """Say whether a session holds the right to write."""
        return bool(self._rows(schema.IS_WRITTEN, (schema.LOCKS, schema.WRITING)))

    def room_bytes(self) -> int | None:
        """Return None: the disk is the server's."""
        return None

    def unwritable(self) -> str:
        """Say why we may not write, "" where we may: what the server says before anybody does."""
        read_only, closed = self._rows(
            """SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on',
            (SELECT string_agg(name, ', ') FROM unnest(%s::text[]) AS name
             WHERE NOT has_table_privilege(name, 'INSERT'))""",
            (["records", "count_deltas", "plans", "facts", "devices"],),
        )[0]
        if read_only:
            return "the server, or this user's sessions, are read-only"
        return f"this user may not write into {closed}" if closed else ""

    def committed(self, doubt: Doubt) -> bool:
        """Say whether a flush is known to be committed: one that is under way is not yet."""
        flush = UUID(bytes=doubt.flush)
        return bool(self._rows(schema.KNOWS_FLUSH, (flush_day(doubt.flush), flush, flush))[0][0])

    def close(self) -> None:
        """Let go of the connection."""
        db, self._db = self._db, None
        if db is None:
            return
        with suppress(psycopg.Error):  # the server notices a closed connection only later
            db.execute("SELECT pg_advisory_unlock_all()")
        db.close()

    @contextmanager
    def reading(self) -> Iterator[psycopg.Connection[Any]]:
        """Give the connection, opened when needed; the driver's errors become the store's."""
        try:
            if self._db is None:
                self._db = self._connect()
            yield self._db
        except psycopg.Error as exc:
            lost = self._db is None or self._db.closed
            if lost:
                self.close()
            if isinstance(exc, errors.LockNotAvailable):
                end_silent(self.where, self._password)
            raise translate(exc, self.where, lost=lost) from exc
        except RowError as exc:
            raise StoreError(self.where, f"is damaged ({exc})", DAMAGED) from exc

    def _connect(self) -> psycopg.Connection[Any]:
        return connect(self.where, self._password)

    def _rows(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with self.reading() as db:
            return db.execute(query.encode(), values, binary=True).fetchall()

    def _histograms(
        self, stream: int, first_bucket: int, last_bucket: int, group: int | None
    ) -> list[tuple[int, int, int, bytes, bytes]]:
        """Return (epoch, bucket, whose, reporters, histogram), merged or not, as of one moment."""
        query = f"""SELECT epoch, bucket, {WHOSE}, reporters, pairs FROM (
            SELECT stream, epoch, grp, cls, bucket, reporters, pairs FROM counts
            UNION ALL SELECT stream, epoch, grp, cls, bucket, reporters, pairs FROM count_deltas
        ) AS every WHERE stream = %s AND bucket BETWEEN %s AND %s
        AND grp = coalesce(%s::integer, grp)"""  # noqa: S608 (our own words)
        return self._rows(query, (stream, first_bucket, last_bucket, group))
