"""What a device is in either mode: one journal, waiting reports, batches, receipts, randomness.

Every change is one commit, and nothing is in memory that the journal does not hold, but for which
batches were sent. What closed slots give is a mode's (`agent.state.device`), which works with the
public names here.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from agent.claims import batches as packing
from agent.claims.delivery import RESEND_INTERVALS, Delivery
from agent.claims.elapsed import Elapsed, Moment
from agent.claims.limits import BatchPace, SlotCount
from agent.claims.pipeline import Claim, Report
from agent.claims.rollback import Told, as_kept
from agent.config import AgentConfig
from agent.state.disk_trouble import Storage
from agent.state.journal import Journal
from edge_ldp.device.errors import EntropyError
from edge_ldp.device.frame import MAX_REPORTS
from edge_ldp.entropy import StuckEntropyError, system_draw
from edge_ldp.protocol.ledger import Ledger
from edge_ldp.protocol.messages import Receipt
from edge_ldp.protocol.released import FIRST_SUMS_KEY
from edge_ldp.protocol.signing import Keyring
from edge_ldp.service.backoff import unhurried
from edge_ldp.service.clock import Clock

KIB = 1024
T = TypeVar("T")
log = logging.getLogger("edge-ldp.agent")


class Kept(Protocol):
    """Who is told of batches that were stored, and of those that arrived: the household's page."""

    def made(self, batches: Sequence[packing.Batch]) -> None:
        """Note batches that were stored."""

    def came(self, keys: Iterable[packing.Key]) -> None:
        """Note batches that a receipt covers."""


