"""This device's state: ledger, plans, waiting reports and batches, in step with the journal.

Every method is a decision of a core followed by one commit. Nothing here waits, and nothing is in
memory that the journal does not hold, but for which batches were sent.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from agent.config import AgentConfig
from agent.manifest import manifest
from agent.outbox import RESEND_INTERVALS, Batch, Delivery, Key, fitting, pack
from agent.pipeline import DAY_SECONDS, Claim, claims_allowed, decide
from agent.shell.journal import Journal
from agent.shell.plan_book import PlanBook
from agent.shell.storage import Storage
from agent.slots import SlotValues
from edge_ldp.device.errors import EntropyError
from edge_ldp.device.frame import MAX_REPORTS
from edge_ldp.entropy import StuckEntropyError, system_draw
from edge_ldp.ledger import Ledger, adopt, open_ledger
from edge_ldp.messages import Receipt, Status
from edge_ldp.shell.clock import Clock
from edge_ldp.signing import Keyring
from edge_ldp.version import __version__

KIB = 1024
T = TypeVar("T")
log = logging.getLogger("edge-ldp.agent")


class Device:
    """The one owner of the journal; while nothing can be stored, slots are given up and it waits.

    Raises StorageError when a commit fails for a reason that does not pass: then nothing was.

    `entropy(size) -> bytes` is the operating system's unless given. While it fails, slots are given
    up; StuckEntropyError, when it repeats itself, is for the process to end with. With a `keyring`
    only plans that one of its keys signed are taken.
    """

    def __init__(
        self,
        config: AgentConfig,
        journal: Journal,
        clock: Clock,
        entropy: Callable[[int], bytes] | None = None,
        keyring: Keyring | None = None,
    ) -> None:
        self._config = config
        self._has_grown = True
        self._most = MAX_REPORTS
        self._journal = journal
        self._storage = Storage()
        self._clock = clock
        self._draw = system_draw(entropy)
        self._is_dry = False
        self._is_clock_sane = False
        self._started_s = clock.monotonic()
        self._closed = 0
        self._ledger: Ledger | None = None
        self._first_slot = self.slot
        journal.shed(config.sending.max_kib * KIB)  # before all of it is read into memory
        self._waiting = journal.waiting()
        self._packed_s = clock.monotonic() - config.sending.batch_interval_s
        self._book = PlanBook(config, journal, self._storage, clock, keyring)
        self.delivery = Delivery(
            config.sending.in_flight, RESEND_INTERVALS * config.sending.receipt_interval_s
        )
        self.delivery.add(journal.keys())

    @property
    def slot(self) -> int:
        """The slot that the clock is in."""
        return int(self._clock.now() // self._config.slot_seconds)

    @property
    def health(self) -> str:
        """Return "ok", or "degraded: storage" while nothing can be stored."""
        return self._storage.health

    def trust_clock(self) -> None:
        """Open the ledger, once the clock is sane: a new one's window is spent from now on.

        Without randomness it stays closed, and is tried again with every slot.
        """
        self._is_clock_sane = True
        self._book.trust_clock()
        if self._ledger is None:
            self._first_slot = self.slot
            self._started_s, self._closed = self._clock.monotonic(), 0
            self._ledger = self._drawn(self._open_ledger)

    def close_slot(self, closed: SlotValues, *, online: bool) -> None:
        """Randomise a closed slot if it reports, and commit claim and report together.

        A slot that the clock has not finished, or beyond one per slot length of monotonic time, or
        closed before the clock was sane, or for which there is no randomness, is given up without a
        report.
        """
        if self._is_clock_sane:
            self.trust_clock()
        ledger, seconds = self._ledger, self._config.slot_seconds
        if ledger is None or closed.slot >= self.slot or self._closed >= self._allowed():
            return
        self._closed += 1
        if not self._can_store():
            return
        claim = self._drawn(lambda: decide(ledger, closed, self._book.active, seconds, self._draw))
        if claim is None:
            return
        waiting = [*self._waiting, *claim.reports]
        first = {report.stream: report.slot for report in claim.reports}
        following = first | self._journal.numbers()
        batches = pack(waiting, following, self._most) if self._may_pack(online) else []
        if self._storage.done(lambda: self._commit(claim, batches, closed.slot)):
            self._waiting = [] if batches else waiting

    def pack_waiting(self, *, at_once: bool = False) -> None:
        """Pack what waits, if it is time for a batch (or `at_once`)."""
        if self._waiting and (at_once or self._may_pack(online=True)):
            batches = pack(self._waiting, self._journal.numbers(), self._most)
            if self._storage.done(lambda: self._commit(None, batches, 0)):
                self._waiting = []

    def reconfigure(self, config: AgentConfig, keyring: Keyring | None) -> None:
        """Go by a configuration that only tightens this one (agent.config.changes).

        Plans in force that it no longer allows, or that no key of the ring signed, are dropped. A
        smaller window is a new one: it begins after the silence that every new window has.
        """
        old, self._config = self._config, config
        self._book.reconfigure(config, keyring)
        self.delivery.window = config.sending.in_flight
        self.delivery.resend_s = RESEND_INTERVALS * config.sending.receipt_interval_s
        self._has_grown = True
        if self._ledger is not None and config.window != old.window:
            self._ledger = self._drawn(self._open_ledger)

    def limit_frames(self, room_bytes: int) -> None:
        """Pack no larger frames from now on: the broker takes none. Packed ones stay."""
        self._most = fitting(room_bytes)

    def accept_plan(self, name: str, payload: bytes) -> str | None:
        """Put a plan in force, or return why not (`PlanBook.accept`)."""
        return self._book.accept(name, payload)

    def accept_receipt(self, receipt: Receipt) -> int:
        """Delete the batches that a receipt covers and return how many."""
        covered = self.delivery.received(receipt)
        if covered and not self._storage.done(lambda: self._journal.settle(covered)):
            self.delivery.add(covered)  # still stored, so still to be settled
            return 0
        return len(covered)

    def payload(self, key: Key) -> bytes | None:
        """Return the bytes of a batch, or None when it was settled meanwhile."""
        return self._journal.payload(key)

    def housekeeping(self) -> None:
        """Make overdue batches due again and give up reports beyond the age limit.

        Age follows monotonic time: a clock that jumps ahead, or is not sane, expires nothing.
        """
        self.delivery.overdue(self._clock.monotonic())
        if self._is_counting and not self._storage.is_held:
            self._storage.done(self._give_up_old)

    def _give_up_old(self) -> None:
        oldest = self._oldest()
        expired = self._journal.expire(oldest)
        kept = [report for report in self._waiting if report.slot >= oldest]
        if expired or len(kept) < len(self._waiting):
            self.delivery.forget(expired)
            log.warning(
                "gave up %d batches and %d unsent reports older than the age limit",
                len(expired),
                len(self._waiting) - len(kept),
            )
            self._waiting = kept
        self._shed()

    @property
    def _is_counting(self) -> bool:
        """Whether slots are counted from a sane clock on."""
        return self._ledger is not None

    def _oldest(self) -> int:
        """Return the oldest slot within the age limit."""
        slots = self._config.sending.max_age_days * DAY_SECONDS // self._config.slot_seconds
        return min(self.slot, self._first_slot + self._allowed()) - slots

    def flush(self, *, online: bool) -> None:
        """Make durable what closed slots gave: here each slot already is."""

    def _shed(self) -> None:
        """Give up the oldest reports beyond the size limit; looks only when something was added."""
        if not self._has_grown:
            return
        self._has_grown = False
        before = len(self._waiting)
        lost = self._journal.shed(self._config.sending.max_kib * KIB)
        self.delivery.forget(lost)
        self._waiting = self._journal.waiting() if lost or before else []
        if lost or len(self._waiting) < before:
            log.warning(
                "gave up %d batches and %d unsent reports beyond the size limit, oldest first",
                len(lost),
                before - len(self._waiting),
            )

    def status(self, state: str) -> Status:
        """Return what may be said of this device: counts, plans, ledger; nothing about values."""
        ledger = self._ledger or self._journal.ledger()
        return Status(
            state=state,
            software=__version__,
            streams=tuple(map(self._book.described, self._journal.status())),
            ledger=self._spent(ledger),
            refusals=tuple(self._book.refusals),
            manifest=manifest(self._config),
        )

    def _spent(self, ledger: Ledger | None) -> dict[str, int]:
        return {
            "reports": ledger.reports if ledger else 0,
            "day_reports": ledger.day_reports if ledger else 0,
            "window_reports": self._config.window.reports,
            "window_slots": self._config.window.slots,
        }

    def _allowed(self) -> int:
        """Return how many slots may have been closed since the clock is sane."""
        elapsed_s = self._clock.monotonic() - self._started_s
        return claims_allowed(elapsed_s, self._config.slot_seconds)

    def _may_pack(self, online: bool) -> bool:  # noqa: FBT001 (the one question)
        """Say whether a batch may be made now: there is a link, and the pace allows it."""
        since_s = self._clock.monotonic() - self._packed_s
        return online and since_s >= self._config.sending.batch_interval_s

    def _commit(self, claim: Claim | None, batches: list[Batch], first_batch: int) -> None:
        self._journal.commit(claim, batches, first_batch)
        self._has_grown = True
        if claim:
            self._ledger = claim.ledger
        if batches:
            self._packed_s = self._clock.monotonic()
            self.delivery.add([batch.key for batch in batches])

    def _drawn(self, work: Callable[[], T | None]) -> T | None:
        """Return what `work` draws, or None while there is no randomness; said once.

        No word outlives it, used or not: a restored snapshot repeats none.
        """
        try:
            made = work()
        except StuckEntropyError:
            raise
        except EntropyError as exc:
            if not self._is_dry:
                log.warning("%s; slots are given up until there is", exc)
            self._is_dry = True
            return None
        self._draw.forget()
        if self._is_dry and made is not None:
            log.info("there is randomness again")
            self._is_dry = False
        return made

    def _can_store(self) -> bool:
        """Say whether it is worth while to draw: what cannot be stored is not randomised."""
        return not self._storage.is_held or self._storage.done(self._journal.probe)

    def _open_ledger(self) -> Ledger | None:
        stored, window = self._journal.ledger(), self._config.window
        if stored is None:
            ledger = open_ledger(window, self.slot, self._draw)
            log.warning("no usable ledger: the window counts as spent, reports begin after it")
        else:
            ledger = adopt(stored, window, self.slot, self._draw)
        until = self._journal.released_until()  # a slot that a curator took reports no more
        if until > ledger.floor:
            ledger = replace(ledger, floor=until)
        if ledger != stored and not self._storage.done(lambda: self._journal.save_ledger(ledger)):
            return None
        return ledger
