"""The agent's one file: ledger, waiting reports and packed batches, in SQLite; plans beneath.

One synchronous commit per slot holds the claim and its reports, so that no crash randomises a slot
twice (docs/design.md, Privacy model). Only codes are ever written here, never a reading or a value.
512-byte pages and grouped deletions keep the bytes written to flash small.
"""

from collections.abc import Iterable, Sequence

from agent.claims.batches import Batch, BatchSeries, Key, Numbering
from agent.claims.elapsed import Elapsed, decode_elapsed
from agent.claims.pipeline import Claim, Report
from agent.claims.rollback import Told
from agent.errors import StorageError
from agent.state.journal_schema import (
    WITH_ELAPSED,
    WITH_SERIES,
    WITH_SHED,
    WITH_SUMS,
    has_curators,
    numberings,
    series_of_streams,
)
from agent.state.plan_journal import PlanJournal
from edge_ldp.protocol.ledger import Ledger, parse_ledger
from edge_ldp.protocol.messages import OLD_SERIES, StreamStatus
from edge_ldp.protocol.strict_json import MessageError

WAITING_BYTES = 16  # what a waiting report and a batch's row count beside the batch's bytes
ROW_BYTES = 32
KNOWN_SERIES = 1 + OLD_SERIES  # of a stream; no more than an aggregator tells of
_KEPT = (
    "SELECT stream, sum(reports) FROM (SELECT stream, reports FROM batches"
    " UNION ALL SELECT stream, 1 FROM waiting UNION ALL SELECT stream, 1 FROM released)"
    " GROUP BY stream"
)


