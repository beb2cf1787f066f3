"""What curators keep in the agent's one file: states, keys, released values.

A state and the values released from it are one synchronous commit, so no noise is used twice and
none is lost. A chunk's key is written once and overwritten with the commit that ends its chunk; the
write-ahead log, which held it too, is emptied then (`scrub`).
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence

from agent.claims.batches import Batch
from agent.curator.outbox import ReleasedValue, SeriesRow, ended, pack_released
from agent.errors import StorageError
from agent.state.journal import Journal
from agent.state.journal_schema import has_curators
from edge_ldp.protocol.released import PublicDesign, read_design


class CuratorJournal:
    """The curators' part of a Journal; every method is one transaction, and raises as there.

    Pages of deleted rows are overwritten with zeros from the opening on.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._must_scrub = not journal.is_read_only
        if not journal.is_read_only:
            with journal.reading() as db:
                db.execute("PRAGMA secure_delete = ON")

    def series(self) -> list[SeriesRow]:
        """Return every series ever begun, by stream and beginning; the running ones with a key."""
        with self._journal.reading() as db:
            if not has_curators(db):
                return []
            rows = db.execute(
                "SELECT curated.stream, series, slot, design, terms, state, key, ended FROM curated"
                " LEFT JOIN curator_keys ON curated.stream = curator_keys.stream AND NOT ended"
                " ORDER BY 1, 2"
            ).fetchall()
        return [SeriesRow(*row) for row in rows]

    def released(self) -> list[ReleasedValue]:
        """Return the released values not yet packed, in order of stream and slot."""
        with self._journal.reading() as db:
            rows = db.execute(
                "SELECT stream, slot, series, position, theta, value FROM released ORDER BY 1, 2"
            ).fetchall()
        return [ReleasedValue(*row) for row in rows]

    def designs(self) -> dict[tuple[int, int], PublicDesign]:
        """Return the public design of every series, by (stream, series)."""
        return {(row.stream, row.series): read_design(row.design) for row in self.series()}

    def commit_series(
        self,
        rows: Sequence[SeriesRow],
        values: Sequence[ReleasedValue] = (),
        batches: Sequence[Batch] = (),
    ) -> None:
        """Store states, the values released from them and the batches packed, all or nothing.

        A stream's running chunk has the key of its row, and no other. A stream's first batch is
        numbered by its first slot, as in `Journal.commit`.
        """
        with self._journal.transaction() as db:
            db.execute(
                "INSERT OR IGNORE INTO ledger (id, commits, seal, value) VALUES (1, 0, x'', x'')"
            )
            for row in rows:
                self._put_series(db, row)
            _count_values(db, values)
            db.executemany(
                "INSERT INTO released VALUES (?, ?, ?, ?, ?, ?)",
                [(v.stream, v.slot, v.series, v.position, v.theta, v.value) for v in values],
            )
            for batch in batches:
                self._journal.put_batch(batch)
                db.execute(
                    "DELETE FROM released WHERE stream = ? AND slot <= ?",
                    (batch.key.stream, batch.last_slot),
                )
        if self._must_scrub:
            self.scrub()

    def expire(self, before_slot: int) -> int:
        """Give up waiting values of older slots, counted as expired; return how many."""
        with self._journal.transaction() as db:
            lost = db.execute(
                "SELECT stream, count(*) FROM released WHERE slot < ? GROUP BY stream",
                (before_slot,),
            ).fetchall()
            db.execute("DELETE FROM released WHERE slot < ?", (before_slot,))
            self._journal.count_expired(lost)
        return sum(values for _, values in lost)

    def scrub(self) -> None:
        """Empty the write-ahead log, where a wiped key may still stand.

        Again with the next commit if the log is read, or there is no room for what it holds: what
        was committed is, and must not be taken for undone. The file's freed blocks are the disk's:
        what a flash card keeps of them nobody can say.
        """
        self._must_scrub = True
        try:
            with self._journal.reading() as db:
                busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except StorageError as exc:
            if not exc.passes:
                raise
        else:
            self._must_scrub = bool(busy)

    def retire(self) -> int:
        """End every running series, its chunk's budget counted as spent; return how many.

        Their values not yet packed become batches, to be sent in either mode.
        """
        running = [row for row in self.series() if not row.is_ended]
        waiting = self.released()
        if not running and not waiting:
            return 0
        batches = pack_released(waiting, self._journal.numbers(), self.designs())
        self.commit_series([ended(row) for row in running], (), batches)
        return len(running)

    def _put_series(self, db: sqlite3.Connection, row: SeriesRow) -> None:
        key = row.key
        db.execute(
            "INSERT OR REPLACE INTO curated VALUES (?, ?, ?, ?, ?, ?, ?)",
            (row.stream, row.series, row.slot, row.design, row.terms, row.state, row.is_ended),
        )
        where = "FROM curator_keys WHERE stream = ?"
        held = db.execute(f"SELECT key {where}", (row.stream,)).fetchone()
        if held and held[0] != key:
            zeros = bytes(len(held[0]))
            db.execute("UPDATE curator_keys SET key = ? WHERE stream = ?", (zeros, row.stream))
            db.execute(f"DELETE {where}", (row.stream,))
            self._must_scrub = True
        if key and (not held or held[0] != key):
            db.execute("INSERT INTO curator_keys VALUES (?, ?)", (row.stream, key))


def _count_values(db: sqlite3.Connection, values: Iterable[ReleasedValue]) -> None:
    first: dict[int, int] = {}
    made: Counter[int] = Counter()
    for value in values:
        first.setdefault(value.stream, value.slot)
        made[value.stream] += 1
    for stream, count in made.items():
        db.execute(
            "INSERT INTO streams (stream, first, next, created, expired)"
            " VALUES (?1, ?2, ?2, ?3, 0)"
            " ON CONFLICT (stream) DO UPDATE SET created = created + ?3",
            (stream, first[stream], count),
        )
