"""A home's meters together: each read by a task of its own, their slots decided about as one.

However many meters there are, the device's state sees each slot once, with all of their values: so
its window and its ledger are the home's (docs/faults.md, AGT-26).
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from agent.claims.dating import parted
from agent.claims.joining import SlotJoin
from agent.claims.slots import SlotValues
from agent.config import AgentConfig
from agent.link.uplink import Uplink
from agent.meters.reading import Telegram
from agent.running.feed import Feed
from agent.state.device import Device
from edge_ldp.service.clock import Clock, kernel_synchronised
from edge_ldp.service.health import combined

SANE_CHECK_S = 10.0
TICK_S = (0.02, 5.0)
NO_CLOCK = "degraded: clock not synchronised"
log = logging.getLogger("edge-ldp.agent")


class Feeds:
    """Looks after the slots of all meters; `meters` holds a Feed for each, to be run beside it."""

    def __init__(
        self,
        config: AgentConfig,
        device: Device,
        uplink: Uplink,
        clock: Clock,
        tap: Callable[[Telegram], None] | None = None,
    ) -> None:
        self._config = config
        self._device = device
        self._uplink = uplink
        self._clock = clock
        self.ticked_s = self._now_s()  # when slots were last looked after
        self._join = self._new_join()
        self._closed: list[SlotValues] = []  # not yet over by our clock
        self._sane_for_ever = config.clock.simulated or config.clock.trust == "assume"
        self._sane = self._sane_for_ever
        self._watched = False
        if self._sane:
            device.trust_clock()
        self.meters = [
            Feed(
                config,
                table,
                clock,
                is_sane=lambda: self._sane,
                finish=partial(self._join_one, at),
                tap=tap,
            )
            for at, table in enumerate(config.all_meters)
        ]

    @property
    def health(self) -> str:
        """Return "ok" or what is wrong with the clock or with which meter."""
        return combined(meter.health for meter in self.meters) if self._sane else NO_CLOCK

    @property
    def state(self) -> str:
        """Return the same without the meters' names, which are the household's."""
        return combined(meter.state for meter in self.meters) if self._sane else NO_CLOCK

    @property
    def telegram_age_s(self) -> int | None:
        """Seconds since the meter that is longest silent spoke; None: one never did."""
        ages = [age for meter in self.meters if (age := meter.telegram_age_s) is not None]
        return max(ages) if len(ages) == len(self.meters) else None

    @property
    def swap_age_s(self) -> int | None:
        """Seconds since a meter was last swapped; None: none was since the start."""
        return min(
            (age for one in self.meters if (age := one.swap_age_s) is not None), default=None
        )

    async def keep_time(self) -> None:
        """Tick for ever, and watch whether the clock is right."""
        least, most = TICK_S
        tick_s = min(most, max(least, self._clock.real(self._config.slot_seconds) / 4))
        checked_s = -SANE_CHECK_S
        while True:
            now_s = asyncio.get_running_loop().time()
            if not self._sane_for_ever and now_s - checked_s >= SANE_CHECK_S:
                checked_s = now_s
                self.watch_clock()
            self.tick()
            self.ticked_s = self._now_s()
            await asyncio.sleep(tick_s)

    def _join_one(self, meter: int, closed: SlotValues) -> None:
        if closed.at is None:
            self._finish(self._join.take(meter, closed))
        else:
            self._hand_on([closed])

    def _finish(self, whole: list[SlotValues]) -> None:
        """Hand on what is closed as soon as it is over by this device's clock too."""
        over, self._closed = parted([*self._closed, *whole], self._device.slot)
        self._hand_on(over)

    def _hand_on(self, over: list[SlotValues]) -> None:
        for one in over:
            self._device.close_slot(one, online=self._uplink.online)
        if over and self._device.delivery.due:
            self._uplink.wake()

    def tick(self) -> None:
        """Close the slots that are over, and pack, expire and watch what time alone shows."""
        slot = self._device.slot
        if any(meter.is_ahead(slot) for meter in self.meters):
            self._begin_anew()
        still_open = min([meter.close_over() for meter in self.meters])  # all are asked first
        self._finish(self._join.close_before(still_open))
        self._device.flush(online=self._uplink.online)
        if self._uplink.online:
            self._device.pack_waiting()
        self._device.housekeeping()
        if self._device.delivery.due:
            self._uplink.wake()
        for meter in self.meters:
            if self._sane:
                meter.watch()

    def _begin_anew(self) -> None:
        """Forget every slot: the clock was ahead, so its slots, and their values, are not true."""
        for meter in self.meters:
            meter.begin_anew()
        self._join, self._closed = self._new_join(), []

    def _new_join(self) -> SlotJoin:
        config = self._config
        return SlotJoin(
            [
                [at for at in config.positions_of(table) if at not in config.apart]
                for table in config.all_meters
            ]
        )

    def watch_clock(self) -> None:
        """Ask the kernel whether the clock is right; say it when that changes."""
        sane = kernel_synchronised()
        if sane and not self._sane:
            self._device.trust_clock()
            log.info("clock: synchronised")
        elif not sane and (self._sane or not self._watched):
            log.warning(
                "clock: not synchronised, nothing is reported until it is; `timedatectl` shows why "
                '([clock] trust = "assume" where something else keeps it right)'
            )
        self._sane, self._watched = sane, True

    def _now_s(self) -> float:
        """Return real seconds that never step, whatever the clock's rate."""
        return self._clock.real(self._clock.monotonic())
