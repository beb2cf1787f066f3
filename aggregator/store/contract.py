"""What the aggregator asks of a store, whichever engine keeps it.

A store keeps the dedupe state and the counts together: `update` is one durable transaction around a
pure decision. Every store passes the same contract test (tests/aggregator/store_contract.py).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from aggregator.counting.records import Changes, Known
from aggregator.errors import StoreError
from aggregator.store.flush_ids import flush_id
from edge_ldp.protocol.plan import Plan, parse_plan
from edge_ldp.protocol.strict_json import MessageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet
    from contextlib import AbstractContextManager

    from aggregator.archive.spool_record import Doubt
    from aggregator.counting.period_totals import PeriodTotal, TotalKey
    from aggregator.counting.records import KeptSums, Key, Record
    from aggregator.counting.retention import RolledUp
    from aggregator.counting.tally import CountRows
    from aggregator.store.rows import (
        AuditRow,
        BeatRow,
        DeviceRow,
        DeviceSums,
        HeldRow,
        MarkRow,
        RefusedRow,
        ReleasedChunk,
        ReportSum,
        SumsRow,
    )

LAST_BUCKET = 1 << 32
IDENTITY = "store"
# stream, epoch, group, class, bucket, who reported, histogram
CountedCell = tuple[int, int, int, int, int, bytes, bytes]
Decide = Callable[[Known], Changes]


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A plan as issued: its exact bytes, and when (seconds UTC)."""

    stream: int
    epoch: int
    issued_s: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """A revision of a stream's θ (`plans.revision.Revision`), as JSON; `at_s` seconds UTC."""

    stream: int
    at_s: int
    payload: bytes


def stored_plan(row: PlanRow, remedy: str = "restore a backup") -> Plan:
    """Return the plan of a row; raises StoreError for one that does not parse."""
    try:
        return parse_plan(row.payload)
    except MessageError as exc:
        reason = f"holds a damaged plan (stream {row.stream}, epoch {row.epoch}: {exc})"
        raise StoreError("plans", reason, remedy) from exc


