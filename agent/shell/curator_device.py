"""The state of a device that publishes its streams under central DP, in step with its journal.

What slots release is pushed when they close and committed by `flush`, together with the curators'
states: nothing is sent, stored or shown before. What a crash takes with it was never released.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from agent.config import AgentConfig
from agent.curator import StreamCurator
from agent.curator_outbox import ReleasedValue, SeriesRow, ended, pack_released
from agent.curator_setup import Setup, setups
from agent.outbox import Batch
from agent.shell.curator_journal import CuratorJournal
from agent.shell.curator_rows import is_news, series_row, stored_state
from agent.shell.device import Device
from agent.slots import SlotValues
from edge_ldp.continual import CuratorState
from edge_ldp.ledger import Ledger
from edge_ldp.released import MAX_VALUES, PublicDesign
from edge_ldp.shell.clock import Clock

MAX_PAUSE_S = 86_400  # a running chunk that lies still for longer is not gone on with
log = logging.getLogger("edge-ldp.agent")


@dataclass(frozen=True, slots=True)
class _Taken:
    """What became of one push."""

    value: ReleasedValue | None


class CuratorDevice(Device):
    """A Device whose slots go to curators, one a stream; plans are not taken.

    What the local mode left to send is still sent. Raises as Device.
    """

    def __init__(
        self,
        config: AgentConfig,
        journal: CuratorJournal,
        clock: Clock,
        entropy: Callable[[int], bytes] | None = None,
    ) -> None:
        super().__init__(config, journal, clock, entropy)
        self._curators_journal = journal
        self._setups = setups(config)
        self._curators: list[StreamCurator] = []
        self._designs: dict[tuple[int, int], PublicDesign] = journal.designs()
        self._values = journal.released()
        self._fresh: list[ReleasedValue] = []
        self._has_pushed = False

    def trust_clock(self) -> None:
        """Continue each stream's series, or begin one, once the clock is sane.

        What this slot is cannot be known to be unused, so a new series gives it up.
        """
        self._is_clock_sane = True
        if self._curators:
            return
        self._first_slot = self.slot
        self._started_s = self._clock.monotonic()
        self._curators = self._adopt()
        for curator in self._curators:
            self._say_theta(curator)

    def close_slot(self, closed: SlotValues, *, online: bool) -> None:
        """Push a closed slot's values; `flush` commits what they release.

        A slot that the clock has not finished, or beyond one per slot length of monotonic time, or
        closed before the clock was sane, or taken before in either mode, is given up; so is a value
        for which there is no randomness.
        """
        if self._is_clock_sane:
            self.trust_clock()
        if not self._curators or closed.slot >= self.slot or self._closed >= self._allowed():
            return
        self._closed += 1
        if not self._can_store():
            return
        for at, value in enumerate(closed.values):
            self._take(at, closed.slot, value)
        if len(self._fresh) >= MAX_VALUES:
            self.flush(online=online)

    def flush(self, *, online: bool) -> None:
        """Commit states and released values in one transaction; pack them if it is time.

        When the commit fails, the curators go back to what is durable; StorageError is raised
        unless waiting may mend it.
        """
        if not self._has_pushed:
            return
        waiting = [*self._values, *self._fresh]
        batches = self._pack(waiting) if self._may_pack(online) else []
        states = [curator.state() for curator in self._curators]
        changed = [
            (curator, state)
            for curator, state in zip(self._curators, states, strict=True)
            if is_news(curator.kept, state)
        ]
        rows = [series_row(curator, state) for curator, state in changed]
        store = partial(self._curators_journal.commit_series, rows, self._fresh, batches)
        is_stored = False
        try:
            is_stored = not (rows or batches) or self._storage.done(store)
        finally:
            self._fresh, self._has_pushed = [], False
            if not is_stored:
                for curator in self._curators:
                    curator.drop()
        if not is_stored:
            return
        for curator, state in changed:
            had_theta = curator.kept.theta
            curator.keep(state)
            if state.theta != had_theta:
                self._say_theta(curator)
        self._packed(waiting, batches)

    def pack_waiting(self, *, at_once: bool = False) -> None:
        """Pack what waits, of either mode, if it is time for a batch (or `at_once`)."""
        self.flush(online=True)
        is_time = at_once or self._may_pack(online=True)
        super().pack_waiting(at_once=at_once)
        if self._values and is_time:
            waiting, batches = self._values, self._pack(self._values)
            store = partial(self._curators_journal.commit_series, (), (), batches)
            if self._storage.done(store):
                self._packed(waiting, batches)

    def accept_plan(self, name: str, payload: bytes) -> str | None:  # noqa: ARG002 (as Device)
        """Refuse any plan: nothing here is asked for by the network."""
        return "mode"

    def housekeeping(self) -> None:
        """Do as Device does, for released values too."""
        super().housekeeping()
        if self._values and self._is_counting and self._values[0].slot < self._oldest():
            before = len(self._values)
            self._values = self._curators_journal.released()
            log.warning("gave up %d released values not yet sent", before - len(self._values))

    @property
    def _is_counting(self) -> bool:
        return bool(self._curators)

    def _spent(self, ledger: Ledger | None) -> dict[str, int]:
        kept = [curator.kept for curator in self._curators]
        return {
            "reports": ledger.reports if ledger else 0,
            "released": sum(state.released for state in kept),
            "chunks": sum(state.chunks for state in kept),
        }

    def _take(self, at: int, slot: int, value: int | None) -> None:
        curator = self._curators[at]
        if slot <= curator.slot:
            return
        limit = self._slots_in(MAX_PAUSE_S)
        if curator.setup.design.missing == "zero" and slot - curator.slot > limit:
            curator = self._curators[at] = self._begin(curator, slot - 1)
            log.warning("%s: silent too long to count as 0: a new series", _name(curator))
        for late, given in curator.pushes(slot, value):
            self._has_pushed = True
            taken = self._drawn(partial(_push, curator, late, given))
            if taken is None:  # no randomness: given up, and said
                return
            if taken.value is not None:
                self._fresh.append(taken.value)
            if len(self._fresh) >= MAX_VALUES:
                self.flush(online=False)

    def _adopt(self) -> list[StreamCurator]:
        """Continue what is stored under the same design and terms; end whatever else runs."""
        found: list[StreamCurator] = []
        over: list[SeriesRow] = []
        running = {row.stream: row for row in self._curators_journal.series() if not row.is_ended}
        for setup in self._setups:
            row = running.pop(setup.key, None)
            state = None if row is None else stored_state(row, setup)
            if row is not None and state is not None and not self._is_stale(state):
                if not state.theta:  # readings that θ waited for were in memory: from now on
                    state = replace(state, slot=max(state.slot, self.slot))
                found.append(StreamCurator(setup, row.series, self._draw, state))
                continue
            found.append(self._fresh_curator(setup, self.slot, state.theta if state else 0))
            over += [] if row is None else [ended(row)]
        over += [ended(row) for row in running.values()]
        began = [series_row(c, c.kept) for c in found if c.kept.slot == c.series]
        self._curators_journal.commit_series([*over, *began])
        self._designs = self._curators_journal.designs()
        return found

    def _is_stale(self, state: CuratorState) -> bool:
        """Say whether a running chunk has lain still so long that it may be an old copy's.

        A restored disk image would use its noise again; a new chunk costs accuracy alone.
        """
        return state.chunk is not None and self.slot - state.slot > self._slots_in(MAX_PAUSE_S)

    def _slots_in(self, seconds: int) -> int:
        return seconds // self._config.slot_seconds

    def _fresh_curator(self, setup: Setup, slot: int, theta: int = 0) -> StreamCurator:
        """Return a curator at its beginning, after every slot taken before in either mode.

        theta: one that was chosen already; 0: it is to be chosen.
        """
        ledger = self._curators_journal.ledger()
        until = max(slot, self._curators_journal.released_until(), ledger.floor if ledger else -1)
        state = CuratorState(setup.design.fingerprint, slot=until, theta=theta)
        return StreamCurator(setup, until, self._draw, state)

    def _begin(self, curator: StreamCurator, slot: int) -> StreamCurator:
        """End a stream's running series and begin another with the same θ."""
        self.flush(online=False)
        setup = curator.setup
        running = [
            ended(row)
            for row in self._curators_journal.series()
            if row.stream == setup.key and not row.is_ended
        ]
        fresh = self._fresh_curator(setup, slot, curator.theta or 0)
        self._curators_journal.commit_series([*running, series_row(fresh, fresh.kept)])
        self._designs = self._curators_journal.designs()
        return fresh

    def _pack(self, values: list[ReleasedValue]) -> list[Batch]:
        first = {value.stream: value.slot for value in reversed(values)}
        return pack_released(values, first | self._curators_journal.numbers(), self._designs)

    def _packed(self, waiting: list[ReleasedValue], batches: list[Batch]) -> None:
        self._values = [] if batches else waiting
        if batches:
            self._has_grown = True
            self._packed_s = self._clock.monotonic()
            self.delivery.add([batch.key for batch in batches])

    def _say_theta(self, curator: StreamCurator) -> None:
        if curator.theta is None:
            wanted = curator.missing_readings
            log.info("%s: %d readings to choose θ from, not released", _name(curator), wanted)
        else:
            unit = curator.setup.public.unit
            log.info("%s: θ is %d %s, every value is released", _name(curator), curator.theta, unit)


def _push(curator: StreamCurator, slot: int, value: int | None) -> _Taken:
    return _Taken(curator.push(slot, value))


def _name(curator: StreamCurator) -> str:
    return f"stream {curator.setup.public.name}"
