"""The mode of a device that publishes its streams under central DP, in step with its journal.

What slots release is pushed when they close and committed by `flush`, together with the curators'
states: nothing is sent, stored or shown before. What a crash takes with it was never released.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from agent.claims.batches import Batch, BatchSeries
from agent.claims.rollback import ReportingLife, Told
from agent.claims.silence import WORDS
from agent.claims.slots import SlotValues
from agent.config import AgentConfig
from agent.config.curated_streams import Setup, setups
from agent.curator import stream
from agent.curator.journal import CuratorJournal
from agent.curator.outbox import ReleasedValue, SeriesRow, ended, pack_released
from agent.curator.running_file import ENDING
from agent.state.core import DeviceCore
from agent.state.place import running_path
from edge_ldp.continual import CuratorState
from edge_ldp.protocol.messages import StreamStatus
from edge_ldp.protocol.released import MAX_VALUES, PublicDesign
from edge_ldp.protocol.signing import Keyring
from edge_ldp.service.health import DEGRADED, OK

MAX_PAUSE_S = 86_400  # a running chunk that lies still for longer is not gone on with
log = logging.getLogger("edge-ldp.agent")


def curator_mode(core: DeviceCore) -> "CuratorMode":
    """Return the mode of a device whose slots go to curators, one a stream.

    What the local mode left to send is still sent. With a keyring, receipts are to be signed.
    """
    place = running_path(core.journal.path, ENDING, core.config.device.keep or "disk")
    return CuratorMode(core, CuratorJournal(core.journal, place))


class CuratorMode:
    """Owner of the curators and of what they released; plans are not taken."""

    refusals = ()

    def __init__(self, core: DeviceCore, journal: CuratorJournal) -> None:
        self._core = core
        self._journal = journal
        self._setups = setups(core.config)
        self._curators: list[stream.StreamCurator] = []
        self._designs: dict[tuple[int, int], PublicDesign] = journal.designs()
        self._values = journal.released()
        self._fresh: list[ReleasedValue] = []
        self._has_pushed = False
        self._copied_until = 0  # slot: until then the health says so

    @property
    def is_open(self) -> bool:
        """Whether every stream has its series."""
        return bool(self._curators)

    @property
    def health(self) -> str:
        """Return "ok", or that this was an older copy, for a day or to a restart.

        A curator's silence is a meter's or a clock's, who say so.
        """
        return DEGRADED + WORDS["rollback"] if self._core.slot < self._copied_until else OK

    def open(self) -> None:
        """Continue each stream's series, or begin one.

        What this slot is cannot be known to be unused, so a new series gives it up.
        """
        if self._curators:
            return
        self._core.count_from_now()
        if self._has_other_slots():
            self._renumber()
        self._curators = self._adopt()
        for curator in self._curators:
            self._say_theta(curator)

    def take(self, closed: SlotValues, *, online: bool) -> None:
        """Push a closed slot's values; `flush` commits what they release.

        A slot taken before in either mode is given up; so is a value for which there is no
        randomness.
        """
        for at, value in enumerate(closed.values):
            self._push_slot(at, closed.slot, value)
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
        packed = self._pack(waiting, is_time=self._core.may_pack(online=online))
        states = [curator.state() for curator in self._curators]
        changed = [
            (curator, state)
            for curator, state in zip(self._curators, states, strict=True)
            if stream.must_be_stored(curator.kept, state)
        ]
        rows = [stream.series_row(curator, state) for curator, state in changed]
        is_stored = False
        try:
            if packed is not None:
                store = partial(self._journal.commit_series, rows, self._fresh, *packed)
                is_stored = not (rows or packed[0]) or self._core.storage.done(store)
        finally:
            self._fresh, self._has_pushed = [], False
            if not is_stored:
                for curator in self._curators:
                    curator.drop()
        if not is_stored or packed is None:
            return
        for curator, state in changed:
            had_theta = curator.kept.theta
            curator.keep(state)
            if state.theta != had_theta:
                self._say_theta(curator)
        self._packed(waiting, packed[0])

    def pack_waiting(self) -> None:
        """Pack the released values that wait."""
        if self._values:
            waiting, packed = self._values, self._pack(self._values, is_time=True)
            if packed is not None and self._core.storage.done(
                partial(self._journal.commit_series, (), (), *packed)
            ):
                self._packed(waiting, packed[0])

    def keep(self) -> None:
        """Give up released values beyond the age limit."""
        oldest = self._core.oldest
        if any(value.slot < oldest for value in self._values):
            lost = self._journal.expire(oldest)
            self._values = self._journal.released()
            log.warning("gave up %d released values not yet sent", lost)

    def accept_plan(self, name: str, payload: bytes) -> str | None:  # noqa: ARG002 (one interface)
        """Refuse any plan: nothing here is asked for by the network."""
        return "mode"

    def reconfigure(self, old: AgentConfig, keyring: Keyring | None) -> None:
        """Do nothing: what a curator does changes with a restart only."""

    @property
    def life(self) -> ReportingLife:
        """From after every slot that this state took: a stream without a number took none."""
        until = self._core.journal.released_until()
        return ReportingLife(until + 1, until, self._core.slot)

    @property
    def is_silent(self) -> bool:
        """Whether a word of copies was acted upon within the last day, since a start."""
        return self._core.slot < self._copied_until

    def suspect(self, told: Sequence[Told]) -> None:
        """End every series and begin others; give up what was not packed: another may have it."""
        if self._core.suspect([one._replace(is_settled=True) for one in told], None, None):
            lost = self._journal.expire(1 << 40) if self._values else 0
            self._begin_again()
            log.warning("gave up %d released values that were not packed", lost)

    def roll_back(self, told: Sequence[Told], *, is_proof: bool) -> None:  # noqa: ARG002 (as local)
        """End every series: their keys made noise for values that this state never saw.

        θ, which is public, is kept by a curator that runs.
        """
        if self._core.roll_back(told, None, None):
            self._begin_again()

    def _begin_again(self) -> None:
        self._copied_until = self._core.slot + self._slots_in(MAX_PAUSE_S)
        self._values, self._fresh, self._has_pushed = [], [], False
        running = [ended(row) for row in self._journal.series() if not row.is_ended]
        if not self._curators:
            self._journal.commit_series(running)
        for at, curator in enumerate(self._curators):
            self._curators[at] = self._begin(curator, self._core.slot)

    def described(self, account: StreamStatus) -> StreamStatus:
        """Return a stream's account as it is: no plan stands behind it."""
        return account

    def spent(self) -> dict[str, int]:
        """Return what the local mode spent on this file, and what the curators released."""
        ledger = self._core.journal.ledger()
        kept = [curator.kept for curator in self._curators]
        return {
            "reports": ledger.reports if ledger else 0,
            "released": sum(state.released for state in kept),
            "chunks": sum(state.chunks for state in kept),
        }

    def _push_slot(self, at: int, slot: int, value: int | None) -> None:
        curator = self._curators[at]
        limit = self._slots_in(MAX_PAUSE_S)
        if curator.slot - slot > limit:
            curator = self._curators[at] = self._begin(curator, slot - 1)
            self._renumber()
            log.warning("%s: the clock had been ahead: a new series", _name(curator))
        if slot <= curator.slot:
            return
        if curator.setup.design.missing == "zero" and slot - curator.slot > limit:
            curator = self._curators[at] = self._begin(curator, slot - 1)
            log.warning("%s: silent too long to count as 0: a new series", _name(curator))
        for late, given in curator.pushes(slot, value):
            self._has_pushed = True
            released = self._core.drawn(partial(curator.push, late, given))
            if released is None:  # no randomness: given up, and said
                return
            self._fresh += released
            if len(self._fresh) >= MAX_VALUES:
                self.flush(online=False)

    def _adopt(self) -> list[stream.StreamCurator]:
        """Continue what is stored under the same design and terms; end whatever else runs."""
        found: list[stream.StreamCurator] = []
        over: list[SeriesRow] = []
        running = {row.stream: row for row in self._journal.series() if not row.is_ended}
        for setup in self._setups:
            row = running.pop(setup.key, None)
            if row is not None and not stream.is_of(row, setup):
                name = setup.public.name
                log.warning("stream %s: its settings changed: a new series begins", name)
            state = None if row is None else stream.stored_state(row, setup)
            if row is not None and state is not None and not self._is_stale(state):
                if not state.theta:  # readings that θ waited for were in memory: from now on
                    state = replace(state, slot=max(state.slot, self._core.slot))
                found.append(stream.StreamCurator(setup, row.series, self._core.draw, state))
                continue
            found.append(
                self._fresh_curator(setup, self._core.slot, stream.known_theta(row, setup))
            )
            over += [] if row is None else [ended(row)]
        over += [ended(row) for row in running.values()]
        began = [stream.series_row(c, c.kept) for c in found if c.kept.slot == c.series]
        self._journal.commit_series([*over, *began])
        self._designs = self._journal.designs()
        return found

    def _is_stale(self, state: CuratorState) -> bool:
        """Say whether a running chunk has lain still so long that it may be an old copy's.

        Or whether the clock had been ahead when it took its last slot.

        A restored disk image would use its noise again; a new chunk costs accuracy alone.
        """
        limit, pause = self._slots_in(MAX_PAUSE_S), self._core.slot - state.slot
        return pause < -limit or (state.chunk is not None and pause > limit)

    def _has_other_slots(self) -> bool:
        """Say whether batches of released values were last numbered under another slot length."""
        seconds = self._core.config.slot_seconds
        last = {one.stream: one.slot_seconds for one in self._core.journal.series()}
        return any(last.get(one.key) not in (None, 0, seconds) for one in self._setups)

    def _slots_in(self, seconds: int) -> int:
        return seconds // self._core.config.slot_seconds

    def _fresh_curator(self, setup: Setup, slot: int, theta: int = 0) -> stream.StreamCurator:
        """Return a curator at its beginning, after every slot taken before in any mode.

        But for slots far ahead: the clock was wrong then.

        theta: one that was chosen already; 0: it is to be chosen.
        """
        ledger = self._core.journal.ledger()
        summed = self._journal.summed_until_s() // self._core.config.slot_seconds - 1
        taken = (self._core.journal.released_until(), ledger.floor if ledger else -1, summed)
        limit = slot + self._slots_in(MAX_PAUSE_S)
        until = max(slot, *(one for one in taken if one <= limit), -1)
        state = CuratorState(setup.design.fingerprint, slot=until, theta=theta)
        return stream.StreamCurator(setup, until, self._core.draw, state)

    def _begin(self, curator: stream.StreamCurator, slot: int) -> stream.StreamCurator:
        """End a stream's running series and begin another with the same θ."""
        self.flush(online=False)
        setup = curator.setup
        running = [
            ended(row)
            for row in self._journal.series()
            if row.stream == setup.key and not row.is_ended
        ]
        fresh = self._fresh_curator(setup, slot, curator.theta or 0)
        self._journal.commit_series([*running, stream.series_row(fresh, fresh.kept)])
        self._designs = self._journal.designs()
        return fresh

    def _pack(
        self, values: Collection[ReleasedValue], *, is_time: bool
    ) -> tuple[list[Batch], list[BatchSeries]] | None:
        """Return the batches of values, if it is time, and numberings that begin with them.

        None while none can be drawn.
        """
        core = self._core
        begun = core.drawn(lambda: core.begun({value.stream for value in values}))
        if begun is None:
            return None
        if not is_time:
            return [], begun
        return pack_released(sorted(values), core.numbering(begun), self._designs), begun

    def _renumber(self) -> None:
        """Begin other numberings, after what waits: slots begin again below those before."""
        self.pack_waiting()
        core = self._core
        begun = core.drawn(lambda: core.begun((one.key for one in self._setups), anew=True))
        if begun is not None:
            known = core.journal.numbers()
            here = [one for one in begun if one.stream in known]
            core.storage.done(lambda: core.journal.commit(None, (), here))

    def _packed(self, waiting: list[ReleasedValue], batches: list[Batch]) -> None:
        self._values = [] if batches else waiting
        self._core.note_packed(batches)

    def _say_theta(self, curator: stream.StreamCurator) -> None:
        if curator.theta is None:
            wanted = curator.missing_readings
            log.info("%s: %d readings to choose θ from, not released", _name(curator), wanted)
        else:
            unit = curator.setup.public.unit
            log.info("%s: θ is %d %s, every value is released", _name(curator), curator.theta, unit)


def _name(curator: stream.StreamCurator) -> str:
    return f"stream {curator.setup.public.name}"
