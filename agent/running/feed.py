"""One meter's side: serial bytes to telegrams to slot values, handed to the home's (`feeds`).

An unplugged port is waited for; telegrams are dated by the trusted clock, or by their own time
where the configuration says so and both agree. Nothing here keeps or shows a reading, and `counts`
stay on the device: some of them tell of values (docs/design.md, Privacy model).
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing

from agent.claims.dating import Dating
from agent.claims.own_slots import OwnSlots, Streams
from agent.claims.slots import BURST_S, SlotBuilder, SlotValues
from agent.claims.spacing import Spacing
from agent.config import AgentConfig
from agent.errors import PortError
from agent.meters.plausibility import Belief, Plausibility, used
from agent.meters.port_names import is_exposed, source_of
from agent.meters.reading import GAS, Asker, Discarded, Meter, Telegram
from agent.meters.section import MeterTable
from agent.meters.unread import Unread
from agent.meters.words import withheld_text
from agent.ports.meters import ANSWERING_S, ask, is_answer, make_meter
from agent.ports.open_port import open_meter, retry_s
from agent.ports.port import PASSING, QUIET_S, Port
from agent.running.memory import give_back
from edge_ldp.service.clock import Clock

AGAIN_S = 3600.0
SILENT_INTERVALS = 3
OK = "ok"
NO_PORT = "degraded: port gone"
NO_FRAME = "degraded: no valid frame"
NO_DATE = "degraded: the meter's time is not used"
STALE = "degraded: stale"
NOT_UNDERSTOOD = "degraded: telegrams are not understood"
OTHER_METER = "degraded: another meter speaks on the port"
OTHER_FORMAT = "degraded: the meter sends a format that is not read: "
SWAPPED = "degraded: the meter was swapped, no energy of this interval"
LATE_S = 60  # by how much a telegram may be older than the newest, and no clock that was set back
MISSED_TELEGRAMS = 3  # in a row without a quantity: the meter does not tell it
_WORDS = {
    Belief.ANEW: "the meter was set back: no energy is reported of that interval",
    Belief.SWAPPED: (
        "meter swapped: another one's telegrams came after a minute without the one before; no "
        "energy is reported of that interval"
    ),
    Belief.FOREIGN: "telegrams of another meter come too: set meter_id to the right one",
    Belief.WIDTH: "a register shows more than register_digits says: set it to what the meter has",
}
log = logging.getLogger("edge-ldp.agent")


class Feed:
    """Reads one meter for ever; raises PortError only for a port that waiting cannot mend."""

    def __init__(  # noqa: PLR0913 (what it works with)
        self,
        config: AgentConfig,
        table: MeterTable,
        clock: Clock,
        *,
        is_sane: Callable[[], bool],
        finish: Callable[[SlotValues], None],
        tap: Callable[[Telegram], None] | None = None,
    ) -> None:
        self.tap = tap  # the household's own broker, where its owner asked (agent/tap/messages.py)
        self.share: Callable[[bytes], None] | None = None  # its own readers (agent/tap/share.py)
        self.counts = Counter[str]()
        self._config = config
        self._table = table
        self._streams = config.streams_of(table)
        self._clock = clock
        self._is_sane = is_sane
        self._finish = finish
        self._plausibility = Plausibility(table.register_wh)
        self.begin_anew()
        self._spacing = Spacing(table.expected_s)  # in real seconds
        self._dating = Dating(table.date_by == "meter", table.clock_tolerance_s)
        make_meter(table)  # a plug-in that is not there is said before anything starts
        self._last_line = ""
        self._warned_s: dict[str, float] = {}
        self._failures = 0  # openings since the last telegram
        self._telegram_s: float | None = None  # real time of the last one ever
        self._heard_s: float | None = None  # real time of the last telegram; None: no open port
        self._is_undated = False
        self._missed = {stream.source: 0 for stream in self._streams}  # telegrams in a row
        self._is_foreign = False  # telegrams of another meter came since the last of ours
        self._unread = Unread()
        self._is_line = source_of(table.port) is None
        self._told: tuple[str, int | None] | None = None  # our meter's name and time, the last told
        self._is_repeating = False
        self._swapped_s: float | None = None  # real time of the last swap
        self._swapped_slot = -1
        self._answering_s: float | None = None  # real time of bytes of an answer not yet whole

    @property
    def health(self) -> str:
        """Return "ok" or why not, and of which meter; never what depends on a value."""
        name, found = self._table.name, self.state
        if found == NOT_UNDERSTOOD:
            found += f": line {self._unread.line}"
        return f"{found} ({name})" if name and found != OK else found

    @property
    def state(self) -> str:
        """Return the same without the meter's name and the line's, which are the household's."""
        heard_s, silent_s = self._heard_s, self._silent_s
        is_silent = heard_s is None or self._now_s() - heard_s > silent_s
        if self._unread.format or (is_silent and not self._is_answering()):
            return self._silent_state()
        if self._swapped_slot == int(self._clock.now()) // self._config.slot_seconds:
            return SWAPPED
        if missing := self._missing():
            return f"degraded: the meter tells no {missing}"
        if self._plausibility.stale_s > self._clock.rate * silent_s:
            return STALE
        if sparse := self._sparse():
            return f"degraded: telegrams come too rarely for {sparse}"
        return NO_DATE if self._is_undated else OK

    def _is_answering(self) -> bool:
        """Say whether a meter that was asked, at a port that is open, is amid its answer."""
        last_s = None if self._heard_s is None else self._answering_s
        return last_s is not None and self._now_s() - last_s <= ANSWERING_S

    def _silent_state(self) -> str:
        """Return what is wrong with a line that gives no telegram."""
        if self._heard_s is None:
            return NO_PORT
        if self._unread.format:
            return OTHER_FORMAT + self._unread.format
        if self._is_foreign:
            return OTHER_METER
        if self._is_repeating:
            return STALE
        return NOT_UNDERSTOOD if self._unread.line else NO_FRAME

    @property
    def swap_age_s(self) -> int | None:
        """How many seconds ago another meter took the place of ours; None: not since the start."""
        return None if self._swapped_s is None else int(self._now_s() - self._swapped_s)

    @property
    def telegram_age_s(self) -> int | None:
        """How many seconds ago the last telegram of our meter came; None: none came yet."""
        return None if self._telegram_s is None else int(self._now_s() - self._telegram_s)

    @property
    def _silent_s(self) -> int:
        """How long nothing may come before the line is in doubt; an outage is no interval."""
        most_s = max(self._table.expected_s, self._config.slot_seconds)
        return SILENT_INTERVALS * min(self._spacing.seconds, most_s)

    async def run(self) -> None:
        """Open the port, read it, and open it again when it is gone."""
        table = self._table
        quiet_s = max(QUIET_S, SILENT_INTERVALS * table.expected_s)
        was_open = False
        if is_exposed(table.port):
            log.warning("port %s: readings cross the network in the clear", table.shown_port)
        while True:
            meter = make_meter(table, beside=self.tap is not None)
            try:
                with closing(await open_meter(table, quiet_s=quiet_s)) as port:
                    if not was_open:
                        give_back()  # what opens this kind of port was imported just now
                    was_open = True
                    self.note_open()
                    await self._read(port, meter)
            except PortError as exc:
                if exc.reason not in PASSING and not was_open:  # after a replug rights come late
                    raise
                self._heard_s = None
                self._log_once(f"port {exc}; waiting for it", logging.WARNING)
            self._failures += 1
            await asyncio.sleep(retry_s(table.port, self._failures))

    def note_open(self) -> None:
        """Note that the port is open: from now on silence is counted."""
        self._heard_s = self._now_s()
        if not self._failures:  # else it is said with the first telegram
            self._log_once(f"port {self._table.shown_port}: open")

    async def _read(self, port: Port, meter: Meter | Asker) -> None:
        """Read, or ask, for ever; no name here holds what was read while the next is waited for."""
        while True:
            if isinstance(meter, Asker):
                data, events = await ask(port, meter)
                self.hear_answer(meter, data, events)
                del data, events
            else:
                data = await port.read()
                self.receive(meter, data)
                del data

    def hear_answer(
        self, meter: Asker, data: bytes | None, events: Sequence[Telegram | Discarded]
    ) -> None:
        """Use what a meter that is asked sent; what came of a round that failed is no answer."""
        self._look(data)
        if is_answer(meter, data, events) and not self._unread.discarded:
            self._answering_s = self._now_s()
        self._use(events)

    def receive(self, meter: Meter, data: bytes | None) -> None:
        """Use the bytes that the port gave; None: it was silent for so long that a frame ends."""
        self._look(data)
        if data is not None and self.share is not None:
            self.share(data)
        self._use(meter.silence() if data is None else meter.feed(data))

    def _look(self, data: bytes | None) -> None:
        """Look at bytes for another format, while no telegram comes; else none is kept."""
        last_s = self._telegram_s
        if last_s is None or self._now_s() - last_s > self._spacing.seconds:
            self._unread.take(data)

    def _use(self, events: Sequence[Telegram | Discarded]) -> None:
        for event in events:
            if isinstance(event, Discarded):
                self._note_discarded(event)
                continue
            if self._repeats(event):
                continue
            belief = self._plausibility.judge(event, int(self._clock.monotonic()))
            self.counts[belief.name.lower()] += 1
            if belief is not Belief.FOREIGN:
                self._told = (event.meter_id, event.time_s)
            if readings := used(event, belief):
                self._note_telegram()
                self._note_quantities(event)
                if self.tap is not None:
                    self.tap(event)
            if belief in _WORDS:
                self._warn(_WORDS[belief])
            if belief in (Belief.ANEW, Belief.SWAPPED):
                self._begin_registers(belief)
            if readings and self._is_sane() and (time_s := self._date(event)) is not None:
                self._close(self._builder.read(time_s, readings))
                now_s = int(self._clock.now())
                self._close(*self._own.read(time_s, readings, event.gas, now_s))

    def _repeats(self, telegram: Telegram) -> bool:
        """Say whether a page or topic tells an old telegram: by the meter's time alone.

        Again, late, or by a second source of the same meter. Much older: the meter's clock was set.
        """
        name, newest_s = self._told or ("", None)
        told_s = None if self._is_line or telegram.meter_id != name else telegram.time_s
        behind_s = -1 if told_s is None or newest_s is None else newest_s - told_s
        self._is_repeating = 0 <= behind_s < LATE_S
        self.counts["repeated"] += self._is_repeating
        return self._is_repeating

    def _note_discarded(self, event: Discarded) -> None:
        self.counts[event.reason] += 1
        self._unread.note(event)
        if event.reason == "identity":
            self._hear_foreign()

    def _begin_registers(self, belief: Belief) -> None:
        """Take no rise from what registers showed before; a swap is an event of its own."""
        self._close(self._builder.forget_registers(), *self._own.forget_registers())
        if belief is Belief.SWAPPED:
            self._swapped_s = self._now_s()
            self._swapped_slot = int(self._clock.now()) // self._config.slot_seconds

    def _missing(self) -> str:
        """Return the configured quantities that the meter does not tell, and their streams."""
        missed = [s for s in self._streams if self._missed[s.source] >= MISSED_TELEGRAMS]
        return ", ".join(stream.told for stream in missed)

    def _note_quantities(self, telegram: Telegram) -> None:
        """Watch whether what is configured is told at all: registers, never what they show."""
        quantities = telegram.shown
        self._missed = {
            quantity: 0 if quantity in quantities else missed + 1
            for quantity, missed in self._missed.items()
        }
        if missing := self._missing():
            known = ", ".join(quantities) or "nothing"
            why = withheld_text(telegram.withheld, self._missed)
            self._warn(
                f"the meter tells no {missing}, so nothing of it is ever reported; it tells "
                f"{known}: {why or '`edge-ldp agent check --live` says more'}"
            )

    def _hear_foreign(self) -> None:
        """Note a whole telegram that is not of the meter in meter_id."""
        self._is_foreign = True
        self._warn(
            f"port {self._table.shown_port}: another meter speaks there than the one in meter_id; "
            "were adapters swapped? `edge-ldp agent ports` names them, `read` shows who speaks"
        )

    def _note_telegram(self) -> None:
        """Note a telegram of our meter."""
        was = self.state
        self._heard_s = self._telegram_s = self._now_s()
        self._spacing.note(int(self._heard_s))
        self._is_foreign, self._unread = False, Unread()
        if self._failures:
            self._failures = 0
            self._log_once(f"port {self._table.shown_port}: open")
        elif was in (NO_FRAME, OTHER_METER, NOT_UNDERSTOOD) or was.startswith(OTHER_FORMAT):
            self._log_once("telegrams arrive again")

    def _date(self, telegram: Telegram) -> int | None:
        """Return when a telegram was true, or None when its own time cannot be trusted."""
        time_s = self._dating.date(telegram.time_s, int(self._clock.now()))
        self._is_undated = time_s is None
        if self._is_undated and telegram.time_s is None:
            self._warn("the meter tells no time without doubt: its telegrams are not used")
        elif self._is_undated:
            self._warn("the meter's clock and this device's disagree: its telegrams are not used")
        self.counts["undated"] += self._is_undated
        return time_s

    def is_ahead(self, slot: int) -> bool:
        """Say whether slots far beyond this one were closed: the clock was set back since."""
        return self._builder.is_ahead(slot)

    def begin_anew(self) -> None:
        """Forget every slot: the clock they went by was wrong."""
        config, apart = self._config, self._config.apart
        each = dict(zip(config.positions_of(self._table), self._streams, strict=True))
        kinds = [(one.source, one.kind) for at, one in each.items() if at not in apart]
        self._builder = self._new_builder(config.slot_seconds, kinds)
        own = {at: (s.slot_seconds, s.source, s.kind) for at, s in each.items() if at in apart}
        self._own = OwnSlots(own, self._new_builder, GAS)

    def close_over(self) -> int:
        """Close the slots whose time is over; return the first that may still be open."""
        passed_s = self._dating.passed(int(self._clock.now()))
        self._close(self._builder.pass_to(passed_s), *self._own.pass_to(passed_s))
        return self._builder.first_open(passed_s)

    def _close(self, *closed: SlotValues | None) -> None:
        """Hand on slots that closed, and say what the ones before each lacked."""
        for one in filter(None, closed):
            self._finish(one)
            if sparse := self._sparse():
                self._warn(
                    f"{sparse}: slots are given up, for telegrams come too rarely; `edge-ldp agent "
                    "check` says how often they must"
                )

    def _sparse(self) -> str:
        """Return the quantities, and their streams, for which telegrams came too rarely lately."""
        given_up = {*self._builder.given_up, *self._own.given_up}
        return ", ".join(s.told for s in self._streams if s.source in given_up)

    def _new_builder(self, slot_seconds: int, streams: Streams) -> SlotBuilder:
        rate = self._clock.rate
        return SlotBuilder(
            slot_seconds,
            streams,
            self._table.register_wh,
            interval_s=max(1, int(rate * self._table.expected_s)),
            burst_s=0 if self._table.date_by == "meter" else BURST_S,
        )

    def watch(self) -> None:
        """Say what only time shows: that nothing came, or always the same."""
        state = self.state
        if state in (NO_FRAME, NOT_UNDERSTOOD) or state.startswith(OTHER_FORMAT):
            self._log_once(self._silent_text(), logging.WARNING)
        elif state == STALE:
            self._warn("stale: the meter repeats the same time; is it stuck?")

    def _silent_text(self) -> str:
        """Return what is wrong and what to do: of a cable only where bytes look damaged."""
        if known := self._unread.text(is_proved=self._table.has_checksum is True):
            return f"port {self._table.shown_port}: {known}"
        return (
            f"no valid telegram for {self._silent_s} s; check cable, baud rate and parity: "
            "`edge-ldp agent probe` finds them, `edge-ldp agent read` shows what arrives"
        )

    def _now_s(self) -> float:
        """Return real seconds that never step, whatever the clock's rate."""
        return self._clock.real(self._clock.monotonic())

    def _log_once(self, line: str, level: int = logging.INFO) -> None:
        """Log a change of the port's state once, not every time."""
        if line != self._last_line:
            log.log(level, "%s", line)
            self._last_line = line

    def _warn(self, line: str) -> None:
        """Log what goes on beside the port's state once an hour, however often it is found."""
        now_s = self._now_s()
        if now_s - self._warned_s.get(line, -AGAIN_S) >= AGAIN_S:
            log.warning("%s%s", f"meter {self._table.name}: " if self._table.name else "", line)
            self._warned_s[line] = now_s
