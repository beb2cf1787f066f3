"""What the aggregator asks of a store, whichever engine keeps it.

A store keeps the dedupe state and the counts together: `update` is one durable transaction around a
pure decision. Every store passes the same contract test (tests/aggregator/shell/store_contract.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from aggregator.errors import AggregatorError
from aggregator.records import Changes, Known

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet
    from contextlib import AbstractContextManager
    from uuid import UUID

    from aggregator.archive_record import Doubt
    from aggregator.records import CountRows, Key, Record
    from aggregator.rollup import Kept
    from aggregator.store_rows import (
        ApartRow,
        DeviceRow,
        MarkRow,
        RefusedRow,
        ReleasedChunk,
    )

LAST_BUCKET = 1 << 32
Decide = Callable[[Known], Changes]


class StoreError(AggregatorError):
    """The store cannot be used: `where` it is, `reason`, and what to do."""

    def __init__(self, where: str, reason: str, remedy: str) -> None:
        super().__init__(f"store {where}: {reason}; {remedy}")
        self.where = where
        self.reason = reason


class FencedError(StoreError):
    """A plan whose epoch is not above every stored one: somebody else leads."""

    def __init__(self, where: str, stream: int, epoch: int, newest: int) -> None:
        reason = f"holds epoch {newest} of stream {stream}, so epoch {epoch} is not issued"
        super().__init__(where, reason, "only one aggregator may issue plans")


class StoreHeldError(StoreError):
    """The store cannot be used now (locked, disk full, read-only): nothing was changed."""


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A plan as issued: its exact bytes, and when (seconds UTC)."""

    stream: int
    epoch: int
    issued_s: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class LookRow:
    """A look at a stream's reports (`aggregator.revise.Look`), as JSON; `at_s` seconds UTC."""

    stream: int
    at_s: int
    payload: bytes


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

    def presence(self, stream: int, group: int | None = None) -> list[tuple[int, int]]:
        """Return (bucket, device-slots) of a stream, rising; groups as `counts`."""

    def kept(self, stream: int) -> Kept:
        """Return how far a stream's buckets were added up: a span's counts are in its first."""

    def sums(
        self, stream: int, first_bucket: int, last_bucket: int
    ) -> list[tuple[int, int, int, bytes]]:
        """Return (bucket, epoch, group, sums) of hours that begin in first..last, rising.

        Only those before `kept(stream).until[SUMMED]` stand. Form: aggregator.moments.
        """

    def groups(self) -> dict[str, int]:
        """Return the groups of devices by name; that of any device is "", which is 0."""

    def apart(self) -> list[ApartRow]:
        """Return what was counted of devices that are held, rising; no other count has it."""

    def records(self) -> Iterator[tuple[Key, Record]]:
        """Yield every device's and stream's record, by key."""

    def devices(self) -> list[DeviceRow]:
        """Return every device that has a row, by name."""

    def refused(self) -> list[RefusedRow]:
        """Return what was not counted, by reason and stream."""

    def plan_holds(self) -> dict[int, int]:
        """Return the streams whose plan an operator holds, and since when (seconds UTC)."""

    def retired(self) -> dict[int, int]:
        """Return the streams that an operator retired, and since when (seconds UTC)."""

    def looks(self) -> list[LookRow]:
        """Return every look at reports that was kept, by stream and time."""

    def marks(self) -> list[MarkRow]:
        """Return every device that was marked, by device and stream."""

    def last_commit_s(self) -> int | None:
        """Return when a flush was last committed (seconds UTC), or None if never."""

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

    def states(self, device: str) -> list[tuple[int, Record]]:
        """Return (stream, record) of one device."""

    def add_plan(self, row: PlanRow, look: LookRow | None = None) -> None:
        """Keep an issued plan, and the look that led to it, durably; an epoch is issued once."""

    def add_look(self, row: LookRow) -> None:
        """Keep a look after which the plan stayed durably."""
