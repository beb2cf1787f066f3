"""What a device is in either mode: one journal, waiting reports, batches, receipts, randomness.

Every change is one commit, and nothing is in memory that the journal does not hold, but for which
batches were sent. What closed slots give is a mode's (`agent.state.device`), which works with the
public names here.
"""

import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

from agent.claims.batches import Batch, fitting, pack
from agent.claims.delivery import RESEND_INTERVALS, Delivery
from agent.claims.elapsed import Elapsed, Moment
from agent.claims.limits import BatchPace, SlotCount
from agent.claims.pipeline import Claim, Report
from agent.config import AgentConfig
from agent.state.disk_trouble import Storage
from agent.state.journal import Journal
from edge_ldp.device.errors import EntropyError
from edge_ldp.device.frame import MAX_REPORTS
from edge_ldp.entropy import StuckEntropyError, system_draw
from edge_ldp.protocol.ledger import Ledger
from edge_ldp.protocol.messages import Receipt
from edge_ldp.service.backoff import unhurried
from edge_ldp.service.clock import Clock

KIB = 1024
T = TypeVar("T")
log = logging.getLogger("edge-ldp.agent")


class DeviceCore:
    """The one owner of the journal. `count`: slots since the clock is sane.

    `entropy(size) -> bytes` is the operating system's unless given. Methods raise StorageError when
    a commit fails for a reason that does not pass: then nothing was stored.
    """

    def __init__(
        self,
        config: AgentConfig,
        journal: Journal,
        clock: Clock,
        entropy: Callable[[int], bytes] | None = None,
    ) -> None:
        self.config = config
        self.journal = journal
        self.clock = clock
        self.storage = Storage()
        self.draw = system_draw(entropy)
        self._is_dry = False
        self._has_grown = True
        self._most = MAX_REPORTS
        journal.shed(config.sending.max_kib * KIB)  # before all of it is read into memory
        self._waiting = journal.waiting()
        interval_s = config.sending.batch_interval_s
        self._pace = BatchPace(interval_s, clock.monotonic() - interval_s)
        self.delivery = Delivery(
            config.sending.in_flight,
            RESEND_INTERVALS * config.sending.receipt_interval_s,
            unhurried(system_draw()),  # reports' randomness is theirs alone
        )
        self.delivery.resume(journal.keys())
        self._committed_s: float | None = None
        self.count_from_now()

    @property
    def slot(self) -> int:
        """The slot that the clock is in."""
        return int(self.clock.now() // self.config.slot_seconds)

    @property
    def moment(self) -> Moment:
        """Now, by the wall clock and by the time since the boot."""
        return Moment(self.clock.now(), int(self.clock.since_boot() * 1000))

    @property
    def commit_age_s(self) -> int | None:
        """How many real seconds ago something was stored; None: nothing since the start."""
        if self._committed_s is None:
            return None
        return int(self.clock.real(self.clock.monotonic() - self._committed_s))

    @property
    def oldest(self) -> int:
        """The oldest slot within the age limit."""
        days = self.config.sending.max_age_days
        return self.count.oldest(self.slot, self.clock.monotonic(), days)

    def count_from_now(self) -> None:
        """Begin to count slots and age: the clock is believed from now on."""
        self.count = SlotCount(self.config.slot_seconds, self.slot, self.clock.monotonic())

    def reconfigure(self, config: AgentConfig) -> None:
        """Go by the pace and the limits of a changed configuration."""
        self.config = config
        self._pace.interval_s = config.sending.batch_interval_s
        self.delivery.window = config.sending.in_flight
        self.delivery.resend_s = RESEND_INTERVALS * config.sending.receipt_interval_s
        self._has_grown = True

    def drawn(self, work: Callable[[], T | None]) -> T | None:
        """Return what `work` draws, or None while there is no randomness; said once.

        No word outlives it, used or not: a restored snapshot repeats none. Raises
        StuckEntropyError when the source repeats itself: the process is to end with it.
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
        self.draw.forget()
        if self._is_dry and made is not None:
            log.info("there is randomness again")
            self._is_dry = False
        return made

    def can_store(self) -> bool:
        """Say whether it is worth while to draw: what cannot be stored is not randomised."""
        return not self.storage.is_held or self.storage.done(self.journal.probe)

    def may_pack(self, *, online: bool) -> bool:
        """Say whether a batch may be made now: there is a link, and the pace allows it."""
        return online and self._pace.is_time(self.clock.monotonic())

    def commit(self, claim: Claim, *, online: bool) -> bool:
        """Store a claim, packed with what waits if it is time; return whether it is stored."""
        waiting = [*self._waiting, *claim.reports]
        slot = claim.ledger.floor
        following = dict.fromkeys((one.stream for one in claim.reports), slot)
        batches = self._pack(waiting, following) if self.may_pack(online=online) else []
        return self._commit(claim, waiting, batches, slot)

    def pack_waiting(self) -> None:
        """Pack the reports that wait."""
        if self._waiting:
            self._commit(None, self._waiting, self._pack(self._waiting, {}), 0)

    def note_packed(self, batches: list[Batch]) -> None:
        """Send batches that were stored, and count the pace from now."""
        if batches:
            self._has_grown = True
            self._pace.packed_s = self.clock.monotonic()
            self.delivery.add([batch.key for batch in batches])

    def limit_frames(self, room_bytes: int) -> None:
        """Pack no larger frames from now on: the broker takes none. Packed ones stay."""
        self._most = fitting(room_bytes)

    def settle(self, receipt: Receipt, *, is_live: bool = True) -> int:
        """Delete the batches that a receipt covers and return how many; `is_live`: not retained."""
        covered = self.delivery.received(receipt, self.clock.monotonic(), is_live=is_live)
        if covered and not self.storage.done(lambda: self.journal.settle(covered)):
            self.delivery.add(covered)  # still stored, so still to be settled
            return 0
        return len(covered)

    def roll_back(
        self, following: Mapping[int, int], ledger: Ledger | None, elapsed: Elapsed | None
    ) -> bool:
        """Give up all that waits, as of a state that is a copy; return whether that is stored."""
        lost = 0

        def store() -> None:
            nonlocal lost
            lost = self.journal.roll_back(following, ledger, elapsed)

        if not self.storage.done(store):
            return False
        self.delivery.clear()
        self._waiting = []
        log.warning(
            "rollback: the broker tells of reports that this state never made, so it is an older"
            " copy; %d reports of it are given up, and a window of silence begins",
            lost,
        )
        return True

    def give_up_old(self) -> None:
        """Give up reports beyond the age limit, then the oldest beyond the size limit."""
        oldest = self.oldest
        expired = self.journal.expire(oldest)
        kept = [report for report in self._waiting if report.slot >= oldest]
        if expired or len(kept) < len(self._waiting):
            self.delivery.forget(expired)
            log.warning(
                "gave up %d unconfirmed batches and %d unsent reports older than the age limit",
                len(expired),
                len(self._waiting) - len(kept),
            )
            self._waiting = kept
        self._shed()

    def _shed(self) -> None:
        """Give up the oldest reports beyond the size limit; looks only when something was added."""
        if not self._has_grown:
            return
        self._has_grown = False
        before = len(self._waiting)
        lost = self.journal.shed(self.config.sending.max_kib * KIB)
        self.delivery.forget(lost)
        self._waiting = self.journal.waiting() if lost or before else []
        if lost or len(self._waiting) < before:
            log.warning(
                "gave up %d unconfirmed batches and %d unsent reports beyond the size limit",
                len(lost),
                before - len(self._waiting),
            )

    def _pack(self, waiting: list[Report], following: dict[int, int]) -> list[Batch]:
        return pack(waiting, following | self.journal.numbers(), self._most)

    def _commit(
        self, claim: Claim | None, waiting: list[Report], batches: list[Batch], first_batch: int
    ) -> bool:
        if not self.storage.done(lambda: self.journal.commit(claim, batches, first_batch)):
            return False
        self._committed_s = self.clock.monotonic()
        self._has_grown = True
        self._waiting = [] if batches else waiting
        self.note_packed(batches)
        return True