class DeviceCore:
    """The one owner of the journal. `count`: slots since the clock is sane.

    `entropy(size) -> bytes` is the operating system's unless given; `keyring`: who signs plans and
    receipts, None where nobody has to. Methods raise StorageError when a commit fails for a reason
    that does not pass: then nothing was stored. `is_doubted`: somebody who may lie told that this
    state is a copy: what waits is neither sent nor given up.
    """

    def __init__(
        self,
        config: AgentConfig,
        journal: Journal,
        clock: Clock,
        entropy: Callable[[int], bytes] | None = None,
        keyring: Keyring | None = None,
    ) -> None:
        self.config = config
        self.keyring = keyring
        self.journal = journal
        self.clock = clock
        self.storage = Storage()
        self.kept: Kept | None = None
        self.refused = 0  # reports, ever, by the last receipt: the broker retains it
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
        self._draw_series = system_draw()  # as for waits
        self.delivery.resume(journal.keys())
        self.is_doubted = any(not one.is_settled for one in journal.told())
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
        return online and not self.is_doubted and self._pace.is_time(self.clock.monotonic())

    def commit(self, claim: Claim, *, online: bool) -> bool:
        """Store a claim, packed with what waits if it is time; return whether it is stored."""
        waiting = [*self._waiting, *claim.reports]
        return self._commit(claim, waiting, is_time=self.may_pack(online=online))

    def pack_waiting(self) -> None:
        """Pack the reports that wait."""
        if self._waiting and not self.is_doubted:
            self._commit(None, self._waiting, is_time=True)

    def begun(self, streams: Iterable[int], *, anew: bool = False) -> list[packing.BatchSeries]:
        """Return a series for each stream that has none yet, or only that of a state of version 1.

        Or of sums over slots of another length; or, `anew`, another one for each. To be stored with
        what it begins with; raises EntropyError.
        """
        numbers, found = self.journal.numbers(), []
        lengths = {one.stream: one.slot_seconds for one in self.journal.series()}
        own = {FIRST_SUMS_KEY + at: one.slot_seconds for at, one in enumerate(self.config.streams)}
        for stream in sorted(set(streams)):
            old = numbers.get(stream, packing.Numbering())
            seconds = own.get(stream, self.config.slot_seconds)
            is_other = stream in own and lengths.get(stream, seconds) != seconds
            if anew or not old.series or is_other:
                base, series = old.following - 1, packing.random_series(self._draw_series)
                found.append(packing.BatchSeries(stream, base, series, seconds, base))
        return found

    def numbering(self, begun: Iterable[packing.BatchSeries]) -> dict[int, packing.Numbering]:
        """Return how each stream's next batch is numbered, once these series have begun."""
        news = {one.stream: packing.Numbering(one.base + 1, one.series, one.base) for one in begun}
        return self.journal.numbers() | news

    def count_otherwise(self, ledger: Ledger, elapsed: Elapsed) -> bool:
        """Store that slots or the clock are other ones; return whether that is stored.

        What waits is packed first: it is of the slots before. Then other series begin.
        """
        self.pack_waiting()
        streams = self.journal.numbers()
        begun = self.drawn(lambda: self.begun(streams, anew=True))
        if begun is None or (self._waiting and not self.is_doubted):
            return False
        return self.storage.done(lambda: self.journal.suspect((), begun, ledger, elapsed))

    def note_packed(self, batches: list[packing.Batch]) -> None:
        """Send batches that were stored, and count the pace from now."""
        if batches:
            if self.kept is not None:
                self.kept.made(batches)
            self._has_grown = True
            self._pace.packed_s = self.clock.monotonic()
            self.delivery.add([batch.key for batch in batches])

    def limit_frames(self, room_bytes: int) -> None:
        """Pack no larger frames from now on: the broker takes none. Packed ones stay."""
        self._most = packing.fitting(room_bytes)

    def settle(self, receipt: Receipt, *, is_live: bool = True) -> int:
        """Delete the batches that a receipt covers and return how many; `is_live`: not retained."""
        self.refused = receipt.refused
        ours = as_kept(receipt, self.journal.series())
        covered = self.delivery.covered(ours)
        if covered and self.kept is not None:
            self.kept.came(covered)
        if covered and not self.storage.done(lambda: self.journal.settle(covered)):
            return 0
        return len(self.delivery.received(ours, self.clock.monotonic(), is_live=is_live))

    def suspect(self, told: Sequence[Told], ledger: Ledger | None, elapsed: Elapsed | None) -> bool:
        """Begin other series, as a state that may be a copy; return whether that is stored.

        Nothing is given up: batches are what they were when they were sent.
        """
        begun = self.drawn(lambda: self.begun(self.journal.numbers(), anew=True))
        if begun is None or not self.storage.done(
            lambda: self.journal.suspect(told, begun, ledger, elapsed)
        ):
            return False
        self.is_doubted = any(not one.is_settled for one in told)
        log.warning(
            "rollback: somebody tells of reports that this state never made: it may be an older"
            " copy; no receipt is signed here, so nothing is given up yet, and a silence begins"
        )
        return True

    def believe_again(self, told: Sequence[Told]) -> None:
        """Go on: what was told is not so."""
        if self.storage.done(lambda: self.journal.untell(told)):
            self.is_doubted = any(not one.is_settled for one in self.journal.told())
            log.warning("what was told of a copy is not so: what waits is sent")

    def roll_back(
        self, told: Sequence[Told], ledger: Ledger | None, elapsed: Elapsed | None
    ) -> bool:
        """Give up all that waits, as of a state that is a copy; return whether that is stored."""
        lost = 0
        begun = self.drawn(lambda: self.begun(self.journal.numbers(), anew=True))

        def store() -> None:
            nonlocal lost
            lost = self.journal.roll_back(told, begun or (), self.slot, ledger, elapsed)

        if begun is None or not self.storage.done(store):
            return False
        self.delivery.clear()
        self._waiting = []
        self.is_doubted = False
        log.warning(
            "rollback: the broker tells of reports that this state never made, so it is an older"
            " copy; %d reports of it are given up",
            lost,
        )
        return True

    def give_up_old(self) -> None:
        """Give up reports beyond the age limit, then the oldest beyond the size limit."""
        oldest = self.oldest
        expired = self.journal.expire(oldest, self.config.slot_seconds)
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

    def _commit(self, claim: Claim | None, waiting: list[Report], *, is_time: bool) -> bool:
        begun = self.drawn(lambda: self.begun(report.stream for report in waiting))
        if begun is None:
            return False
        batches = packing.pack(waiting, self.numbering(begun), self._most) if is_time else []
        if not self.storage.done(lambda: self.journal.commit(claim, batches, begun)):
            return False
        self._committed_s = self.clock.monotonic()
        self._has_grown = True
        self._waiting = [] if batches else waiting
        self.note_packed(batches)
        return True