class Journal(PlanJournal):
    """What the state file holds; every method is one transaction. Raises as JournalFile."""

    def ledger(self) -> Ledger | None:
        """Return the stored ledger, or None when there is none.

        A damaged one is none to the agent, which counts the window as spent. To a mere reader it is
        a StorageError: nobody may be told that nothing was spent.
        """
        stored = next((value for (value,) in self.rows("SELECT value FROM ledger")), None)
        try:
            return parse_ledger(stored) if stored else None  # empty: only curators ran
        except MessageError as exc:
            if self._hold:
                return None
            reason = "its ledger is damaged: what was spent until now is unknown"
            raise StorageError(str(self.path), reason, "the agent begins a new one") from exc

    def elapsed(self) -> Elapsed | None:
        """Return the time that goes with the ledger; None in a file of an older version."""
        if self._version() < WITH_ELAPSED:
            return None
        stored = next((one for (one,) in self.rows("SELECT elapsed FROM ledger")), None)
        try:
            return decode_elapsed(stored) if stored else None
        except MessageError as exc:
            reason = "the time beside its ledger is damaged"
            raise StorageError(str(self.path), reason, "move the file away") from exc

    def save_ledger(
        self, ledger: Ledger, elapsed: Elapsed | None = None, sharing: bytes | None = None
    ) -> None:
        """Store a ledger that was opened or adopted, with its time and sharing if they changed."""
        with self.transaction() as db:
            self._put_ledger(ledger, elapsed)
            if sharing is not None:
                db.execute("INSERT OR REPLACE INTO sharing VALUES (1, ?)", (sharing,))

    def sharing(self) -> bytes:
        """Return how the window's ε was shared last (`AgentConfig.sharing`); empty: not at all."""
        if self._version() < WITH_SUMS:
            return b""
        return next((bytes(terms) for (terms,) in self.rows("SELECT terms FROM sharing")), b"")

    def save_elapsed(self, elapsed: Elapsed) -> None:
        """Store how far time has come."""
        with self.transaction() as db:
            db.execute("UPDATE ledger SET elapsed = ?", (elapsed.encode(),))

    def commit(
        self, claim: Claim | None, batches: Sequence[Batch], begun: Sequence[BatchSeries] = ()
    ) -> None:
        """Store a claim and the batches packed with it, all or nothing, synchronously.

        Reports that no batch carries wait in their table; `begun`: series that begin with it.
        """
        packed = {batch.key.stream: batch.last_slot for batch in batches}
        with self.transaction():
            if claim:
                self._put_ledger(claim.ledger, claim.elapsed)
                for report in claim.reports:
                    self.count_created(report.stream, report.slot, 1)
                    if report.slot > packed.get(report.stream, -1):
                        self._db.execute(
                            "INSERT INTO waiting VALUES (?, ?, ?, ?, ?)",
                            (report.stream, report.slot, report.epoch, report.code, report.tag),
                        )
            self.begin_series(begun)
            for batch in batches:
                self.put_batch(batch)

    def probe(self) -> None:
        """Store that nothing happened: raises StorageError while nothing can be stored."""
        with self.transaction():
            pass

    def waiting(self) -> list[Report]:
        """Return the reports not yet packed, in order of stream and slot."""
        with self.reading():
            tag = "tag" if self._version() >= WITH_SERIES else "0"
            rows = self._db.execute(
                f"SELECT stream, slot, epoch, code, {tag} FROM waiting ORDER BY stream, slot"  # noqa: S608 (our own names)
            )
            return [Report(*row) for row in rows]  # never twice in memory: there may be many

    def numbers(self) -> dict[int, Numbering]:
        """Return how each stream's next batch is numbered."""
        with self.reading() as db:
            return numberings(db)

    def series(self) -> list[BatchSeries]:
        """Return the series that are known, each stream's oldest first."""
        with self.reading() as db:
            return [one for of_stream in series_of_streams(db).values() for one in of_stream]

    def told(self) -> list[Told]:
        """Return what others told of batches that this state never made."""
        if self._version() < WITH_SERIES:
            return []
        return [Told(*row) for row in self.rows("SELECT * FROM told")]

    def keys(self) -> list[Key]:
        """Return the batches kept, oldest first."""
        rows = self.rows("SELECT stream, number FROM batches ORDER BY last_slot")
        return [Key(*row) for row in rows]

    def payload(self, key: Key) -> bytes | None:
        """Return a batch's bytes, or None when it was settled meanwhile."""
        rows = self.rows("SELECT payload FROM batches WHERE stream = ? AND number = ?", key)
        return next((bytes(payload) for (payload,) in rows), None)

    def settle(self, keys: Iterable[Key]) -> None:
        """Delete batches that a receipt covers."""
        with self.transaction(sealed=False):
            self._db.executemany("DELETE FROM batches WHERE stream = ? AND number = ?", keys)

    def expire(self, before_slot: int, slot_seconds: int) -> list[Key]:
        """Give up batches and waiting reports that are only of older slots, counted as expired.

        `slot_seconds`: that the slot is counted in, as those of waiting reports are; batches are by
        the slots of their series. Returns the keys of the batches given up.
        """
        before_s = before_slot * slot_seconds
        old = (
            "last_slot * coalesce(nullif((SELECT slot_seconds FROM series WHERE stream ="
            " batches.stream AND base < number ORDER BY base DESC), 0), ?3) < ?2"
        )
        lost = self.rows(
            f"SELECT stream, number, reports FROM batches WHERE {old} UNION ALL"  # noqa: S608 (our own names)
            " SELECT stream, NULL, count(*) FROM waiting WHERE slot < ?1 GROUP BY stream",
            (before_slot, before_s, slot_seconds),
        )
        if not lost:
            return []
        keys = [Key(stream, number) for stream, number, _ in lost if number is not None]
        with self.transaction():
            self._db.executemany("DELETE FROM batches WHERE stream = ? AND number = ?", keys)
            self._db.execute("DELETE FROM waiting WHERE slot < ?", (before_slot,))
            self.count_expired((stream, reports) for stream, _, reports in lost)
        return keys

    def shed(self, limit_bytes: int) -> list[Key]:
        """Give up the oldest reports until what is kept counts at most `limit_bytes`.

        They count as expired, and as shed. Batches go before waiting reports: those are newer.
        Returns the keys of the batches given up.
        """
        ((waiting,),) = self.rows("SELECT count(*) FROM waiting")
        batches = self.rows(
            "SELECT stream, number, reports, length(payload) FROM batches"
            " ORDER BY last_slot DESC, stream DESC"
        )
        left = limit_bytes - waiting * WAITING_BYTES
        lost = []
        for stream, number, reports, size in batches:
            left -= size + ROW_BYTES
            if left < 0:
                lost.append((stream, number, reports))
        surplus = max(0, waiting - limit_bytes // WAITING_BYTES)
        if lost or surplus:
            self._give_up(lost, surplus)
        return [Key(stream, number) for stream, number, _ in lost]

    def shed_counts(self) -> dict[int, int]:
        """Return how many reports of each stream were ever given up for their size."""
        if self._version() < WITH_SHED:
            return {}
        return dict(self.rows("SELECT stream, shed FROM streams"))

    def suspect(
        self,
        told: Iterable[Told],
        begun: Sequence[BatchSeries],
        ledger: Ledger | None,
        elapsed: Elapsed | None,
    ) -> None:
        """Store what shows that this state may be a copy, and begin other series; nothing goes."""
        with self.transaction():
            self.note_told(told)
            self.begin_series(begun)
            if ledger is not None:
                self._put_ledger(ledger, elapsed)

    def note_told(self, told: Iterable[Told]) -> None:
        """Store what others told, within a transaction; of a stream one series is not its own."""
        for one in told:
            self._db.execute(
                "DELETE FROM told WHERE stream = ?1 AND series NOT IN"
                " (SELECT series FROM series WHERE stream = ?1)",
                (one.stream,),
            )
            self._db.execute("INSERT OR REPLACE INTO told VALUES (?, ?, ?, ?)", one)

    def untell(self, told: Iterable[Told]) -> None:
        """Forget what was told and is not so."""
        with self.transaction() as db:
            rows = [(one.stream, one.series) for one in told]
            db.executemany("DELETE FROM told WHERE stream = ? AND series = ?", rows)

    def roll_back(
        self,
        told: Iterable[Told],
        begun: Sequence[BatchSeries],
        slot: int,
        ledger: Ledger | None,
        elapsed: Elapsed | None,
    ) -> int:
        """Give up all that waits, and begin every stream's account anew from a slot on.

        What is given up is created and expired in the new account; what was settled before stays
        with the aggregator. Returns how many reports were given up.
        """
        with self.transaction() as db:
            kept = dict(db.execute(_KEPT).fetchall())
            for table in ("batches", "waiting", "released"):
                db.execute(f"DELETE FROM {table}")  # noqa: S608 (our own names)
            self.note_told(one._replace(is_settled=True) for one in told)
            self.begin_series(begun)
            db.execute("UPDATE streams SET first = ?, created = 0, expired = 0, shed = 0", (slot,))
            db.executemany(
                "UPDATE streams SET created = ?2, expired = ?2 WHERE stream = ?1", kept.items()
            )
            if ledger is not None:
                self._put_ledger(ledger, elapsed)
        return sum(kept.values())

    def released_until(self) -> int:
        """Return the last slot that a curator took, -1 if none ever ran on this file."""
        with self.reading():
            if not has_curators(self._db):
                return -1
            return int(self._db.execute("SELECT max(slot) FROM curated").fetchone()[0])

    def status(self) -> list[StreamStatus]:
        """Return each stream's account: batches made and kept, reports created and expired."""
        with self.reading() as db:
            numbers = numberings(db)
            rows = db.execute(
                "SELECT stream, first, created, expired FROM streams ORDER BY stream"
            ).fetchall()
            oldest = {
                stream: db.execute(
                    "SELECT min(number) FROM batches WHERE stream = ? AND number > ?",
                    (stream, number.base),
                ).fetchone()[0]
                for stream, number in numbers.items()
            }
        known = [row for row in rows if row[0] in numbers]
        return [_account(row, numbers[row[0]], oldest[row[0]]) for row in known]

    def _give_up(self, lost: Sequence[tuple[int, int, int]], surplus: int) -> None:
        count = "UPDATE streams SET expired = expired + ?1, shed = shed + ?1 WHERE stream = ?2"
        bound = "SELECT slot, stream FROM waiting ORDER BY slot, stream LIMIT 1 OFFSET ?"
        older = "FROM waiting WHERE (slot, stream) < (?1, ?2)"
        of_each = f"SELECT (SELECT count(*) {older} AND stream = s.stream), stream FROM streams s"  # noqa: S608 (our own names)
        with self.transaction():
            for stream, number, reports in lost:
                self._db.execute(
                    "DELETE FROM batches WHERE stream = ? AND number = ?", (stream, number)
                )
                self._db.execute(count, (reports, stream))
            kept = self._db.execute(bound, (surplus,)).fetchone() or (1 << 40, 0)
            self._db.executemany(count, self._db.execute(of_each, kept).fetchall())
            self._db.execute(f"DELETE {older}", kept)

    def count_created(self, stream: int, slot: int, reports: int) -> None:
        """Count reports that are made, within a transaction; an account begins with their slot."""
        self._db.execute(
            "INSERT INTO streams VALUES (?1, ?2, 1, ?3, 0, 0)"
            " ON CONFLICT (stream) DO UPDATE SET created = created + ?3",
            (stream, slot, reports),
        )

    def begin_series(self, begun: Iterable[BatchSeries]) -> None:
        """Store series that begin, within a transaction; of a stream the last KNOWN_SERIES stay."""
        for one in begun:
            self._db.execute("INSERT OR REPLACE INTO series VALUES (?, ?, ?, ?)", one[:4])
            self._db.execute(
                "DELETE FROM series WHERE stream = ?1 AND base < (SELECT min(base) FROM (SELECT"
                " base FROM series WHERE stream = ?1 ORDER BY base DESC LIMIT ?2)) AND NOT EXISTS"
                " (SELECT 1 FROM batches WHERE stream = ?1 AND number > series.base AND number <="
                " (SELECT min(s.base) FROM series s WHERE s.stream = ?1 AND s.base > series.base))",
                (one.stream, KNOWN_SERIES),
            )

    def _version(self) -> int:
        """Return the version of the file's tables: one that is only read may be older than ours."""
        return int(self.rows("PRAGMA user_version")[0][0])

    def count_expired(self, lost: Iterable[tuple[int, int]]) -> None:
        """Count (stream, reports) as expired, within a transaction of whoever gives them up."""
        self._db.executemany("UPDATE streams SET expired = expired + ?2 WHERE stream = ?1", lost)

    def put_batch(self, batch: Batch) -> None:
        """Store a batch, within a transaction of its maker."""
        stream, number = batch.key
        self._db.execute(
            "INSERT INTO batches VALUES (?, ?, ?, ?, ?)",
            (stream, number, batch.last_slot, batch.reports, batch.payload),
        )
        self._db.execute(
            "DELETE FROM waiting WHERE stream = ? AND slot <= ?", (stream, batch.last_slot)
        )
        self._db.execute("UPDATE streams SET next = ? WHERE stream = ?", (number + 1, stream))

    def _put_ledger(self, ledger: Ledger, elapsed: Elapsed | None) -> None:
        self._db.execute(
            "INSERT INTO ledger (id, commits, seal, value, elapsed)"
            " VALUES (1, 0, x'', ?1, coalesce(?2, x'')) ON CONFLICT (id)"
            " DO UPDATE SET value = ?1, elapsed = coalesce(?2, elapsed)",
            (ledger.to_json(), None if elapsed is None else elapsed.encode()),
        )


def _account(row: Sequence[int], number: Numbering, kept: int | None) -> StreamStatus:
    """Return an account: its row, how its next batch is numbered, the oldest of its series kept."""
    stream, since, created, expired = row
    following = number.following - number.base
    oldest = following if kept is None else kept - number.base
    first = 1 if number.series else since
    account = StreamStatus(stream, first, following, oldest, created, expired)
    return account._replace(series=number.series, since=since) if number.series else account