def new_flush() -> UUID:
    """Return an id that no flush had before; the clock only says on which day it is kept."""
    return UUID(bytes=flush_id(time.time_ns() // 1_000_000, os.urandom(10)))


def identity(store: Store) -> str:
    """Return the store's own name, 16 hexadecimal digits, made once: plans and receipts carry it.

    It moves with the store and lies in its backups. Raises StoreError.
    """
    found = store.facts().get(IDENTITY)
    if found is None:
        with suppress(StoreError):  # another worker was first
            store.pin({IDENTITY: os.urandom(8).hex()})
        found = store.facts()[IDENTITY]
    return found


class Reader(Protocol):
    """What can be asked of a store, also while another process writes to it."""

    def plans(self) -> list[PlanRow]:
        """Return every plan ever issued, by stream and epoch."""

    def newest_epochs(self) -> dict[int, int]:
        """Return the highest epoch ever issued of each stream that has a plan."""

    def counts(
        self, stream: int, first_bucket: int, last_bucket: int, group: int | None = None
    ) -> CountRows:
        """Return the counts of a stream in the buckets first..last, of all groups or of one."""

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

    def presence(self, stream: int, group: int | None = None) -> list[tuple[int, int]]:
        """Return (bucket, device-slots) of a stream, rising; groups as `counts`."""

    def device_slots(self, stream: int, first_bucket: int, last_bucket: int) -> dict[int, int]:
        """Return the device-slots of the buckets first..last by group and class (`whose_of`)."""

    def rolled_up(self, stream: int) -> RolledUp:
        """Return how far a stream's buckets were added up: a span's counts are in its first."""

    def sums(self, stream: int, first_bucket: int, last_bucket: int) -> list[SumsRow]:
        """Return the sums of hours that begin in first..last, by hour, epoch, group and class.

        Only those before `rolled_up(stream).until[SUMMED]` stand.
        """

    def reporters(
        self, stream: int, first_bucket: int, last_bucket: int, but_group: int
    ) -> dict[int, bytes]:
        """Return who reported by bucket, of all groups but one (counting.reporters)."""

    def period_totals(
        self, name: str, since_s: int, until_s: int, group: int | None = None
    ) -> dict[TotalKey, PeriodTotal]:
        """Return what homes' sums of the periods wholly in a span add up to; groups as `counts`."""

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

    def first_summed(
        self, stream: int, first_bucket: int, last_bucket: int, group: int | None = None
    ) -> int | None:
        """Return the first hour of first..last that `sums` has, or None; groups as `counts`."""

    def groups(self) -> dict[str, int]:
        """Return the groups of devices by name; that of any device is "", which is 0."""

    def held_counts(self) -> list[HeldRow]:
        """Return what was counted of devices that are held, rising; no other count has it."""

    def records(self) -> Iterator[tuple[Key, Record]]:
        """Yield every device's and stream's record, by key."""

    def states(self, device: str) -> list[tuple[int, Record]]:
        """Return (stream, record) of one device."""

    def devices(self) -> list[DeviceRow]:
        """Return every device that has a row, by name."""

    def report_sums(self) -> list[ReportSum]:
        """Return all records added up, of devices alike: few rows, however many devices."""

    def devices_in_trouble(self) -> list[DeviceRow]:
        """Return those of the devices that are revoked, held, refusing or degraded, by name."""

    def longest_silent(self) -> DeviceRow | None:
        """Return whose last status is the oldest, of those that may report and ever sent one."""

    def device_states(self) -> dict[str, int]:
        """Return how many devices are of each state."""

    def device_sums(self, old_s: int) -> DeviceSums:
        """Return how many devices are how; silent: not heard of since old_s (seconds UTC)."""

    def may_report(self, group: int | None = None) -> int:
        """Return how many devices of a group (None: of all) are neither revoked nor held."""

    def device_names(
        self, state: str, order: str, old_s: int, group: int | None = None, *, down: bool = False
    ) -> list[str]:
        """Return the devices of a state and group, in an order (`rows.STATES`, `rows.ORDERS`)."""

    def some_devices(self, names: Iterable[str]) -> list[DeviceRow]:
        """Return those of the devices that have a row, as they are named."""

    def version(self) -> str:
        """Return what is another after every commit of anybody, as long as this is open."""

    def refused(self) -> list[RefusedRow]:
        """Return what was not counted, by reason and stream."""

    def plan_holds(self) -> dict[int, int]:
        """Return the streams whose plan an operator holds, and since when (seconds UTC)."""

    def retired(self) -> dict[int, int]:
        """Return the streams that an operator retired, and since when (seconds UTC)."""

    def revisions(self) -> list[RevisionRow]:
        """Return every revision that was kept, by stream and time."""

    def marks(self) -> list[MarkRow]:
        """Return every device that was marked, by device and stream."""

    def audit(self, since_s: int = 0) -> list[AuditRow]:
        """Return what operators changed since then, in the order in which it was done."""

    def beats(self) -> list[BeatRow]:
        """Return what each worker last said of itself, by its name."""

    def last_commit_s(self) -> int | None:
        """Return when a flush was last committed (seconds UTC), or None if never."""

    def is_served(self) -> bool | None:
        """Say whether a service runs on the store at this moment; None: nobody can say."""

    def facts(self) -> dict[str, str]:
        """Return what is kept about the store itself, by name (`Store.pin` and others)."""

    def room_bytes(self) -> int | None:
        """Return how much may still be written beside the store; None: its server knows."""

    def unwritable(self) -> str:
        """Say why whoever reads could not write, "" if he could; nothing is written."""

    def committed(self, doubt: Doubt) -> bool:
        """Say whether the flush was committed that a record of the archive's spool is of."""

    def released_chunks(self) -> Sequence[ReleasedChunk]:
        """Return every chunk of every curated stream, by device, key, series and chunk."""

    def released_values(
        self, device: str, key: int, first: int, end: int
    ) -> Sequence[tuple[int, int, int, int]]:
        """Return (slot, series, position, value) of slots first … end-1, rising."""

    def released_span(self, device: str, key: int) -> tuple[int, int]:
        """Return the first slot that has a value, and the one after the last."""

    def snapshot(self) -> AbstractContextManager[None]:
        """See the store as of one moment as long as this lasts; not while a transaction runs."""

    def close(self) -> None:
        """Let go of it."""


class Store(Reader, Protocol):
    """What the one writer does. Every method may raise StoreHeldError: nothing changed, try again.

    Any other StoreError ends the service.
    """

    def pin(self, facts: Mapping[str, str]) -> None:
        """Remember what the counts are about, the first time; later the same must be given.

        Raises StoreError when a fact differs from the one remembered.
        """

    def update(
        self,
        keys: AbstractSet[Key],
        devices: AbstractSet[str],
        at_s: int,
        decide: Decide,
        flush: UUID | None = None,
    ) -> Changes:
        """Load records and devices, decide, write the changes: one durable transaction.

        `decide` may be called again when the transaction has to be repeated, and writes no record
        that is not in `keys`. `flush` is the same at every repetition of one flush: a store that
        cannot always know whether a commit succeeded finds out by it. Returns what `decide` gave,
        once committed.
        """

    def add_plan(self, row: PlanRow, revision: RevisionRow | None = None) -> None:
        """Keep, durably, an issued plan and the revision that led to it; an epoch only once."""

    def add_revision(self, row: RevisionRow) -> None:
        """Keep, durably, a revision after which the plan stayed."""

    def beat(self, row: BeatRow) -> None:
        """Keep a worker's heartbeat in place of its last one."""

    def add_audit(self, rows: Sequence[AuditRow]) -> None:
        """Keep what operators did durably, after all that is kept of it."""


class Session(Reader, Protocol):
    """A connection beside the service's; may raise StoreError.

    `orders`: who changes what; written by the first transaction that commits, within it.
    """

    orders: Sequence[AuditRow]
    COUNTED: tuple[str, ...]  # the tables that counts lie in
    PRESENT: tuple[str, ...]  # and device-slots

    def transaction(self) -> AbstractContextManager[None]:
        """Begin, and commit at the end: no flush of the service lies in between."""

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a statement with ? in the place of values."""

    def each(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        """Execute a statement with ? for each of the values."""

    def enrol(self, devices: Sequence[str], at_s: int) -> None:
        """Give devices that have none a row."""

    def device_tables(self) -> list[str]:
        """Return the tables that keep something of single devices, but `devices` and `records`."""

    def put_record(self, device: str, stream: int, record: Record) -> None:
        """Put a record in the place of the one that there is."""

    def forget_deleted(self) -> bool:
        """Overwrite what was deleted, where that holds nobody up; return whether it is."""

    def fold(self, device: str, cls: int, counted: Sequence[CountedCell]) -> None:
        """Add what is kept apart of a device to the counts, not to sums; keep nothing apart.

        `counted`: all of it, as of the class that it is of now.
        """

    def add_plan(self, row: PlanRow) -> None:
        """Keep a plan; raises FencedError for an epoch that is not above every stored one."""
