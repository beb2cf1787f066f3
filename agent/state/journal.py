"""The agent's one file: ledger, plans, waiting reports and packed batches, in SQLite.

One synchronous commit per slot holds the claim and its reports, so that no crash randomises a slot
twice (docs/design.md, Privacy model). Only codes are ever written here, never a reading or a value.
512-byte pages and grouped deletions keep the bytes written to flash small.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields

from agent.claims.batches import Batch, Key
from agent.claims.elapsed import Elapsed, decode_elapsed
from agent.claims.pipeline import Claim, Report
from agent.errors import StorageError
from agent.state.journal_file import JournalFile
from agent.state.journal_schema import WITH_ELAPSED, WITH_SHED, has_curators
from agent.state.plan_log import ACCEPTED, KEPT, STAYING, Logged
from edge_ldp.protocol.ledger import Ledger, parse_ledger
from edge_ldp.protocol.messages import StreamStatus
from edge_ldp.protocol.strict_json import MessageError

WAITING_BYTES = 16  # what a waiting report and a batch's row count beside the batch's bytes
ROW_BYTES = 32
_KEPT = (
    "SELECT stream, sum(reports) FROM (SELECT stream, reports FROM batches"
    " UNION ALL SELECT stream, 1 FROM waiting UNION ALL SELECT stream, 1 FROM released)"
    " GROUP BY stream"
)


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """The plan in force of one stream name, in its exact bytes."""

    name: str
    epoch: int
    payload: bytes


class Journal(JournalFile):
    """What the state file holds; every method is one transaction. Raises as JournalFile."""

    def ledger(self) -> Ledger | None:
        """Return the stored ledger, or None when there is none.

        A damaged one is none to the agent, which counts the window as spent. To a mere reader it is
        a StorageError: nobody may be told that nothing was spent.
        """
        with self.reading():
            row = self._db.execute("SELECT value FROM ledger").fetchone()
        try:
            return parse_ledger(row[0]) if row and row[0] else None  # empty: only curators ran
        except MessageError as exc:
            if self._hold:
                return None
            reason = "its ledger is damaged: what was spent until now is unknown"
            raise StorageError(str(self.path), reason, "the agent begins a new one") from exc

    def elapsed(self) -> Elapsed | None:
        """Return the time that goes with the ledger; None in a file of an older version."""
        with self.reading() as db:
            if db.execute("PRAGMA user_version").fetchone()[0] < WITH_ELAPSED:  # only read
                return None
            row = db.execute("SELECT elapsed FROM ledger").fetchone()
        try:
            return decode_elapsed(row[0]) if row and row[0] else None
        except MessageError as exc:
            reason = "the time beside its ledger is damaged"
            raise StorageError(str(self.path), reason, "move the file away") from exc

    def save_ledger(self, ledger: Ledger, elapsed: Elapsed | None = None) -> None:
        """Store a ledger that was opened or adopted, with its time if that changed."""
        with self.transaction():
            self._put_ledger(ledger, elapsed)

    def save_elapsed(self, elapsed: Elapsed) -> None:
        """Store how far time has come."""
        with self.transaction() as db:
            db.execute("UPDATE ledger SET elapsed = ?", (elapsed.encode(),))

    def commit(self, claim: Claim | None, batches: Sequence[Batch], first_batch: int) -> None:
        """Store a claim and the batches packed with it, all or nothing, synchronously.

        Reports that no batch carries wait in their table; `first_batch` numbers the first batch of
        a stream that has none yet.
        """
        packed = {batch.key.stream: batch.last_slot for batch in batches}
        with self.transaction():
            if claim:
                self._put_ledger(claim.ledger, claim.elapsed)
                for report in claim.reports:
                    self._count(report, first_batch)
                    if report.slot > packed.get(report.stream, -1):
                        self._db.execute(
                            "INSERT INTO waiting VALUES (?, ?, ?, ?)",
                            (report.stream, report.slot, report.epoch, report.code),
                        )
            for batch in batches:
                self.put_batch(batch)

    def probe(self) -> None:
        """Store that nothing happened: raises StorageError while nothing can be stored."""
        with self.transaction():
            pass

    def waiting(self) -> list[Report]:
        """Return the reports not yet packed, in order of stream and slot."""
        with self.reading():
            rows = self._db.execute(
                "SELECT stream, slot, epoch, code FROM waiting ORDER BY stream, slot"
            )
            return [Report(*row) for row in rows]  # never twice in memory: there may be many

    def numbers(self) -> dict[int, int]:
        """Return the next batch number of each stream."""
        with self.reading():
            return dict(self._db.execute("SELECT stream, next FROM streams").fetchall())

    def keys(self) -> list[Key]:
        """Return the batches kept, oldest first."""
        with self.reading():
            rows = self._db.execute("SELECT stream, number FROM batches ORDER BY last_slot")
            return [Key(*row) for row in rows]

    def payload(self, key: Key) -> bytes | None:
        """Return a batch's bytes, or None when it was settled meanwhile."""
        with self.reading():
            row = self._db.execute(
                "SELECT payload FROM batches WHERE stream = ? AND number = ?", key
            ).fetchone()
        return bytes(row[0]) if row else None

    def settle(self, keys: Iterable[Key]) -> None:
        """Delete batches that a receipt covers."""
        with self.transaction(sealed=False):
            self._db.executemany("DELETE FROM batches WHERE stream = ? AND number = ?", keys)

    def expire(self, before_slot: int) -> list[Key]:
        """Give up batches and waiting reports that are only of older slots, counted as expired.

        Returns the keys of the batches given up.
        """
        with self.reading():
            lost = self._db.execute(
                "SELECT stream, number, reports FROM batches WHERE last_slot < ?1 UNION ALL"
                " SELECT stream, NULL, count(*) FROM waiting WHERE slot < ?1 GROUP BY stream",
                (before_slot,),
            ).fetchall()
        if not lost:
            return []
        with self.transaction():
            self._db.execute("DELETE FROM batches WHERE last_slot < ?", (before_slot,))
            self._db.execute("DELETE FROM waiting WHERE slot < ?", (before_slot,))
            self.count_expired((stream, reports) for stream, _, reports in lost)
        return [Key(stream, number) for stream, number, _ in lost if number is not None]

    def shed(self, limit_bytes: int) -> list[Key]:
        """Give up the oldest reports until what is kept counts at most `limit_bytes`.

        They count as expired, and as shed. Batches go before waiting reports: those are newer.
        Returns the keys of the batches given up.
        """
        with self.reading():
            waiting = self._db.execute("SELECT count(*) FROM waiting").fetchone()[0]
            batches = self._db.execute(
                "SELECT stream, number, reports, length(payload) FROM batches"
                " ORDER BY last_slot DESC, stream DESC"
            ).fetchall()
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
        with self.reading():
            if self._db.execute("PRAGMA user_version").fetchone()[0] < WITH_SHED:  # only read
                return {}
            return dict(self._db.execute("SELECT stream, shed FROM streams").fetchall())

    def roll_back(
        self, following: Mapping[int, int], ledger: Ledger | None, elapsed: Elapsed | None
    ) -> int:
        """Give up all that waits and begin every stream anew from its number in `following`.

        What is given up is created and expired in the new account; what was settled before stays
        with the aggregator. Returns how many reports were given up.
        """
        with self.transaction() as db:
            kept = dict(db.execute(_KEPT).fetchall())
            for table in ("batches", "waiting", "released"):
                db.execute(f"DELETE FROM {table}")  # noqa: S608 (our own names)
            db.executemany(
                "INSERT OR REPLACE INTO streams VALUES (?1, ?2, ?2, ?3, ?3, 0)",
                [(stream, number, kept.get(stream, 0)) for stream, number in following.items()],
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

    def plans(self) -> list[StoredPlan]:
        """Return the plans in force."""
        with self.reading():
            rows = self._db.execute("SELECT name, epoch, payload FROM plans").fetchall()
        return [StoredPlan(name, epoch, bytes(payload)) for name, epoch, payload in rows]

    def save_plan(self, plan: StoredPlan, row: Logged | None = None) -> None:
        """Put a plan in force, with its row of the log."""
        with self.transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO plans VALUES (?, ?, ?)",
                (plan.name, plan.epoch, plan.payload),
            )
            if row is not None:
                self._put_log(row)

    def forget_plan(self, row: Logged) -> None:
        """Forget a stream's plan and its epoch; the ledger and everything else stay."""
        with self.transaction():
            self._db.execute("DELETE FROM plans WHERE name = ?", (row.stream,))
            self._put_log(row)

    def log_plan(self, row: Logged) -> None:
        """Write what became of a plan that is not in force."""
        with self.transaction():
            self._put_log(row)

    def plan_log(self) -> list[Logged]:
        """Return the owner's log of plans, oldest first; empty in a file of an older version."""
        with self.reading():
            known = "SELECT 1 FROM sqlite_schema WHERE name = 'plan_log'"
            if not self._db.execute(known).fetchone():
                return []
            columns = ", ".join(field.name for field in fields(Logged))
            rows = self._db.execute(f"SELECT {columns} FROM plan_log ORDER BY id").fetchall()  # noqa: S608 (our own names)
        return [Logged(*row) for row in rows]

    def status(self) -> list[StreamStatus]:
        """Return each stream's account: batches made and kept, reports created and expired."""
        with self.reading():
            rows = self._db.execute(
                "SELECT stream, first, next, coalesce((SELECT min(number) FROM batches"
                " WHERE batches.stream = streams.stream), next), created, expired"
                " FROM streams ORDER BY stream"
            ).fetchall()
        return [StreamStatus(*row) for row in rows]

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

    def _count(self, report: Report, first_batch: int) -> None:
        self._db.execute(
            "INSERT INTO streams VALUES (?1, ?2, ?2, 1, 0, 0)"
            " ON CONFLICT (stream) DO UPDATE SET created = created + 1",
            (report.stream, first_batch),
        )

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

    def _put_log(self, row: Logged) -> None:
        """Put a row in the place of the one that it goes on: a renewal's, or the same refusal's."""
        last = self._db.execute(
            "SELECT id, code, question, at_s, reports FROM plan_log"
            " WHERE stream = ?1 AND (code = ?2 OR ?3) ORDER BY id DESC LIMIT 1",
            (row.stream, row.code, row.code in STAYING),
        ).fetchone()
        if last and last[1] == row.code == ACCEPTED and last[2] == row.question:
            goes_on = "UPDATE plan_log SET epoch = ?, times = times + 1 WHERE id = ?"
            self._db.execute(goes_on, (row.epoch, last[0]))
            return
        if last and row.code not in STAYING:
            self._db.execute("DELETE FROM plan_log WHERE id = ?", (last[0],))
        columns = astuple(row)
        places = ", ".join("?" * len(columns))
        self._db.execute(f"INSERT INTO plan_log VALUES (NULL, {places})", columns)  # noqa: S608 (our own names)
        self._db.execute(
            "DELETE FROM plan_log WHERE id <= (SELECT id FROM plan_log ORDER BY id DESC"
            " LIMIT 1 OFFSET ?)",
            (KEPT,),
        )

    def _put_ledger(self, ledger: Ledger, elapsed: Elapsed | None) -> None:
        self._db.execute(
            "INSERT INTO ledger (id, commits, seal, value, elapsed)"
            " VALUES (1, 0, x'', ?1, coalesce(?2, x'')) ON CONFLICT (id)"
            " DO UPDATE SET value = ?1, elapsed = coalesce(?2, elapsed)",
            (ledger.to_json(), None if elapsed is None else elapsed.encode()),
        )
