"""The link to the aggregator: connect, subscribe, send what is due, take plans and receipts.

Reconnects for ever with full jitter; while the link is down everything stays in the journal. A
batch is settled by the aggregator's receipt alone.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from agent.claims.batches import Key, Named
from agent.config import AgentConfig
from agent.link import outgoing
from agent.link.bucket import Bucket
from agent.link.incoming import Incoming
from agent.link.outgoing import Outlet
from agent.link.plan_queue import HeardMonth
from agent.link.trouble import (
    Audience,
    LinkTrouble,
    LogLimit,
)
from agent.state.device import Device
from edge_ldp.entropy import system_draw
from edge_ldp.protocol.messages import Status, topic
from edge_ldp.service import mqtt
from edge_ldp.service.backoff import JITTER_STEPS, backoff_s, unhurried
from edge_ldp.service.clock import Clock
from edge_ldp.service.tasks import task_group

STABLE_S, FAREWELL_S, LOOK_S = 60.0, 3.0, 60
DRAIN_AT_ONCE = 50
READS_PER_S, READS_AT_ONCE = 1000.0, 2000
SEVERAL_BYTES = 16_384  # of a message of several batches: less than any broker we know refuses
log = logging.getLogger("edge-ldp.agent")


class Vitals(NamedTuple):
    """How the agent is: `ok` or what is wrong, and ages in seconds, None where there is none."""

    health: str
    ages: Mapping[str, int | None]


class Uplink:
    """One device's way to its aggregator; `wake()` it to send. `draw(n)`: 0..n-1, for waits."""

    def __init__(
        self,
        config: AgentConfig,
        device: Device,
        clock: Clock,
        password: str | None,
        draw: Callable[[int], int] | None = None,
    ) -> None:
        self._fleet, self._id = config.device.fleet, config.device.id
        names = [s.name for s in config.local_streams if config.mode == "local"]
        self._plan_topics = [topic(self._fleet, "plan", name) for name in names]
        self._sending = config.sending
        self._drain = Bucket(config.sending.batches_per_s, DRAIN_AT_ONCE)
        self._reads = Bucket(READS_PER_S, READS_AT_ONCE)
        self._incoming = Incoming(config, device, clock, self._log_once, self.wake)
        self._changed = asyncio.Event()
        self._trouble = LinkTrouble(self._fleet, self._id)
        self._peer: tuple[str, int] | None = None
        self._was_up = False
        self._has_looked_back = False
        self._refused = ""  # topics, if that is why the last link ended
        self._up_s: float | None = None  # since when there is a link; all in monotonic time
        self._device = device
        self._clock = clock
        self._broker = _broker(config, password)
        self._draw = draw or unhurried(system_draw())  # reports need randomness, the link goes on
        self._link: mqtt.Link | None = None
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()
        self._drained = asyncio.Event()
        self._is_leaving = False  # what is said from here on is the last word
        self._log_limit = LogLimit()
        self._reported_health = ""  # the health in the last status
        self.vitals: Callable[[], Vitals] = lambda: Vitals("", {})

    @property
    def online(self) -> bool:
        """Whether there is a link."""
        return self._link is not None

    def wake(self) -> None:
        """Look again for batches to send."""
        self._wake.set()

    @property
    def peer(self) -> tuple[str, int] | None:
        """Address and port that this link speaks to, or last spoke to."""
        if self._link is not None:
            self._peer = self._link.peer
        return self._peer

    @property
    def health(self) -> str:
        """`ok`, or `degraded:` and the one thing that is wrong with this link."""
        return self._trouble.health if self._link is None else self._incoming.health

    @property
    def month(self) -> HeardMonth:
        """The fleet's word on this home's group."""
        return self._incoming.month

    @property
    def ages(self) -> dict[str, int | None]:
        """Seconds since the link came up and the last receipt came; None: down, or none came."""
        since = {
            "link_s": self._up_s if self._link is not None else None,
            "receipt_s": self._incoming.receipt_s,
        }
        now_s = self._clock.monotonic()
        return {
            name: None if at_s is None else int(self._clock.real(now_s - at_s))
            for name, at_s in since.items()
        }

    def reconfigure(self, config: AgentConfig, password: str | None) -> None:
        """Go by another configuration of the same device: at once, by a new link if need be."""
        self._sending = config.sending
        self._incoming.interval_s = config.sending.receipt_interval_s
        self._drain = Bucket(config.sending.batches_per_s, DRAIN_AT_ONCE)
        broker = _broker(config, password)
        if broker != self._broker:
            self._broker = broker
            self._incoming.audience = Audience()
            self._changed.set()

    def renew(self) -> None:
        """Leave the link and make it again: certificates are read anew."""
        self._changed.set()

    async def run(self) -> None:
        """Keep a link until the farewell."""
        attempt = 0
        while not self._hurry.is_set():
            begun_s = asyncio.get_running_loop().time()
            self._changed.clear()
            reason = await self._session()
            if asyncio.get_running_loop().time() - begun_s > STABLE_S:
                attempt = 0
            if self._hurry.is_set():
                return
            wait_s = self._wait_after(reason, attempt)
            why = self._trouble.explained(reason, self._broker)
            line = f"broker {self._broker.endpoint}: {why}; reports are kept, trying again"
            self._log_once(line, logging.WARNING)
            try:
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()
            except TimeoutError:
                attempt += 1

    def _wait_after(self, reason: str, attempt: int) -> float:
        """Return how long to wait before the next attempt, and note what is wrong."""
        now_s = asyncio.get_running_loop().time()
        self._trouble.note(reason, now_s, was_up=self._was_up, topics=self._refused)
        return self._trouble.least_wait_s + backoff_s(attempt, self._draw)

    async def farewell(self) -> None:
        """Give the running session a few seconds to send what is left, then say goodbye."""
        self._hurry.set()
        link = self._link
        if link is None:
            return
        try:
            async with asyncio.timeout(FAREWELL_S):
                self._device.pack_waiting(at_once=True)
                self._drained.clear()
                self.wake()
                await self._drained.wait()
                self._is_leaving = True
                await self._publish_status(link, "offline")
        except (TimeoutError, mqtt.LinkLostError, mqtt.RefusedError):
            log.info("not everything could be sent before the stop; it is kept")
        await link.close()

    async def _session(self) -> str:
        """Live through one link, from connect to loss; return why it ended."""
        ends: list[BaseException] = []
        self._was_up, self._refused = False, ""
        try:
            link = await mqtt.open_link(self._broker)
        except mqtt.LinkLostError as exc:
            return exc.reason
        try:
            await link.subscribe([*self._plan_topics, self._topic("receipt")])
            with suppress(
                mqtt.RefusedError
            ):  # an older access list; a silence then only ends by itself
                await link.subscribe([topic(self._fleet, "presence", "+"), *self.month.topics])
            await self._look_back(link)
            self._link, self._up_s = link, self._clock.monotonic()
            await self._publish_status(link, "online")
            self._was_up = True
            if link.max_packet is not None:
                empty = mqtt.packet_bytes(self._topic("report"), b"")
                self._device.core.limit_frames(link.max_packet - empty)
            self._log_once(f"broker {self._broker.endpoint}: connected, MQTT {link.protocol}")
            for message in link.receive_ready(READS_AT_ONCE):  # a receipt may tell of a rollback
                self._incoming.handle(message)
            self._incoming.take_receipts()
            self._device.pack_waiting()
            async with task_group() as tasks:
                tasks.create_task(self._receive(link), name="receive")
                tasks.create_task(self._send(link), name="send")
                tasks.create_task(self._tell(link), name="tell")
                tasks.create_task(self._weigh_plans(link), name="plans")
                tasks.create_task(self._incoming.weigh_receipts(), name="receipts")
                tasks.create_task(self._until_changed(), name="changed")
        except* (mqtt.LinkLostError, mqtt.RefusedError) as group:
            ends += _leaves(group)
        finally:
            self._link = None
            await link.close()
        end = ends[0]
        self._refused = end.topic if isinstance(end, mqtt.RefusedError) else ""
        return str(end).removeprefix(f"broker {self._broker.endpoint}: ")

    async def _look_back(self, link: mqtt.Link) -> None:
        """Read once what this device last said of itself, before it says something else.

        Not listened to for longer: with a listener, the broker would never say that the aggregator
        is not there. A broker that does not let a device read its status leaves the receipt to tell
        of a rollback.
        """
        if self._has_looked_back:
            return
        self._has_looked_back = True
        with suppress(mqtt.RefusedError):
            await link.subscribe([self._topic("status")])
            await link.unsubscribe(self._topic("status"))
        for message in link.receive_ready(READS_AT_ONCE):
            self._incoming.handle(message)

    async def _receive(self, link: mqtt.Link) -> None:
        """Take messages, a flood of them no faster than a device can: the broker holds the rest."""
        while True:
            message = await link.receive()
            wait_s = self._reads.take(asyncio.get_running_loop().time())
            if wait_s:
                await asyncio.sleep(wait_s)
            self._incoming.handle(message)

    async def _weigh_plans(self, link: mqtt.Link) -> None:
        while True:
            name, payload = await self._incoming.plans.get()
            if self._device.accept_plan(name, payload) not in ("same", "held"):
                await self._publish_status(link, "online")

    async def _until_changed(self) -> None:
        await self._changed.wait()
        raise mqtt.LinkLostError(self._broker.endpoint, "left: the configuration changed")

    async def _send(self, link: mqtt.Link) -> None:
        while True:
            started = list(self._device.take_messages(_room_bytes(link, self._topic("report"))))
            if started:
                async with task_group() as tasks:
                    for first, batches, payload in started:
                        tasks.create_task(self._send_one(link, first, batches, payload))
                if self._device.delivery.is_silent:  # the one message of a turn asks, too
                    await self._publish_status(link, "online")
            else:
                self._drained.set()
                self._wake.clear()
                await self._wake.wait()
                await self._jitter()

    async def _send_one(
        self, link: mqtt.Link, first: Key, batches: list[Named], payload: bytes
    ) -> None:
        delivery, acknowledged = self._device.delivery, False
        try:
            if not self._hurry.is_set():
                await self._clock.sleep(self._drain.take(self._clock.monotonic()))
            await self._publish(link, outgoing.report(self._fleet, self._id, batches, payload))
            acknowledged = True
        except mqtt.TooBigError as exc:  # packed for a broker that took more; tried again in a turn
            self._log_once(f"a batch of {len(payload)} bytes waits: {exc}", logging.WARNING)
            acknowledged = True
        finally:
            if acknowledged:
                delivery.acknowledged(first, self._clock.monotonic())
                self._incoming.receipts.sent(self._clock.monotonic())
            else:
                delivery.failed(first)

    async def _jitter(self) -> None:
        """Wait a random moment, so that the time of sending tells nothing; a stop cuts it short."""
        steps = self._draw(JITTER_STEPS)
        seconds = self._clock.real(self._sending.jitter_s) * steps / JITTER_STEPS
        try:
            async with asyncio.timeout(seconds):
                await self._hurry.wait()
        except TimeoutError:
            return

    async def _tell(self, link: mqtt.Link) -> None:
        """Publish the status every receipt interval: the aggregator answers it with a receipt.

        And when the health is another one, which is looked at every LOOK_S. While nothing is
        receipted it goes with the reports alone.
        """
        while True:
            left_s = self._sending.receipt_interval_s
            while left_s > 0:
                await self._clock.sleep(min(LOOK_S, left_s))
                left_s -= LOOK_S
                if self.vitals().health != self._reported_health:
                    break
            else:
                if self._device.delivery.is_silent:
                    continue
            await self._publish_status(link, "online")

    async def _publish_status(self, link: mqtt.Link, state: str) -> None:
        if self._is_leaving and state != "offline":
            return
        vitals = self.vitals()
        ages = {name: age for name, age in vitals.ages.items() if age is not None}
        status = replace(self._device.status(state), health=vitals.health, ages=ages)
        self._reported_health = vitals.health
        try:
            await self._publish(link, outgoing.status(self._fleet, self._id, status))
        except mqtt.TooBigError as exc:
            self._log_once(f"the status is not sent: {exc}", logging.WARNING)

    async def _publish(self, link: mqtt.Link, message: outgoing.Outgoing) -> None:
        """Send; say it once when the broker has nobody to hand it to."""
        has_listener = await Outlet(link).send(message)
        if self._incoming.audience.note(message.topic, has_listener=has_listener):
            log.warning(
                "broker %s: nobody listens to %s: does the aggregator run, with this fleet's name "
                "and the right to read it? reports are kept",
                self._broker.endpoint,
                message.topic,
            )

    def _topic(self, kind: str) -> str:
        return topic(self._fleet, kind, self._id)

    def _log_once(self, line: str, level: int = logging.INFO) -> None:
        """Log a change of state once, not every attempt, and not one that never ends."""
        if admitted := self._log_limit.admit(line, self._clock.monotonic()):
            log.log(level, "%s", admitted)


def _room_bytes(link: mqtt.Link, at: str) -> int:
    """Return how large a message of several batches may be, at most what this broker takes."""
    if link.max_packet is None:
        return SEVERAL_BYTES
    return min(SEVERAL_BYTES, link.max_packet - mqtt.packet_bytes(at, b""))


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for exc in group.exceptions:
        found += _leaves(exc) if isinstance(exc, BaseExceptionGroup) else [exc]
    return found


def _broker(config: AgentConfig, password: str | None) -> mqtt.Broker:
    device = config.device
    will = mqtt.Message(
        topic(device.fleet, "status", device.id),
        Status(state="offline", software="-").to_json(),
        retain=True,
    )
    named = config.broker.named(f"edge-ldp-{device.fleet}-{device.id}", password)
    return replace(named, will=will)
