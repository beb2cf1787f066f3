"""What can be asked of a store: the questions, and one answer where both engines share a query."""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, Self

from aggregator.counting.period_totals import PeriodTotal, TotalKey
from aggregator.counting.records import Doubt, KeptSums, Key, Marked, Record
from aggregator.counting.reporters import united
from aggregator.counting.retention import RolledUp
from aggregator.counting.tally import CountRows
from aggregator.store.device_reads import DeviceReader
from aggregator.store.forms import unpack_pairs
from aggregator.store.period_sums import read_kept, read_totals
from aggregator.store.rows import (
    ALIVE,
    FLEET_DAY,
    LAST_BUCKET,
    AuditRow,
    BeatRow,
    FleetDay,
    HeldRow,
    MarkRow,
    PlanRow,
    RefusedRow,
    ReleasedChunk,
    RevisionRow,
    SumsRow,
)
from aggregator.store.shared_reads import (
    FACTS,
    PLAN_HELD,
    RETIRED,
    WHOSE,
    by_bucket,
    by_part,
    streams_of,
)

_CHUNKS = """SELECT device, stream, series, chunk, theta, released_designs.design
    FROM released_chunks JOIN released_designs ON released_chunks.design = released_designs.id
    ORDER BY 1, 2, 3, 4"""
_VALUES = """SELECT slot, series, position, value FROM released_values
    WHERE device = ? AND stream = ? AND slot >= ? AND slot < ? ORDER BY slot"""
_SPAN = "SELECT min(slot), max(slot) + 1 FROM released_values WHERE device = ? AND stream = ?"


