"""The meter's side: serial bytes to telegrams to slot values, handed to the device's state.

An unplugged port is waited for; telegrams are dated by the trusted clock, or by their own time
where the configuration says so and both agree. Nothing here keeps or shows a reading, and `counts`
stay on the device: some of them tell of values (DESIGN §3).
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing

from agent.config import KINDS, AgentConfig
from agent.errors import PortError
from agent.meters.plausibility import Plausibility, Verdict, used
from agent.meters.reading import Asker, Discarded, Meter, Telegram
from agent.ports import address_of
from agent.shell.clock import kernel_synchronised
from agent.shell.device import Device
from agent.shell.meters import ask, make_meter
from agent.shell.ports import PASSING, QUIET_S, Port, chunks, open_port, retry_s
from agent.shell.uplink import Uplink
from agent.slots import SlotBuilder, SlotValues
from edge_ldp.shell.clock import Clock

SANE_CHECK_S = 10.0
TICK_S = (0.02, 5.0)
AGAIN_S = 3600.0
SILENT_INTERVALS = 3
OK = "ok"
NO_PORT = "degraded: port gone"
NO_FRAME = "degraded: no valid frame"
NO_DATE = "degraded: the meter's time is not used"
STALE = "degraded: stale"
NO_CLOCK = "degraded: clock not synchronised"
_WORDS = {
    Verdict.ANEW: "the meter was swapped or set back: no energy is reported of that interval",
    Verdict.FOREIGN: "telegrams of another meter come too: set meter_id to the right one",
    Verdict.WIDTH: "a register shows more than register_digits says: telegrams are not used",
}
log = logging.getLogger("edge-ldp.agent")


class Feed:
    """Reads one meter for ever; raises PortError only for a port that waiting cannot mend."""

    def __init__(
        self,
        config: AgentConfig,
        device: Device,
        uplink: Uplink,
        clock: Clock,
        tap: Callable[[Telegram], None] | None = None,
    ) -> None:
        self._tap = tap  # the household's own broker, where its owner asked for it (agent/tap.py)
        self.counts = Counter[str]()
        self._config = config
        self._device = device
        self._uplink = uplink
        self._clock = clock
        self.ticked_s = self._now_s()  # when slots were last looked after
        streams = [(s.quantity, KINDS[s.quantity]) for s in config.streams]
        self._plausibility = Plausibility(config.meter.register_wh)
        self._builder = SlotBuilder(config.slot_seconds, streams, config.meter.register_wh)
        self._closed: list[SlotValues] = []  # by a meter whose clock is ahead of ours: not yet over
        self._sane_for_ever = config.clock.simulated or config.clock.trust == "assume"
        self._sane = self._sane_for_ever
        if self._sane:
            device.trust_clock()
        make_meter(config.meter)  # a plug-in that is not there is said before anything starts
        self._watched = False
        self._said = ""
        self._warned_s: dict[str, float] = {}
        self._failures = 0  # openings since the last telegram
        self._heard_s: float | None = None  # real time of the last telegram; None: no open port
        self._is_undated = False

    @property
    def health(self) -> str:
        """Return "ok" or why not; never what depends on a value."""
        silent_s = SILENT_INTERVALS * self._config.meter.expected_s
        if not self._sane:
            return NO_CLOCK
        if self._heard_s is None:
            return NO_PORT
        if self._now_s() - self._heard_s > silent_s:
            return NO_FRAME
        if self._plausibility.stale_s(int(self._clock.monotonic())) > self._clock.rate * silent_s:
            return STALE
        return NO_DATE if self._is_undated else OK

    async def run(self) -> None:
        """Open the port, read it, and open it again when it is gone."""
        table = self._config.meter
        baud, data_bits, parity = table.line
        quiet_s = max(QUIET_S, SILENT_INTERVALS * table.expected_s)
        was_open = False
        if (address := address_of(table.port)) and address.is_exposed:
            log.warning("port %s: readings cross the network in the clear", table.port)
        while True:
            meter = make_meter(table)
            try:
                opened = await open_port(
                    table.port, baud, parity=parity, data_bits=data_bits, quiet_s=quiet_s
                )
                with closing(opened) as port:
                    was_open = True
                    self._open()
                    await self._read(port, meter)
            except PortError as exc:
                if exc.reason not in PASSING and not was_open:  # after a replug rights come late
                    raise
                self._heard_s = None
                self._say(f"port {exc}; waiting for it")
            self._failures += 1
            await asyncio.sleep(retry_s(table.port, self._failures))

    async def keep_time(self) -> None:
        """Close slots that are over, pack and expire, and watch whether the clock is sane."""
        least, most = TICK_S
        tick_s = min(most, max(least, self._clock.real(self._config.slot_seconds) / 4))
        checked_s = -SANE_CHECK_S
        while True:
            now_s = asyncio.get_running_loop().time()
            if not self._sane_for_ever and now_s - checked_s >= SANE_CHECK_S:
                checked_s = now_s
                self._watch_clock()
            self._tick()
            self.ticked_s = self._now_s()
            await asyncio.sleep(tick_s)

    def _open(self) -> None:
        self._heard_s = self._now_s()
        if not self._failures:  # else it is said with the first telegram
            self._say(f"port {self._config.meter.port}: open")

    async def _read(self, port: Port, meter: Meter | Asker) -> None:
        """Read, or ask, for ever."""
        if isinstance(meter, Asker):
            while True:
                _, events = await ask(port, meter)
                self._use(events)
        async for data in chunks(port):
            self._take(meter, data)

    def _take(self, meter: Meter, data: bytes | None) -> None:
        self._use(meter.silence() if data is None else meter.feed(data))

    def _use(self, events: Sequence[Telegram | Discarded]) -> None:
        for event in events:
            if isinstance(event, Discarded):
                self.counts[event.reason] += 1
                continue
            verdict = self._plausibility.judge(event, int(self._clock.monotonic()))
            self.counts[verdict.name.lower()] += 1
            if readings := used(event, verdict):
                self._hear()
                if self._tap is not None:
                    self._tap(event)
            if verdict in _WORDS:
                self._warn(_WORDS[verdict])
            if verdict is Verdict.ANEW:
                self._builder.forget_registers()
            if readings and self._sane and (time_s := self._date(event)) is not None:
                self._finish(self._builder.read(time_s, readings))

    def _hear(self) -> None:
        """Note a telegram of our meter."""
        was = self.health
        self._heard_s = self._now_s()
        if self._failures:
            self._failures = 0
            self._say(f"port {self._config.meter.port}: open")
        elif was == NO_FRAME:
            self._say("telegrams arrive again")

    def _date(self, telegram: Telegram) -> int | None:
        """Return when a telegram was true, or None when its own time cannot be trusted."""
        now_s = int(self._clock.now())
        if self._config.meter.date_by == "arrival":
            return now_s
        told = telegram.time_s
        self._is_undated = told is None or abs(told - now_s) > self._config.meter.clock_tolerance_s
        if told is None:
            self._warn("the meter tells no time without doubt: its telegrams are not used")
        elif self._is_undated:
            self._warn("the meter's clock and this device's disagree: its telegrams are not used")
        self.counts["undated"] += self._is_undated
        return None if self._is_undated else told

    def _finish(self, closed: SlotValues | None) -> None:
        """Hand on what is closed as soon as it is over by this device's clock too."""
        if closed is not None:
            self._closed.append(closed)
        now = self._device.slot
        over = [one for one in self._closed if one.slot < now]
        self._closed = [one for one in self._closed if one.slot >= now]
        for one in over:
            self._device.close_slot(one, online=self._uplink.online)
        if over and self._device.delivery.due:
            self._uplink.wake()

    def _tick(self) -> None:
        by_meter = self._config.meter.date_by == "meter"
        tolerance_s = self._config.meter.clock_tolerance_s if by_meter else 0
        grace_s = tolerance_s + self._builder.border_s  # what ends the slot may still come
        over = int((self._clock.now() - grace_s) // self._config.slot_seconds)
        self._finish(self._builder.close_before(over))
        self._device.flush(online=self._uplink.online)
        if self._uplink.online:
            self._device.pack_waiting()
        self._device.housekeeping()
        if self._device.delivery.due:
            self._uplink.wake()
        self._watch()

    def _watch(self) -> None:
        """Say what only time shows: that nothing came, or always the same."""
        health = self.health
        if health == NO_FRAME:
            seconds = SILENT_INTERVALS * self._config.meter.expected_s
            self._say(
                f"no valid telegram for {seconds} s; check cable, baud rate and parity: "
                "`edge-ldp agent probe` finds them, `edge-ldp agent read` shows what arrives"
            )
        elif health == STALE:
            self._warn("stale: the meter repeats the same time; is it stuck?")

    def _watch_clock(self) -> None:
        sane = kernel_synchronised()
        if sane and not self._sane:
            self._device.trust_clock()
            log.info("clock: synchronised")
        elif not sane and (self._sane or not self._watched):
            log.info(
                "clock: not synchronised, nothing is reported until it is; `timedatectl` shows why "
                '([clock] trust = "assume" where something else keeps it right)'
            )
        self._sane, self._watched = sane, True

    def _now_s(self) -> float:
        """Return real seconds that never step, whatever the clock's rate."""
        return self._clock.real(self._clock.monotonic())

    def _say(self, line: str) -> None:
        """Log a change of the port's state once, not every time."""
        if line != self._said:
            log.info("%s", line)
            self._said = line

    def _warn(self, line: str) -> None:
        """Log what goes on beside the port's state once an hour, however often it is found."""
        now_s = self._now_s()
        if now_s - self._warned_s.get(line, -AGAIN_S) >= AGAIN_S:
            log.warning("%s", line)
            self._warned_s[line] = now_s
