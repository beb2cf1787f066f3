"""What running sums keep: one transaction ends a period, books it and stores what it released.

What a period adds up so far is sealed in the running file, in memory unless its owner said
otherwise (`agent.state.place.running_path`): the journal, its log and its free pages never hold it.
A period's slots are written down with its release, and none of them is ever added up again: so a
crash before that transaction releases later, with fresh noise, and one after it never again.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from agent.claims.batches import Batch, BatchSeries
from agent.claims.elapsed import Elapsed
from agent.config.summed_streams import SumTerms
from agent.curator.running_file import RunningFile
from agent.curator.sums import RunningSum, opened_sums, sealed_sums
from agent.state.journal import Journal
from edge_ldp.period_sums import booked


@dataclass(frozen=True, slots=True)
class SummedPeriod:
    """One released period, in seconds since 1970, and what each of its slots paid: span / scale."""

    stream: int
    first_s: int
    until_s: int
    slots: int
    span: int
    scale: int

    @property
    def epsilon(self) -> Fraction:
        """What all its slots paid together."""
        return booked(self.span, self.scale, self.slots)


class SumsJournal:
    """The sums' part of a Journal, and their running file; a mere reader has none."""

    def __init__(self, journal: Journal, running: RunningFile | None = None) -> None:
        self._journal = journal
        self._running = running

    def running(self) -> tuple[int, dict[int, int], list[RunningSum]]:
        """Return `began`, `due` and the sums as `keep` was given them; (-1, {}, []): none."""
        record = self._running.read() if self._running else None
        try:
            return (-1, {}, []) if record is None else opened_sums(record)
        except (ValueError, TypeError):  # another version's
            return -1, {}, []

    def keep(self, began: int, due: dict[int, int], sums: Iterable[RunningSum]) -> None:
        """Seal what runs in the place of what was sealed; where nothing runs, nothing is left."""
        if self._running is None:
            return
        if listed := list(sums):
            self._running.write(sealed_sums(began, due, listed))
        else:
            self._running.unlink()

    def release(
        self, ended: RunningSum, batch: Batch, begun: Iterable[BatchSeries], elapsed: Elapsed
    ) -> None:
        """End a period: its slots, its cost, the time and its batch, all or nothing."""
        terms, (first_s, until_s) = ended.terms, _when(ended)
        with self._journal.transaction() as db:
            db.execute(
                "INSERT INTO summed VALUES (?, ?, ?, ?, ?, ?)",
                (terms.key, first_s, until_s, ended.slots, terms.span, terms.scale),
            )
            db.execute("UPDATE ledger SET elapsed = ?", (elapsed.encode(),))
            self._journal.count_created(terms.key, ended.last, 1)
            self._journal.begin_series(begun)
            self._journal.put_batch(batch)

    def concede(self, terms: SumTerms, first: int, last: int) -> None:
        """Book slots of the home that a copy of this state may have released.

        None of them is summed here, nor any slot of the stream's own that has one of them.
        """
        seconds, first = terms.layout.slot_seconds, first // terms.parts
        slots = last // terms.parts + 1 - first
        with self._journal.transaction() as db:
            db.execute(
                "INSERT OR REPLACE INTO summed VALUES (?, ?, ?, ?, ?, ?)",
                (
                    *(terms.key, first * seconds, (first + slots) * seconds),
                    *(slots, terms.span, terms.scale),
                ),
            )

    def is_summed(self, period: RunningSum) -> bool:
        """Say whether any slot of a period was released, in whatever layout that was.

        An aggregator takes no period that overlaps another one of the same home and stream.
        """
        first_s, until_s = _when(period)
        query = "SELECT 1 FROM summed WHERE stream = ? AND first_s < ? AND until_s > ? LIMIT 1"
        return bool(self._journal.rows(query, (period.terms.key, until_s, first_s)))

    def spent(self) -> Fraction:
        """Return the ε of all that was ever released, rounded up."""
        alike = Counter[tuple[int, int]]()
        for row in self.released():
            alike[row.span, row.scale] += row.slots
        return sum(
            (booked(span, scale, slots) for (span, scale), slots in alike.items()), Fraction(0)
        )

    def released(self) -> list[SummedPeriod]:
        """Return every period ever released, by stream and time."""
        if not self._journal.rows("SELECT 1 FROM sqlite_schema WHERE name = 'summed'"):
            return []  # a file of an older version, only read
        rows = self._journal.rows("SELECT * FROM summed ORDER BY 1, 2, 3")
        return [SummedPeriod(*row) for row in rows]


def _when(period: RunningSum) -> tuple[int, int]:
    """Return when a period begins and ends, in seconds since 1970."""
    layout = period.terms.layout
    first = layout.first_slot(period.period)
    return first * layout.slot_seconds, (first + layout.slots) * layout.slot_seconds
