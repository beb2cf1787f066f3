"""The fleet on the network: days made by the clock, one connection that is opened again when lost.

Statuses are announced on every connection, after the last day and when all is confirmed; the
aggregator answers each with a receipt.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edge_ldp.protocol.messages import topic
from edge_ldp.service.broker import remedy_of
from edge_ldp.service.clock import Clock
from edge_ldp.service.mqtt import Broker, Link, LinkLostError, open_link
from edge_ldp.service.tasks import task_group
from firmware_stubs.simulator.fleet import Event, SimulatedFleet

DAY_S = 86_400
IN_FLIGHT = 50  # half of what the strictest broker we know allows (iotcore: 100)
TICK_S = 0.2  # real seconds between looks for frames to send again
WAITING_S = 5.0  # real seconds after which it is said what is waited for, again and again
BACKOFF_S = (0.2, 5.0)  # real seconds: first and longest pause before the next connection


@dataclass(frozen=True, slots=True)
class LinkChanged:
    """The connection is up, or why it is gone and what may mend it."""

    reason: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class NoPlan:
    """A day is over, and no plan came that it could be reported under."""


@dataclass(frozen=True, slots=True)
class NoReceipts:
    """All is made, and receipts of some reports are still to come."""


@dataclass(frozen=True, slots=True)
class DayMade:
    """A day (counted from 1) of every home was randomised and waits to be sent."""

    day: int


class Simulation:
    """Runs a fleet over its values (homes, slots) from `start_s` on; see `run`."""

    def __init__(
        self,
        fleet: SimulatedFleet,
        values: NDArray[np.int64],
        broker: Broker,
        clock: Clock,
        listener: Callable[[Event | LinkChanged | DayMade | NoPlan | NoReceipts], None],
    ) -> None:
        self._fleet = fleet
        self._values = values
        self._broker = broker
        self._clock = clock
        self._tell = listener
        self._state = "online"
        self._to_announce: list[str] = []
        self._work = asyncio.Event()
        self._changed = asyncio.Event()
        self._announced = asyncio.Event()

    async def run(self, start_s: int, receipt_interval_s: float) -> None:
        """Make every day at its end, send, and return once everything created is confirmed."""
        async with task_group() as group:
            linked = group.create_task(self._stay_linked(), name="link")
            await self._make_days(start_s)
            telling = group.create_task(self._tell_waiting(), name="tell")
            await self._settle(receipt_interval_s)
            telling.cancel()
            linked.cancel()

    async def _make_days(self, start_s: int) -> None:
        slots = DAY_S // self._fleet.policy.slot_seconds
        for day in range(self._values.shape[1] // slots):
            await self._clock.sleep(start_s + (day + 1) * DAY_S - self._clock.now())
            while self._fleet.in_force is None:
                try:
                    async with asyncio.timeout(WAITING_S):
                        await self._change()
                except TimeoutError:
                    self._tell(NoPlan())
            todays = self._values[:, day * slots : (day + 1) * slots]
            if self._fleet.make_day(todays):
                self._work.set()
                self._tell(DayMade(day + 1))

    async def _tell_waiting(self) -> None:
        while True:
            await asyncio.sleep(WAITING_S)
            if self._fleet.outbox.pending:
                self._tell(NoReceipts())

    async def _settle(self, receipt_interval_s: float) -> None:
        """Announce what was made until receipts cover it, then say goodbye."""
        self._announce(self._fleet.homes)
        while self._fleet.outbox.pending:
            try:
                async with asyncio.timeout(receipt_interval_s / self._clock.rate):
                    await self._change()
            except TimeoutError:
                self._announce(self._fleet.outbox.keepers(silent=False))
        self._state = "offline"
        self._announce(self._fleet.homes)
        await self._announced.wait()

    async def _stay_linked(self) -> None:
        pause_s = BACKOFF_S[0]
        while True:
            try:
                link = await open_link(self._broker)
            except LinkLostError as exc:
                self._tell(LinkChanged(exc.reason, remedy_of(exc.reason, self._broker)))
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, BACKOFF_S[1])
                continue
            pause_s = BACKOFF_S[0]
            try:
                await self._serve(link)
            except* LinkLostError as lost:
                self._tell(LinkChanged(str(lost.exceptions[0])))
            finally:
                await link.close()

    async def _serve(self, link: Link) -> None:
        await link.subscribe(self._fleet.topics)
        self._tell(LinkChanged("up"))
        self._announce(self._fleet.homes)
        async with task_group() as group:
            group.create_task(self._receive(link), name="receive")
            group.create_task(self._send(link), name="send")

    async def _receive(self, link: Link) -> None:
        while True:
            message = await link.receive()
            now_s = int(self._clock.now())
            event = self._fleet.on_message(
                *(message.topic, message.payload, now_s, self._clock.monotonic()),
                is_live=not message.retain,
            )
            if event is not None:
                self._tell(event)
                self._changed.set()

    async def _send(self, link: Link) -> None:
        while True:
            self._work.clear()
            await self._send_frames(link)
            await self._send_statuses(link)
            try:
                async with asyncio.timeout(TICK_S):
                    await self._work.wait()
            except TimeoutError:
                continue

    async def _send_frames(self, link: Link) -> None:
        outbox, fleet = self._fleet.outbox, self._fleet.policy.fleet
        due = outbox.take(self._clock.monotonic())
        asks = {*outbox.keepers(silent=True)}
        try:
            while due:
                chunk = due[:IN_FLIGHT]
                await asyncio.gather(
                    *(link.publish(topic(fleet, "report", e.device), e.payload) for e in chunk)
                )
                for entry in chunk:
                    outbox.went(entry, self._clock.monotonic())
                self._to_announce += [e.device for e in chunk if e.device in asks]
                del due[:IN_FLIGHT]
        finally:
            outbox.failed(due)

    async def _send_statuses(self, link: Link) -> None:
        while self._to_announce:
            chunk, rest = self._to_announce[:IN_FLIGHT], self._to_announce[IN_FLIGHT:]
            self._to_announce = rest
            statuses = (self._fleet.status(home, self._state) for home in chunk)
            await asyncio.gather(*(link.publish(at, text, retain=True) for at, text in statuses))
        self._announced.set()

    def _announce(self, homes: list[str]) -> None:
        self._to_announce = list(homes)
        self._announced.clear()
        self._work.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()