class Reader(DeviceReader, Protocol):
    """What can be asked of a store, also while another process writes to it.

    What the engines are asked alike is here, in words that both know; `_rows` raises StoreError.
    """

    SNAPSHOT: str = "BEGIN"
    COUNTED: tuple[str, ...] = ("counts",)  # the tables that counts lie in
    PRESENT: tuple[str, ...] = ("presence",)  # and device-slots
    REFUSED: tuple[str, ...] = ("refused",)  # and what was not counted
    where: str  # file or URL

    @abstractmethod
    def prepare(self) -> None:
        """Make it usable, or raise StoreError."""

    def opened(self) -> Self:
        """Return it once it is usable; closed where StoreError is raised."""
        try:
            self.prepare()
        except BaseException:
            self.close()
            raise
        return self

    @abstractmethod
    def reading(self) -> AbstractContextManager[Any]:
        """Give the connection; within it the errors of engine and rows become the store's."""

    @abstractmethod
    def _histograms(
        self, stream: int, first_bucket: int, last_bucket: int, group: int | None
    ) -> Iterable[tuple[int, int, int, bytes, bytes]]:
        """Return rows of epoch, bucket, whose, reporters and stored histogram."""

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See the store as of one moment as long as this lasts; not while a transaction runs."""
        with self.reading() as db:
            db.execute(self.SNAPSHOT)
            try:
                yield
            finally:
                db.execute("ROLLBACK")  # nothing was written

    def plans(self) -> list[PlanRow]:
        """Return every plan ever issued, by stream and epoch."""
        rows = self._rows("SELECT stream, epoch, issued_s, payload FROM plans ORDER BY 1, 2")
        return [PlanRow(*row) for row in rows]

    def newest_epochs(self) -> dict[int, int]:
        """Return the highest epoch ever issued of each stream that has a plan."""
        return dict(self._rows("SELECT stream, max(epoch) FROM plans GROUP BY stream"))

    def counts(
        self, stream: int, first_bucket: int, last_bucket: int, group: int | None = None
    ) -> CountRows:
        """Return the counts of a stream in the buckets first..last, of all groups or of one."""
        with self.reading():
            return by_bucket(self._histograms(stream, first_bucket, last_bucket, group))

    @abstractmethod
    def totals(
        self,
        stream: int,
        first_bucket: int = 0,
        last_bucket: int = LAST_BUCKET,
        group: int | None = None,
    ) -> CountRows:
        """Return the counts of a stream, the buckets first..last added up; groups as `counts`."""

    def summed(
        self,
        stream: int,
        first_bucket: int,
        last_bucket: int,
        group: int | None,
        part_of: Callable[[int], Hashable],
    ) -> CountRows:
        """Return the counts of the buckets first..last added up by the part that each is of.

        `bucket` is the first one with counts of each epoch and part.
        """
        with self.reading():
            return by_part(self._histograms(stream, first_bucket, last_bucket, group), part_of)

    def presence(self, stream: int, group: int | None = None) -> list[tuple[int, int]]:
        """Return (bucket, device-slots) of a stream, rising; groups as `counts`."""
        mine = "" if group is None else f" AND grp = {int(group)}"
        every = _every("bucket, slots", self.PRESENT, f" WHERE stream = {int(stream)}{mine}")
        sums = "SELECT bucket, CAST(sum(slots) AS bigint)"
        return self._rows(f"{sums} FROM ({every}) AS every GROUP BY 1 ORDER BY 1")

    def device_slots(self, stream: int, first_bucket: int, last_bucket: int) -> dict[int, int]:
        """Return the device-slots of the buckets first..last by group and class (`whose_of`)."""
        found: dict[int, int] = {}
        for table in self.PRESENT:
            query = f"""SELECT {WHOSE}, sum(slots) FROM {table} WHERE stream = {int(stream)}
                AND bucket BETWEEN {int(first_bucket)} AND {int(last_bucket)} GROUP BY 1"""  # noqa: S608 (our own tables, and numbers)
            for whose, slots in self._rows(query):
                found[whose] = found.get(whose, 0) + int(slots)
        return found

    def rolled_up(self, stream: int) -> RolledUp:
        """Return how far a stream's buckets were added up: a span's counts are in its first."""
        query = f"SELECT what, until FROM rolled WHERE stream = {int(stream)}"  # noqa: S608 (a number)
        return RolledUp(dict(self._rows(query)))

    def sums(self, stream: int, first_bucket: int, last_bucket: int) -> list[SumsRow]:
        """Return the sums of hours that begin in first..last, by hour, epoch, group and class.

        Only those before `rolled_up(stream).until[SUMMED]` stand.
        """
        rows = self._rows(
            f"""SELECT bucket, epoch, grp, cls, reporters, sums FROM sums
            WHERE stream = {int(stream)}
            AND bucket BETWEEN {int(first_bucket)} AND {int(last_bucket)} ORDER BY 1, 2, 3, 4"""  # noqa: S608 (numbers)
        )
        return [SumsRow._make(row) for row in rows]

    def reporters(
        self, stream: int, first_bucket: int, last_bucket: int, but_group: int
    ) -> dict[int, bytes]:
        """Return who reported by bucket, of all groups but one (counting.reporters)."""
        found: dict[int, list[bytes]] = {}
        for table in self.COUNTED:
            where = f"""WHERE stream = {int(stream)} AND grp <> {int(but_group)}
                AND bucket BETWEEN {int(first_bucket)} AND {int(last_bucket)}"""
            for bucket, who in self._rows(f"SELECT bucket, reporters FROM {table} {where}"):  # noqa: S608 (our own tables, and numbers)
                found.setdefault(bucket, []).append(who)
        with self.reading():
            return {bucket: united(found[bucket]) for bucket in sorted(found)}

    def period_totals(
        self, name: str, since_s: int, until_s: int, group: int | None = None
    ) -> dict[TotalKey, PeriodTotal]:
        """Return what homes' sums of the periods wholly in a span add up to; groups as `counts`."""
        with self.reading():
            return read_totals(self._ask, name, since_s, until_s, group)

    def period_sums(
        self,
        name: str,
        since_s: int,
        until_s: int,
        group: int | None = None,
        *,
        held: bool = False,
    ) -> list[KeptSums]:
        """Return homes' sums of the periods wholly in a span; `held`: also those of held homes."""
        return read_kept(self._ask, name, since_s, until_s, group, held=held)

    def first_summed(
        self, stream: int, first_bucket: int, last_bucket: int, group: int | None = None
    ) -> int | None:
        """Return the first hour of first..last that `sums` has, or None; groups as `counts`."""
        mine = "" if group is None else f" AND grp = {int(group)}"
        ((found,),) = self._rows(
            f"""SELECT min(bucket) FROM sums WHERE stream = {int(stream)}
            AND bucket BETWEEN {int(first_bucket)} AND {int(last_bucket)}{mine}"""  # noqa: S608 (numbers)
        )
        return found  # type: ignore[no-any-return]

    def groups(self) -> dict[str, int]:
        """Return the groups of devices by name; that of any device is "", which is 0."""
        return dict(self._rows("SELECT name, id FROM groups ORDER BY 2"))

    def held_counts(self) -> list[HeldRow]:
        """Return what was counted of devices that are held, rising; no other count has it."""
        rows = self._rows(
            """SELECT device, stream, epoch, grp, bucket, pairs FROM held_counts
            ORDER BY 1, 2, 3, 4, 5"""
        )
        with self.reading():
            return [
                HeldRow(device, stream, epoch, group, bucket, *unpack_pairs(pairs))
                for device, stream, epoch, group, bucket, pairs in rows
            ]

    @abstractmethod
    def records(self) -> Iterator[tuple[Key, Record]]:
        """Yield every device's and stream's record, by key."""

    @abstractmethod
    def states(self, device: str) -> list[tuple[int, Record]]:
        """Return (stream, record) of one device."""

    @abstractmethod
    def version(self) -> str:
        """Return what is another after every commit of anybody, as long as this is open."""

    def refused(self) -> list[RefusedRow]:
        """Return what was not counted, by reason and stream."""
        every = _every("reason, stream, messages, reports", self.REFUSED)
        rows = self._rows(
            f"""SELECT reason, stream, CAST(sum(messages) AS bigint), CAST(sum(reports) AS bigint)
            FROM ({every}) AS every GROUP BY 1, 2 ORDER BY 1, 2"""  # noqa: S608 (our own tables)
        )
        return [RefusedRow(*row) for row in rows]

    def plan_holds(self) -> dict[int, int]:
        """Return the streams whose plan an operator holds, and since when (seconds UTC)."""
        return streams_of(self.facts().items(), PLAN_HELD)

    def retired(self) -> dict[int, int]:
        """Return the streams that an operator retired, and since when (seconds UTC)."""
        return streams_of(self.facts().items(), RETIRED)

    def revisions(self) -> list[RevisionRow]:
        """Return every revision that was kept, by stream and time."""
        rows = self._rows("SELECT stream, at_s, payload FROM looks ORDER BY 1, 2")
        return [RevisionRow(*row) for row in rows]

    def marks(self) -> list[MarkRow]:
        """Return every device that was marked, by device and stream."""
        rows = self._rows(
            """SELECT device, stream, first_s, last_s, times, name, seen, reports, bound, chance
            FROM marks ORDER BY 1, 2"""
        )
        return [
            MarkRow(device, stream, first_s, last_s, times, Marked(*mark))
            for device, stream, first_s, last_s, times, *mark in rows
        ]

    def audit(self, since_s: int = 0) -> list[AuditRow]:
        """Return what operators changed since then, in the order in which it was done."""
        rows = self._rows(
            f"SELECT at_s, who, command FROM audit WHERE at_s >= {int(since_s)} ORDER BY id"  # noqa: S608 (a number)
        )
        return [AuditRow(*row) for row in rows]

    def beats(self) -> list[BeatRow]:
        """Return what each worker last said of itself, by its name."""
        facts = self.facts()
        workers = sorted(name.removeprefix(ALIVE) for name in facts if name.startswith(ALIVE))
        return [BeatRow.of(worker, facts) for worker in workers]

    def fleet_days(self) -> list[FleetDay]:
        """Return how devices were on the last days on which the service ran, by day."""
        kept = [value for name, value in self.facts().items() if name.startswith(FLEET_DAY)]
        return sorted(FleetDay(*map(int, value.split())) for value in kept)

    @abstractmethod
    def last_commit_s(self) -> int | None:
        """Return when a flush was last committed (seconds UTC), or None if never."""

    @abstractmethod
    def is_served(self) -> bool | None:
        """Say whether a service runs on the store at this moment; None: nobody can say."""

    def facts(self) -> dict[str, str]:
        """Return what is kept about the store itself, by name (`Store.pin` and others)."""
        return dict(self._rows(FACTS))

    @abstractmethod
    def room_bytes(self) -> int | None:
        """Return how much may still be written beside the store; None: its server knows."""

    @abstractmethod
    def unwritable(self) -> str:
        """Say why whoever reads could not write, "" if he could; nothing is written."""

    @abstractmethod
    def committed(self, doubt: Doubt) -> bool:
        """Say whether the flush was committed that a record of the archive's spool is of."""

    def released_chunks(self) -> list[ReleasedChunk]:
        """Return every chunk of every curated stream, by device, key, series and chunk."""
        return [ReleasedChunk(*row) for row in self._rows(_CHUNKS)]

    def released_values(
        self, device: str, key: int, first: int, end: int
    ) -> Sequence[tuple[int, int, int, int]]:
        """Return (slot, series, position, value) of slots first … end-1, rising."""
        return self._ask(_VALUES, (device, key, first, end))

    def released_span(self, device: str, key: int) -> tuple[int, int]:
        """Return the first slot that has a value, and the one after the last."""
        first, end = self._ask(_SPAN, (device, key))[0]
        return int(first), int(end)

    @abstractmethod
    def close(self) -> None:
        """Let go of it."""

    def _ask(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        return self._rows(query.replace("?", self.VALUE), values)


def _every(columns: str, tables: Iterable[str], where: str = "") -> str:
    """Return the rows of tables that are read as one, those not merged yet among them."""
    return " UNION ALL ".join(f"SELECT {columns} FROM {table}{where}" for table in tables)  # noqa: S608 (our own words)
