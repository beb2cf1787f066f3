"""The meter's side: serial bytes to telegrams to slot values, handed to the device's state.

An unplugged port is waited for; telegrams are dated by the trusted clock, or by their own time
where the configuration says so and both agree. Nothing here keeps or shows a reading.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import closing

from agent.config import KINDS, AgentConfig
from agent.errors import PortError
from agent.meters.reading import Asker, Discarded, Meter, Telegram
from agent.shell.clock import kernel_synchronised
from agent.shell.device import Device
from agent.shell.meters import ask, make_meter
from agent.shell.serial_port import SerialPort, chunks, open_port
from agent.shell.uplink import Uplink
from agent.slots import SlotBuilder, SlotValues
from edge_ldp.shell.clock import Clock

RETRY_S = 1.0
SANE_CHECK_S = 10.0
TICK_S = (0.02, 5.0)
SILENT_SLOTS = 2
NOT_YET = ("gone", "no such device", "no device behind the name")
log = logging.getLogger("edge-ldp.agent")


class Feed:
    """Reads one meter for ever; raises PortError only for a port that waiting cannot mend."""

    def __init__(self, config: AgentConfig, device: Device, uplink: Uplink, clock: Clock) -> None:
        self._config = config
        self._device = device
        self._uplink = uplink
        self._clock = clock
        streams = [(s.quantity, KINDS[s.quantity]) for s in config.streams]
        self._builder = SlotBuilder(config.slot_seconds, streams)
        self._sane = self._sane_for_ever
        if self._sane:
            device.trust_clock()
        make_meter(config.meter)  # a plug-in that is not there is said before anything starts
        self._watched = False
        self._said = ""
        self._heard_slot: int | None = None  # the last slot with a telegram; None: no open port

    async def run(self) -> None:
        """Open the port, read it, and open it again when it is gone."""
        table = self._config.meter
        baud, data_bits, parity = table.line
        was_open = False
        while True:
            meter = make_meter(table)
            try:
                opened = await open_port(table.port, baud, parity=parity, data_bits=data_bits)
                with closing(opened) as port:
                    was_open = True
                    self._heard_slot = self._device.slot
                    self._say(f"port {table.port}: open")
                    if isinstance(meter, Asker):
                        await self._ask(port, meter)
                    else:
                        async for data in chunks(port):
                            self._take(meter, data)
            except PortError as exc:
                if exc.reason not in NOT_YET and not was_open:  # after a replug rights come late
                    raise
                self._heard_slot = None
                self._say(f"port {exc}; waiting for it")
            await asyncio.sleep(RETRY_S)

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
            await asyncio.sleep(tick_s)

    @property
    def _sane_for_ever(self) -> bool:
        return self._config.clock.simulated or self._config.clock.trust == "assume"

    async def _ask(self, port: SerialPort, meter: Asker) -> None:
        """Ask the meter for ever."""
        while True:
            _, events = await ask(port, meter)
            self._use(events)

    def _take(self, meter: Meter, data: bytes | None) -> None:
        self._use(meter.silence() if data is None else meter.feed(data))

    def _use(self, events: Sequence[Telegram | Discarded]) -> None:
        for event in events:
            if isinstance(event, Telegram):
                self._heard_slot = self._device.slot
                if self._sane and (time_s := self._date(event)) is not None:
                    readings = {r.quantity: r.value for r in event.readings}
                    self._finish(self._builder.read(time_s, readings))

    def _date(self, telegram: Telegram) -> int | None:
        """Return when a telegram was true, or None when its own time cannot be trusted."""
        now_s = int(self._clock.now())
        if self._config.meter.date_by == "arrival":
            return now_s
        told = telegram.time_s
        if told is None or abs(told - now_s) > self._config.meter.clock_tolerance_s:
            self._say("the meter's clock and this device's disagree: its telegrams are not used")
            return None
        return told

    def _finish(self, closed: SlotValues | None) -> None:
        if closed is not None:
            self._device.close_slot(closed, online=self._uplink.online)
            if self._device.delivery.due:
                self._uplink.wake()

    def _tick(self) -> None:
        by_meter = self._config.meter.date_by == "meter"
        tolerance_s = self._config.meter.clock_tolerance_s if by_meter else 0
        grace_s = tolerance_s + self._builder.border_s  # what ends the slot may still come
        over = int((self._clock.now() - grace_s) // self._config.slot_seconds)
        self._finish(self._builder.close_before(over))
        if self._uplink.online:
            self._device.pack_waiting()
        self._device.housekeeping()
        if self._device.delivery.due:
            self._uplink.wake()
        if self._heard_slot is not None and self._device.slot - self._heard_slot > SILENT_SLOTS:
            self._say(
                "no valid telegram for two slots; check cable, baud rate and parity: "
                "`edge-ldp agent read` shows what arrives"
            )

    def _watch_clock(self) -> None:
        sane = kernel_synchronised()
        if sane and not self._sane:
            self._device.trust_clock()
            log.info("clock: synchronised")
        elif not sane and (self._sane or not self._watched):
            log.info(
                "clock: not synchronised, nothing is reported until it is; `timedatectl` shows why"
            )
        self._sane, self._watched = sane, True

    def _say(self, line: str) -> None:
        """Log a change of state once, not every time."""
        if line != self._said:
            log.info("%s", line)
            self._said = line
