"""The agent's one file, with what curators keep in it: states, keys, released values.

A state and the values released from it are one synchronous commit, so no noise is used twice and
none is lost. A chunk's key is written once and overwritten with the commit that ends its chunk; the
write-ahead log, which held it too, is emptied then (`scrub`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from agent.curator_outbox import ReleasedValue, SeriesRow, ended, pack_released
from agent.errors import StorageError
from agent.outbox import Batch
from agent.shell.curator_tables import has_curators
from agent.shell.journal import Journal
from edge_ldp.released import PublicDesign, read_design


class CuratorJournal(Journal):
    """A Journal that curators write to as well; every method is one transaction, as there.

    Pages of deleted rows are overwritten with zeros from the opening on.
    """

    def __init__(self, path: Path, *, create: bool = True) -> None:
        super().__init__(path, create=create)
        self._must_scrub = create
        if create:
            with self._translated():
                self._db.execute("PRAGMA secure_delete = ON")

    def series(self) -> list[SeriesRow]:
        """Return every series ever begun, by stream and beginning; the running ones with a key."""
        with self._translated():
            if not has_curators(self._db):
                return []
            rows = self._db.execute(
                "SELECT curated.stream, series, slot, design, terms, state, key, ended FROM curated"
                " LEFT JOIN curator_keys ON curated.stream = curator_keys.stream AND NOT ended"
                " ORDER BY 1, 2"
            ).fetchall()
        return [SeriesRow(*row) for row in rows]

    def released(self) -> list[ReleasedValue]:
        """Return the released values not yet packed, in order of stream and slot."""
        with self._translated():
            rows = self._db.execute(
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
        with self._transaction():
            self._db.execute("INSERT OR IGNORE INTO ledger VALUES (1, 0, x'', x'')")
            for row in rows:
                self._put_series(row)
            self._count_values(values)
            self._db.executemany(
                "INSERT INTO released VALUES (?, ?, ?, ?, ?, ?)",
                [(v.stream, v.slot, v.series, v.position, v.theta, v.value) for v in values],
            )
            for batch in batches:
                self._put_batch(batch)
                self._db.execute(
                    "DELETE FROM released WHERE stream = ? AND slot <= ?",
                    (batch.key.stream, batch.last_slot),
                )
        if self._must_scrub:
            self.scrub()

    def scrub(self) -> None:
        """Empty the write-ahead log, where a wiped key may still stand.

        Again with the next commit if the log is read, or there is no room for what it holds: what
        was committed is, and must not be taken for undone. The file's freed blocks are the disk's:
        what a flash card keeps of them nobody can say.
        """
        self._must_scrub = True
        try:
            with self._translated():
                busy = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
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
        batches = pack_released(waiting, self.numbers(), self.designs())
        self.commit_series([ended(row) for row in running], (), batches)
        return len(running)

    def _put_series(self, row: SeriesRow) -> None:
        db, key = self._db, row.key
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

    def _count_values(self, values: Iterable[ReleasedValue]) -> None:
        first: dict[int, int] = {}
        made: Counter[int] = Counter()
        for value in values:
            first.setdefault(value.stream, value.slot)
            made[value.stream] += 1
        for stream, count in made.items():
            self._db.execute(
                "INSERT INTO streams (stream, first, next, created, expired)"
                " VALUES (?1, ?2, ?2, ?3, 0)"
                " ON CONFLICT (stream) DO UPDATE SET created = created + ?3",
                (stream, first[stream], count),
            )
