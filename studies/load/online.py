"""The fleet through a broker, at a chosen rate, to an aggregator that runs.

Devices behave as real ones do: a frame is kept and sent again, byte for byte, until the
aggregator's receipt covers it, whatever dies in between.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aggregator.courier.retained import read_retained
from edge_ldp.device.errors import EdgeLdpError
from edge_ldp.entropy import system_draw
from edge_ldp.protocol.messages import name_in_topic, parse_receipt, topic
from edge_ldp.protocol.plan import parse_plan
from edge_ldp.protocol.signing import plan_bytes
from edge_ldp.service.broker import LinkLostError
from edge_ldp.service.clock import Clock
from edge_ldp.service.mqtt import open_link
from studies.load.fates import PAUSE_ROUNDS
from studies.load.traffic import Source, Traffic
from studies.load.unreceipted import Unreceipted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from aggregator.config import AggregatorConfig
    from edge_ldp.service.broker import Broker
    from edge_ldp.service.mqtt import Link
    from studies.load.fates import Spec
    from studies.load.traffic import Sent

IN_FLIGHT = 100
PLAN_WAIT_S = 30.0
RECEIPT_WAIT_S = 3.0  # without any receipt: then it is asked for again,
FRAMES_PER_S = 500  # and as long as an aggregator may take for what is kept
POLL_S = 0.05
RETRY_S = 0.3
Outgoing = tuple[str, bytes, bool]  # topic, payload, retained


async def run_online(  # noqa: PLR0913 (what a run consists of)
    config: AggregatorConfig,
    spec: Spec,
    broker: Broker,
    *,
    rate: float,
    start_s: int | None,
    wait_s: float,
    progress: Callable[[int], None],
) -> tuple[Traffic, LoadRun]:
    """Send a whole run under the plans that the broker retains, at most `rate` frames a second.

    A round is sent when its slots are over by the aggregator's clock; the first slot begins at
    `start_s` (UTC, None: now), which must be after every plan was issued. Returns once receipts
    cover every frame, or `wait_s` seconds after the last one. Raises LookupError when there is no
    plan of that time, LinkLostError when there is no broker for half a minute at the start.
    """
    names = {s.id: topic(config.fleet, "plan", s.name) for s in config.streams}
    retained = await _read_plans(broker, list(names.values()))
    clock = Clock(config.clock.origin_s, config.clock.started_s, config.clock.rate)
    sources = []
    for stream in config.streams:
        if names[stream.id] not in retained:
            raise LookupError(f"no plan of {stream.name} at the broker: start the aggregator first")
        plan = parse_plan(plan_bytes(retained[names[stream.id]]))
        begin_s = int(clock.now()) if start_s is None else start_s
        if begin_s < plan.issued_s:
            raise LookupError(f"the plan of {stream.name} is of {plan.issued_s}: start after it")
        first = begin_s // stream.slot_seconds + 1
        sources.append(Source([plan], stream.bucket_slots, first))
    sender = Sender(config.fleet, Traffic(spec, sources), broker, rate, wait_s)
    return sender.traffic, await sender.run(clock, progress)


async def _read_plans(broker: Broker, names: Sequence[str]) -> dict[str, bytes]:
    """Return what the broker retains; tried again while it, or the aggregator, is just starting."""
    deadline = time.monotonic() + PLAN_WAIT_S
    while True:
        left_s = deadline - time.monotonic()
        try:
            return await read_retained(broker, names, left_s)
        except LinkLostError:
            if left_s < RETRY_S:
                raise
            await asyncio.sleep(RETRY_S)


@dataclass(frozen=True, slots=True)
class LoadRun:
    """What a run was: frames sent, and how long it took."""

    messages: int
    seconds: float


class Sender:
    """A fleet on one connection, which is made again whenever it is lost."""

    def __init__(
        self, fleet: str, traffic: Traffic, broker: Broker, rate: float, wait_s: float
    ) -> None:
        self.traffic = traffic
        self._fleet = fleet
        self._broker = broker
        self._rate = rate
        self._wait_s = wait_s
        patience_s = RECEIPT_WAIT_S + len(traffic.names) / FRAMES_PER_S
        self._unreceipted = Unreceipted(patience_s, system_draw())
        self._waited_s = 0.0  # for receipts: nothing is late while none was asked for
        self._index = {name: at for at, name in enumerate(traffic.names)}
        self._link: Link | None = None
        self._listening: asyncio.Task[None] | None = None
        self._sent = 0
        self._heard_s = 0.0

    async def run(self, clock: Clock, progress: Callable[[int], None]) -> LoadRun:
        """Send every round, and wait for receipts now and then, and at last."""
        everyone = range(len(self.traffic.names))
        began = time.monotonic()
        try:
            await self._publish(self._statuses(everyone, 0))
            for one in self.traffic.rounds():
                await clock.sleep(one.last_s - clock.now())
                await self._publish(self._statuses(one.renewed, one.at))
                await self._send(self._unreceipted.put(one.messages, self._waited_s), began)
                progress(self._sent)
                if (one.at + 1) % PAUSE_ROUNDS == 0:
                    await self._settle(one.at + 1)
            await self._settle(self.traffic.made)
            await self._publish(self._statuses(everyone, self.traffic.made))
            return LoadRun(self._sent, time.monotonic() - began)
        finally:
            await self._close()

    async def _send(self, frames: Sequence[Sent], began: float) -> None:
        for start in range(0, len(frames), IN_FLIGHT):
            chunk = frames[start : start + IN_FLIGHT]
            await asyncio.sleep(began + self._sent / self._rate - time.monotonic())
            await self._publish(
                (topic(self._fleet, "report", self.traffic.names[one.device]), one.payload, False)
                for one in chunk
            )
            self._sent += len(chunk)

    async def _settle(self, at: int) -> None:
        """Ask for receipts, and send again as devices do, until nothing is left."""
        self._heard_s = time.monotonic()
        while len(self._unreceipted) and time.monotonic() - self._heard_s < self._wait_s:
            await self._publish(self._statuses(self._unreceipted.asking(), at))
            asked_s = time.monotonic()
            patience_s = RECEIPT_WAIT_S + len(self._unreceipted) / FRAMES_PER_S
            while len(self._unreceipted):
                if time.monotonic() - max(asked_s, self._heard_s) > patience_s:
                    break
                began_s = time.monotonic()
                await asyncio.sleep(POLL_S)
                await self._turns(at)
                self._waited_s += time.monotonic() - began_s
            await self._send(self._unreceipted.released(), time.monotonic())

    async def _turns(self, at: int) -> None:
        """Send what is due; whoever is silent otherwise asks with it."""
        if due := self._unreceipted.due(self._waited_s):
            await self._send(due, time.monotonic())
            silent = {one.device for one in due} - {*self._unreceipted.asking()}
            await self._publish(self._statuses(sorted(silent), at))

    def _statuses(self, devices: Iterable[int], at: int) -> list[Outgoing]:
        kept, delayed = self._unreceipted.oldest(), self.traffic.delayed()
        found = []
        for device in devices:
            oldest = {**delayed.get(device, {})}
            for stream, batch in kept.get(device, {}).items():
                oldest[stream] = min(batch, oldest.get(stream, batch))
            where = topic(self._fleet, "status", self.traffic.names[device])
            found.append((where, self.traffic.status(device, at, oldest), True))
        return found

    async def _publish(self, messages: Iterable[Outgoing]) -> None:
        """Publish all, a few at once; on a link that breaks, the few again on the next one."""
        todo = list(messages)
        for start in range(0, len(todo), IN_FLIGHT):
            chunk = todo[start : start + IN_FLIGHT]
            while True:
                try:
                    if self._link is None:
                        await self._connect()
                    await self._publish_now(chunk)
                except LinkLostError:
                    await self._close()
                    await asyncio.sleep(RETRY_S)
                else:
                    break

    async def _publish_now(self, chunk: Sequence[Outgoing]) -> None:
        assert self._link is not None
        link = self._link
        found = await asyncio.gather(
            *(link.publish(where, payload, retain=kept) for where, payload, kept in chunk),
            return_exceptions=True,
        )
        for one in found:
            if isinstance(one, BaseException):
                raise one

    async def _connect(self) -> None:
        link = await open_link(self._broker)
        self._link = link
        await link.subscribe([topic(self._fleet, "receipt", "+")])
        self._listening = asyncio.create_task(self._listen(link), name="receipts")

    async def _listen(self, link: Link) -> None:
        with suppress(LinkLostError):
            while True:
                message = await link.receive()
                device = name_in_topic(self._fleet, "receipt", message.topic)
                if device not in self._index or device is None:
                    continue
                with suppress(EdgeLdpError):
                    receipt = parse_receipt(message.payload)
                    self._unreceipted.cover(self._index[device], receipt, self._waited_s)
                    self._heard_s = time.monotonic()

    async def _close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            with suppress(asyncio.CancelledError):
                await self._listening
        if self._link is not None:
            await self._link.close()
        self._link = self._listening = None
