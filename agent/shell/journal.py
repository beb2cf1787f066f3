"""The agent's one file: ledger, plans, waiting reports and packed batches, in SQLite.

One synchronous commit per slot holds the claim and its reports, so that no crash randomises a slot
twice (DESIGN §3). Only codes are ever written here, never a reading or a value. 512-byte pages and
grouped deletions keep the bytes written to flash small.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent.errors import StorageError
from agent.outbox import Batch, Key
from agent.pipeline import Claim, Report
from agent.shell.curator_tables import has_curators
from agent.shell.journal_file import JournalFile
from agent.shell.journal_schema import SCHEMA
from edge_ldp.ledger import Ledger, parse_ledger
from edge_ldp.messages import StreamStatus
from edge_ldp.strict_json import MessageError

WAITING_BYTES = 16  # what a waiting report and a batch's row count beside the batch's bytes
ROW_BYTES = 32


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
        with self._translated():
            row = self._db.execute("SELECT value FROM ledger").fetchone()
        try:
            return parse_ledger(row[0]) if row and row[0] else None  # empty: only curators ran
        except MessageError as exc:
            if self._hold:
                return None
            reason = "its ledger is damaged: what was spent until now is unknown"
            raise StorageError(str(self.path), reason, "the agent begins a new one") from exc

    def save_ledger(self, ledger: Ledger) -> None:
        """Store a ledger that was opened or adopted."""
        with self._transaction():
            self._put_ledger(ledger)

    def commit(self, claim: Claim | None, batches: Sequence[Batch], first_batch: int) -> None:
        """Store a claim and the batches packed with it, all or nothing, synchronously.

        Reports that no batch carries wait in their table; `first_batch` numbers the first batch of
        a stream that has none yet.
        """
        packed = {batch.key.stream: batch.last_slot for batch in batches}
        with self._transaction():
            if claim:
                self._put_ledger(claim.ledger)
                for report in claim.reports:
                    self._count(report, first_batch)
                    if report.slot > packed.get(report.stream, -1):
                        self._db.execute(
                            "INSERT INTO waiting VALUES (?, ?, ?, ?)",
                            (report.stream, report.slot, report.epoch, report.code),
                        )
            for batch in batches:
                self._put_batch(batch)

    def probe(self) -> None:
        """Store that nothing happened: raises StorageError while nothing can be stored."""
        with self._transaction():
            pass

    def waiting(self) -> list[Report]:
        """Return the reports not yet packed, in order of stream and slot."""
        with self._translated():
            rows = self._db.execute(
                "SELECT stream, slot, epoch, code FROM waiting ORDER BY stream, slot"
            )
            return [Report(*row) for row in rows]  # never twice in memory: there may be many

    def numbers(self) -> dict[int, int]:
        """Return the next batch number of each stream."""
        with self._translated():
            return dict(self._db.execute("SELECT stream, next FROM streams").fetchall())

    def keys(self) -> list[Key]:
        """Return the batches kept, oldest first."""
        with self._translated():
            rows = self._db.execute("SELECT stream, number FROM batches ORDER BY last_slot")
            return [Key(*row) for row in rows]

    def payload(self, key: Key) -> bytes | None:
        """Return a batch's bytes, or None when it was settled meanwhile."""
        with self._translated():
            row = self._db.execute(
                "SELECT payload FROM batches WHERE stream = ? AND number = ?", key
            ).fetchone()
        return bytes(row[0]) if row else None

    def settle(self, keys: Iterable[Key]) -> None:
        """Delete batches that a receipt covers."""
        with self._transaction(sealed=False):
            self._db.executemany("DELETE FROM batches WHERE stream = ? AND number = ?", keys)

    def expire(self, before_slot: int) -> list[Key]:
        """Give up whatever is only of older slots, packed or waiting, counted as expired.

        Returns the keys of the batches given up.
        """
        with self._translated():
            lost = self._db.execute(
                "SELECT stream, number, reports FROM batches WHERE last_slot < ?1 UNION ALL"
                " SELECT stream, NULL, count(*) FROM waiting WHERE slot < ?1 GROUP BY stream"
                " UNION ALL"
                " SELECT stream, NULL, count(*) FROM released WHERE slot < ?1 GROUP BY stream",
                (before_slot,),
            ).fetchall()
        if not lost:
            return []
        with self._transaction():
            for table, column in (
                ("batches", "last_slot"),
                ("waiting", "slot"),
                ("released", "slot"),
            ):
                self._db.execute(f"DELETE FROM {table} WHERE {column} < ?", (before_slot,))  # noqa: S608 (our own names)
            for stream, _, reports in lost:
                self._db.execute(
                    "UPDATE streams SET expired = expired + ? WHERE stream = ?", (reports, stream)
                )
        return [Key(stream, number) for stream, number, _ in lost if number is not None]

    def shed(self, limit_bytes: int) -> list[Key]:
        """Give up the oldest reports until what is kept counts at most `limit_bytes`.

        They count as expired, and as shed. Batches go before waiting reports: those are newer.
        Returns the keys of the batches given up.
        """
        with self._translated():
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
        with self._translated():
            if self._db.execute("PRAGMA user_version").fetchone()[0] < SCHEMA:  # only read
                return {}
            return dict(self._db.execute("SELECT stream, shed FROM streams").fetchall())

    def released_until(self) -> int:
        """Return the last slot that a curator took, -1 if none ever ran on this file."""
        with self._translated():
            if not has_curators(self._db):
                return -1
            return int(self._db.execute("SELECT max(slot) FROM curated").fetchone()[0])

    def plans(self) -> list[StoredPlan]:
        """Return the plans in force."""
        with self._translated():
            rows = self._db.execute("SELECT name, epoch, payload FROM plans").fetchall()
        return [StoredPlan(name, epoch, bytes(payload)) for name, epoch, payload in rows]

    def save_plan(self, plan: StoredPlan) -> None:
        """Put a plan in force."""
        with self._transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO plans VALUES (?, ?, ?)",
                (plan.name, plan.epoch, plan.payload),
            )

    def status(self) -> list[StreamStatus]:
        """Return each stream's account: batches made and kept, reports created and expired."""
        with self._translated():
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
        with self._transaction():
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

    def _put_batch(self, batch: Batch) -> None:
        stream, number = batch.key
        self._db.execute(
            "INSERT INTO batches VALUES (?, ?, ?, ?, ?)",
            (stream, number, batch.last_slot, batch.reports, batch.payload),
        )
        self._db.execute(
            "DELETE FROM waiting WHERE stream = ? AND slot <= ?", (stream, batch.last_slot)
        )
        self._db.execute("UPDATE streams SET next = ? WHERE stream = ?", (number + 1, stream))

    def _put_ledger(self, ledger: Ledger) -> None:
        self._db.execute(
            "INSERT INTO ledger VALUES (1, 0, x'', ?1) ON CONFLICT (id) DO UPDATE SET value = ?1",
            (ledger.to_json(),),
        )
