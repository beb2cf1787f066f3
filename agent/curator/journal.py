"""What curators keep: accounts and released values in the agent's one file, secrets beside it.

A state and the values released from it are one commit, so no noise is used twice and none is lost.
While a chunk runs its state goes first, with the values, into the running file, where it is
committed (`agent.curator.running_file`); then rows and values into the journal, whose log so never
holds a secret. What a crash left between the two is done at the next opening.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import astuple, replace
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

from agent.claims.batches import Batch, BatchSeries, Numbering, random_series
from agent.curator.outbox import ReleasedValue, SeriesRow, ended, pack_released
from agent.curator.running_file import ENDING, RunningFile
from agent.curator.stream import open_state, public_state
from agent.errors import StorageError
from agent.state.journal import Journal
from agent.state.journal_schema import has_curators
from agent.state.place import beside_state
from edge_ldp.entropy import system_draw
from edge_ldp.protocol.released import PublicDesign, read_design
from edge_ldp.protocol.strict_json import MessageError

_COLUMNS = "stream, series, slot, design, terms, state, ended"


class CuratorJournal:
    """The curators' part of a Journal; every method is one commit, and raises as there.

    `place`: of what runs, beside the state unless given; a chunk that ran beside it before ends.

    Pages of deleted rows are overwritten with zeros from the opening on. A mere reader sees no
    secret: its rows have none.
    """

    def __init__(self, journal: Journal, place: Path | None = None) -> None:
        self._journal = journal
        self._draw = system_draw()
        self._secrets: dict[int, SeriesRow] = {}
        usual = beside_state(journal.path, ENDING)
        self._running = None if journal.is_read_only else RunningFile(place or usual)
        if self._running and place not in (None, usual):
            RunningFile(usual).unlink()
        self._must_scrub = self._running is not None
        if self._running:
            journal.rows("PRAGMA secure_delete = ON")
            self._recover(self._running)
            self._take_over_keys()

    def series(self) -> list[SeriesRow]:
        """Return every series ever begun, by stream and beginning; the running with secrets."""
        return [
            self._secrets[row.stream] if row == _bare(self._secrets.get(row.stream)) else row
            for row in self._rows()
        ]

    def released(self) -> list[ReleasedValue]:
        """Return the released values not yet packed, in order of stream and slot."""
        rows = self._journal.rows(
            "SELECT stream, slot, series, position, theta, value FROM released ORDER BY 1, 2"
        )
        return [ReleasedValue(*row) for row in rows]

    def summed_until_s(self) -> int:
        """Return when the last period of sums ended that left of this file, 0 if none ever did."""
        return int(self._journal.rows("SELECT ifnull(max(until_s), 0) FROM summed")[0][0])

    def designs(self) -> dict[tuple[int, int], PublicDesign]:
        """Return the public design of every series, by (stream, series)."""
        return {(row.stream, row.series): read_design(row.design) for row in self.series()}

    def commit_series(
        self,
        rows: Sequence[SeriesRow],
        values: Sequence[ReleasedValue] = (),
        batches: Sequence[Batch] = (),
        begun: Sequence[BatchSeries] = (),
    ) -> None:
        """Store states, the values released from them and the batches packed, all or nothing.

        `begun`: numberings that begin with it, as in `Journal.commit`. After an error that passes
        nothing happened: a later commit takes the place of what was sealed.
        """
        last = {row.stream: row for row in rows}  # an ended series goes before its successor
        secrets = {s: row for s, row in (self._secrets | last).items() if row.secret}
        self._must_scrub |= bool(self._secrets) != bool(secrets)  # also what an error leaves sealed
        if rows and secrets and self._running:
            self._running.write(_record(self._standing(), [*rows, *secrets.values()], values))
        self._apply(rows, values, batches, begun)
        self._secrets = secrets
        if self._must_scrub:
            self.scrub()

    def _apply(
        self,
        rows: Sequence[SeriesRow],
        values: Sequence[ReleasedValue],
        batches: Sequence[Batch] = (),
        begun: Sequence[BatchSeries] = (),
    ) -> None:
        with self._journal.transaction() as db:
            db.execute(
                "INSERT OR IGNORE INTO ledger (id, commits, seal, value) VALUES (1, 0, x'', x'')"
            )
            db.executemany(
                "INSERT OR REPLACE INTO curated VALUES (?, ?, ?, ?, ?, ?, ?)",
                [_stored(row) for row in rows],
            )
            for stream, of_stream in groupby(sorted(values), key=lambda value: value.stream):
                slots = [value.slot for value in of_stream]
                self._journal.count_created(stream, slots[0], len(slots))
            db.executemany(
                "INSERT INTO released VALUES (?, ?, ?, ?, ?, ?)",
                [(v.stream, v.slot, v.series, v.position, v.theta, v.value) for v in values],
            )
            self._journal.begin_series(begun)
            for batch in batches:
                self._journal.put_batch(batch)
                db.execute(
                    "DELETE FROM released WHERE stream = ? AND slot <= ?",
                    (batch.key.stream, batch.last_slot),
                )

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
        """Wipe the key of a file that no chunk needs, and empty the write-ahead log.

        Earlier versions wrote keys there. Again with the next commit if the log is read, or there
        is no room for what it holds: what was committed is, and must not be taken for undone. The
        file's freed blocks are the disk's: what a flash card keeps of them nobody can say.
        """
        self._must_scrub = True
        try:
            if self._running and not self._secrets:
                self._running.wipe()
            busy = self._journal.rows("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]
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
        numbers = self._journal.numbers()
        streams = {value.stream for value in waiting} - numbers.keys()  # a crash may leave some
        begun = [BatchSeries(one, 0, random_series(self._draw), 0, 0) for one in sorted(streams)]
        numbers |= {one.stream: Numbering(series=one.series) for one in begun}
        batches = pack_released(waiting, numbers, self.designs())
        self.commit_series([ended(row) for row in running], (), batches, begun)
        return len(running)

    def _rows(self) -> list[SeriesRow]:
        with self._journal.reading() as db:
            if not has_curators(db):
                return []
            found = db.execute(f"SELECT {_COLUMNS} FROM curated ORDER BY 1, 2").fetchall()  # noqa: S608 (our own names)
        return [SeriesRow(*row) for row in found]

    def _standing(self) -> str:
        """Return a digest of the accounts: what a sealed record is to follow."""
        return sha256(repr([_stored(row) for row in self._rows()]).encode()).hexdigest()

    def _recover(self, running: RunningFile) -> None:
        """Take the secrets up, and do what a crash left undone; a foreign record is none."""
        record = running.read()
        if record is None:
            return
        before, rows, values = _parsed(record)
        if before == self._standing():
            self._apply(rows, values)
        if {_stored(row) for row in rows} <= {_stored(row) for row in self._rows()}:
            self._secrets = {row.stream: row for row in rows if row.secret}

    def _take_over_keys(self) -> None:
        """Move what an earlier version kept in the journal, chunks' keys among it, to where it is.

        The key's row is overwritten, and the log emptied with the next commit. What cannot be read
        has no secret, and ends (`stored_state`).
        """
        keys = dict(self._journal.rows("SELECT stream, key FROM curator_keys"))
        if not keys:
            return
        rows = []
        for row in self._rows():
            if not row.is_ended and row.stream in keys:
                try:
                    state = open_state(row.state, keys[row.stream])
                except MessageError:
                    continue
                rows.append(replace(row, state=public_state(state), secret=state.to_json()))
        self.commit_series(rows)
        self._must_scrub = True
        with self._journal.transaction() as db:
            db.execute("UPDATE curator_keys SET key = zeroblob(length(key))")
            db.execute("DELETE FROM curator_keys")


def _bare(row: SeriesRow | None) -> SeriesRow | None:
    return row and replace(row, secret=None)


def _stored(row: SeriesRow) -> tuple[object, ...]:
    """Return a row as the journal has it: all but its secret."""
    return astuple(row)[:-1]


def _record(before: str, rows: Iterable[SeriesRow], values: Iterable[ReleasedValue]) -> bytes:
    """Return what is sealed: the accounts that it follows, rows with secrets, released values."""
    told = [[one.hex() if isinstance(one, bytes) else one for one in astuple(row)] for row in rows]
    return json.dumps([before, told, [astuple(value) for value in values]]).encode()


def _parsed(record: bytes) -> tuple[str, list[SeriesRow], list[ReleasedValue]]:
    """Return what `_record` was given."""
    before, told, values = json.loads(record)
    rows: list[list[Any]] = [
        [bytes.fromhex(one) if isinstance(one, str) else one for one in row] for row in told
    ]
    return before, [SeriesRow(*row) for row in rows], [ReleasedValue(*value) for value in values]
