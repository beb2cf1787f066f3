"""Sums at home beside the local mode: what closed slots add up to leaves once a period, with noise.

A slot is added to a running sum where the home's one window account allows it: after its silence,
in a slot of elapsed time in which none was added, and in no period that was released. A stream's
own slot counts as all that it has of the home's: it begins after the silence, and may come late,
but in no stretch of elapsed time more often than such a stretch touches them. What runs belongs to
that account: where a window begins anew (another share, a clock that had been ahead, a
copy, a lost state) it is given up, and costs nothing. Source: docs/faults.md, AGT-34 to AGT-36.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import partial

from agent.claims.lifetime import REACHED, Beside, end_words
from agent.claims.rollback import Told
from agent.claims.slots import SlotValues
from agent.config import AgentConfig
from agent.config.summed_streams import SumTerms, day_cost, sum_terms
from agent.curator.running_file import SUMS_ENDING, RunningFile
from agent.curator.sums import RunningSum, added, begin_sum, packed
from agent.curator.sums_journal import SumsJournal
from agent.errors import StorageError
from agent.state.core import DeviceCore
from agent.state.journal import Journal
from agent.state.local_mode import LATE_S, LocalMode
from agent.state.place import running_path
from edge_ldp.period_sums import booked
from edge_ldp.protocol.signing import Keyring
from edge_ldp.service.health import DEGRADED

LATE_SLOTS = 2  # after a period's last slot, for values of it that are still to come
log = logging.getLogger("edge-ldp.agent")


def sums_mode(core: DeviceCore) -> "SumsMode":
    """Return the mode of a device that adds slots up, and randomises where their streams say so.

    Raises StorageError where what runs cannot be kept as `[device] keep` wants it.
    """
    state = core.journal.path
    place = running_path(state, SUMS_ENDING, core.config.device.keep or "run")
    beside = running_path(state, SUMS_ENDING, "disk")
    if place != beside:
        RunningFile(beside).unlink()
    return SumsMode(core, SumsJournal(core.journal, RunningFile(place)))


def forget_sums(config: AgentConfig, journal: Journal) -> None:
    """Take away what still runs of sums that their owner wants no more; what left is booked."""
    for keep in dict.fromkeys(("disk", config.device.keep or "run")):
        with suppress(StorageError):  # where none can be kept, none is
            running = RunningFile(running_path(journal.path, SUMS_ENDING, keep))
            if running.path.exists():
                running.unlink()
                log.warning("the sums of this file ended: what ran of them is given up")


class SumsMode(LocalMode):
    """A local mode, with its window, ledger and plans, that is owner of the running sums, too."""

    def __init__(self, core: DeviceCore, journal: SumsJournal) -> None:
        super().__init__(core)
        self._journal = journal
        self._sums: dict[int, RunningSum] = {}
        self._left = journal.spent()  # ε of what was released
        self._configure(core.config)
        stored, seconds = core.journal.ledger(), core.config.slot_seconds
        ends = [row.until_s // seconds for row in journal.released()]
        floor = stored.floor if stored else core.slot
        self._summed_since = max([floor, *ends])  # a copy released up to there what we did
        began, due, sums = journal.running()
        self._began = began  # of the account that what runs belongs to
        self._due = due  # by key, the elapsed slot that its next one is due in
        self._sums = {one.terms.key: one for one in sums}
        self._tell_cost()

    @property
    def health(self) -> str:
        """Return "ok", or why nothing is counted."""
        if self.is_open and all(map(self._is_beyond, self._terms.values())):
            return DEGRADED + REACHED
        return super().health

    def open(self) -> None:
        """Open the account, or do nothing if it is."""
        super().open()
        self._follow()

    def _follow(self) -> None:
        """Give up what runs if it belongs to another account than the one that is open."""
        if not self.is_open:
            return
        ledger, elapsed = self.account
        if self._began != ledger.silent_until:
            self._give_up("a window began anew")
            self._began = ledger.silent_until
            now = elapsed.at(self._core.moment).slot
            self._due = {one.key: now + 2 * one.parts - 1 for one in self._terms.values()}

    def take(self, closed: SlotValues, *, online: bool) -> None:
        """Add a closed slot's values up, and hand those of local streams on."""
        if closed.at is not None:
            self._add(closed.slot, {closed.at: closed.values[0]})
            return
        self._add(closed.slot, {at: closed.values[at] for at in self._summed})
        values = tuple(closed.values[at] for at in self._positions)
        if values:
            super().take(SlotValues(closed.slot, values), online=online)

    def keep(self) -> None:
        """End the periods that are over, where no value came that would."""
        super().keep()
        if self.is_open:
            self._end(
                one
                for one in self._sums.values()
                if self._core.slot // one.terms.parts > one.last_slot + LATE_SLOTS
            )

    def reconfigure(self, old: AgentConfig, keyring: Keyring | None) -> None:
        """Go by the core's configuration; other shares begin a window anew."""
        super().reconfigure(old, keyring)
        self._configure(self._core.config)
        self._follow()

    def suspect(self, told: Sequence[Told]) -> None:
        """Begin anew, as a state that may be a copy."""
        super().suspect(told)
        self._follow()

    def roll_back(self, told: Sequence[Told], *, is_proof: bool) -> None:
        """Give up all that waits and runs, as a copy. Proven: book what the other may release."""
        super().roll_back(told, is_proof=is_proof)
        self._give_up("this is a copy")
        if is_proof:
            slot, wide = self._core.slot, self._core.config.policy.window.slots
            first = min(self._summed_since, slot - wide)
            for terms in self._terms.values():
                self._core.storage.done(partial(self._journal.concede, terms, first, slot))
            self._left = self._journal.spent()
            self._tell_cost()
        self._follow()

    def spent(self) -> dict[str, int]:
        """Return what the ledger counts, and the slots that were released in sums."""
        released = self._journal.released()
        return super().spent() | {
            "sums": len(released),
            "summed_slots": sum(one.slots for one in released),
        }

    def _configure(self, config: AgentConfig) -> None:
        self._terms = sum_terms(config)
        streams = config.streams
        self._positions = [at for at, one in enumerate(streams) if one.mode != "sums"]
        self._summed = [at for at in self._terms if at not in config.apart]
        self._a_day = sum(map(day_cost, self._terms.values()), Fraction(0))
        self._tell_cost()

    def _tell_cost(self) -> None:
        """Let the owner's limit of all ε count what left in sums, and what runs."""
        running = (booked(s.terms.span, s.terms.scale, s.slots) for s in self._sums.values())
        self.beside = Beside(sum(running, self._left), self._a_day)

    def _is_beyond(self, terms: SumTerms, more: Fraction = Fraction(0)) -> bool:
        """Say whether another slot of a sum is beyond the owner's limit of all ε."""
        life, beside = self._core.config.lifetime, self.beside
        if life is None:
            return False
        rest = life.rest(self.account[0], beside.epsilon + more)
        if not self._core.config.local_streams:
            days = int(max(0, rest) / beside.a_day)
            has_ended = rest < terms.per_slot
            self.tell_end(end_words(days, f"ε {max(0, rest):g}", has_ended=has_ended))
        return rest < terms.per_slot

    def _add(self, slot: int, values: Mapping[int, int | None]) -> None:
        """Add values of slots of one length where the account allows it; end periods before them.

        `values` by their streams' positions.
        """
        core, keys = self._core, [self._terms[at].key for at in values]
        self._end([s for key in keys if (s := self._sums.get(key)) and s.last_slot < slot])
        before, due = self._sums, self._due
        added = {} if core.is_doubted else dict(self._added(slot, values))
        if added:
            self._sums = before | {key: one for key, (one, _) in added.items()}
            self._due = due | {key: then for key, (_, then) in added.items()}
            if not core.storage.done(self._seal):
                self._sums = before
            self._tell_cost()

    def _due_after(self, terms: SumTerms, slot: int) -> int | None:
        """Return when the slot after this one is due; None where this is not to be added.

        Each puts off the next by all of its parts, and comes as many before that is due, but one:
        so any w slots of elapsed time have no more of them than any w of the wall clock touch.
        """
        core, parts = self._core, terms.parts
        ledger, elapsed = self.account
        first, last = slot * parts, (slot + 1) * parts - 1
        now = elapsed.when_over(last, core.moment, LATE_S * core.clock.rate)
        ago = max(parts - 1, core.slot - 1 - first)
        is_silent = first < ledger.silent_until or now.slot - ago < now.silent
        due = self._due.setdefault(terms.key, now.slot + 2 * parts - 1)
        return None if is_silent or now.slot <= due - parts else max(due, now.slot) + parts

    def _added(
        self, slot: int, values: Mapping[int, int | None]
    ) -> Iterator[tuple[int, tuple[RunningSum, int]]]:
        """Yield the sums that have a value more, and when their next is due, by streams' keys."""
        more = Fraction(0)
        for at, value in values.items():
            terms = self._terms[at]
            running, due = self._sums.get(terms.key), self._due_after(terms, slot)
            if value is None or due is None:
                continue
            if self._is_beyond(running.terms if running else terms, more):
                continue
            if running is None or running.terms.layout.period(slot) < running.period:
                running = begin_sum(terms, slot)  # a clock that had been ahead: what ran is lost
                if self._journal.is_summed(running):
                    continue
            if running.last < slot <= running.last_slot:
                more += running.terms.per_slot
                yield terms.key, (added(running, slot, value), due)

    def _end(self, over: Iterable[RunningSum]) -> None:
        """Release the periods that are over."""
        for running in list(over):
            if self._release(running):
                del self._sums[running.terms.key]
                self._core.storage.done(self._seal)
                self._left = self._journal.spent()
                self._tell_cost()

    def _release(self, running: RunningSum) -> bool:
        """Release a period, or give it up if too little of it was seen; False: it is to wait."""
        core, terms, name = self._core, running.terms, f"stream {running.terms.name}"
        if self._journal.is_summed(running):
            return True  # a crash came between the release and the key's end
        if running.slots < terms.least:
            seen = f"{running.slots} of {terms.layout.slots} slots"
            log.warning("%s: a period is given up, %s of it were seen", name, seen)
            return True
        series = core.drawn(lambda: core.begun([terms.key]))
        if series is None or core.is_doubted:
            return False
        number = core.numbering(series)[terms.key]
        batch = core.drawn(lambda: packed(running, number, core.draw))
        elapsed = self.account[1].at(core.moment)
        if batch is None or not core.storage.done(
            partial(self._journal.release, running, batch, series, elapsed)
        ):
            return False
        core.note_packed([batch])
        log.info("%s: a period's sums leave, with noise", name)
        return True

    def _give_up(self, why: str) -> None:
        if self._sums:
            log.warning("sums: %s: what ran of their periods is given up", why)
        self._sums = {}
        self._core.storage.done(self._seal)
        self._tell_cost()

    def _seal(self) -> None:
        self._journal.keep(self._began, self._due, self._sums.values())
