"""What the aggregator asks of a store, whichever engine keeps it.

A store keeps the dedupe state and the counts together: `update` is one durable transaction around a
pure decision. Every store passes the same contract test (tests/aggregator/store_contract.py).
"""

import os
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, suppress
from typing import Any, Protocol
from uuid import UUID

from aggregator.counting.records import Changes, Key, Known, Record
from aggregator.errors import StoreError
from aggregator.store.flush_ids import flush_id
from aggregator.store.period_sums import Rows
from aggregator.store.reader import Reader
from aggregator.store.rows import (
    LAST_BUCKET,
    AuditRow,
    BeatRow,
    FleetDay,
    PlanRow,
    RevisionRow,
)
from aggregator.store.shared_reads import ADD_AUDIT, FACT, PUT_FACT, PUT_REVISION
from edge_ldp.protocol.plan import Plan, parse_plan
from edge_ldp.protocol.strict_json import MessageError

__all__ = ["LAST_BUCKET", "PlanRow", "Reader", "RevisionRow"]  # parts of it, made below
IDENTITY = "store"
# stream, epoch, group, class, bucket, who reported, histogram
CountedCell = tuple[int, int, int, int, int, bytes, bytes]
Decide = Callable[[Known], Changes]


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


def identity(store: "Store") -> str:
    """Return the store's own name, 16 hexadecimal digits, made once: plans and receipts carry it.

    It moves with the store and lies in its backups. Raises StoreError.
    """
    found = store.facts().get(IDENTITY)
    if found is None:
        with suppress(StoreError):  # another worker was first
            store.pin({IDENTITY: os.urandom(8).hex()})
        found = store.facts()[IDENTITY]
    return found


class Store(Reader, Protocol):
    """What the one writer does. Every method may raise StoreHeldError: nothing changed, try again.

    Any other StoreError ends the service. What both engines do in the same words is here.
    """

    OTHER: str  # what is to be named where another fleet's counts are found

    @abstractmethod
    def commit(self, work: Callable[[Rows], object]) -> None:
        """Do what `work` says in statements with ? in the place of values: one transaction."""

    def pin(self, facts: Mapping[str, str]) -> None:
        """Remember what the counts are about, the first time; later the same must be given.

        Raises StoreError when a fact differs from the one remembered.
        """

        def work(rows: Rows) -> None:
            for name, value in facts.items():
                rows(
                    "INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING",
                    (name, value),
                )
                kept = next((kept for (kept,) in rows(FACT, (name,))), None)
                if kept != value:
                    reason = f"was made for {name} = {kept}, not {value}"
                    raise StoreError(self.where, reason, f"put it back, or name {self.OTHER}")

        self.commit(work)

    @abstractmethod
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

    @abstractmethod
    def add_plan(self, row: PlanRow, revision: RevisionRow | None = None) -> None:
        """Keep, durably, an issued plan and the revision that led to it; an epoch only once."""

    def add_revision(self, row: RevisionRow) -> None:
        """Keep, durably, a revision after which the plan stayed."""
        self.commit(lambda rows: rows(PUT_REVISION, (row.stream, row.at_s, row.payload)))

    def beat(self, row: BeatRow | FleetDay) -> None:
        """Keep a worker's heartbeat, or the fleet's day, in place of the last one."""
        self.commit(lambda rows: [rows(PUT_FACT, fact) for fact in row.facts])

    def add_audit(self, rows: Sequence[AuditRow]) -> None:
        """Keep what operators did durably, after all that is kept of it."""
        self.commit(lambda do: [do(ADD_AUDIT, row) for row in rows])


class Session(Reader, Protocol):
    """A connection beside the service's; may raise StoreError.

    `orders`: who changes what; written by the first transaction that commits, within it.
    """

    orders: Sequence[AuditRow] = ()
    TABLES: str  # a query of the tables with a column `device`, but `devices` and `records`

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
        return [name for (name,) in self.rows(self.TABLES)]

    def put_record(self, device: str, stream: int, record: Record) -> None:
        """Put a record in the place of the one that there is."""

    def forget_deleted(self) -> bool:
        """Overwrite what was deleted, where that holds nobody up; return whether it is."""

    def fold(self, device: str, cls: int, counted: Sequence[CountedCell]) -> None:
        """Add what is kept apart of a device to the counts, not to sums.

        `counted`: all of it, as of the class that it is of now.
        """

    def add_plan(self, row: PlanRow) -> None:
        """Keep a plan; raises FencedError for an epoch that is not above every stored one."""
