"""The link to the aggregator: connect, subscribe, send what is due, take plans and receipts.

Reconnects for ever with full jitter; while the link is down everything stays in the journal. A
batch is settled by the aggregator's receipt alone.
"""

import asyncio
import logging

from agent import outgoing
from agent.bucket import Bucket
from agent.config import AgentConfig
from agent.link_trouble import LinkTrouble
from agent.outbox import RESEND_INTERVALS, Key
from agent.shell.device import Device
from agent.shell.outlet import Outlet
from agent.shell.plan_queue import PlanQueue
from edge_ldp.backoff import JITTER_STEPS, backoff_s, unhurried
from edge_ldp.entropy import system_draw
from edge_ldp.messages import Status, name_in_topic, parse_receipt, topic
from edge_ldp.shell.clock import Clock
from edge_ldp.shell.mqtt import (
    Broker,
    Link,
    LinkLostError,
    Message,
    RefusedError,
    TooBigError,
    open_link,
    packet_bytes,
)
from edge_ldp.shell.tasks import task_group
from edge_ldp.strict_json import MessageError

STABLE_S = 60.0
REFUSED_RETRY_S = 30.0
FAREWELL_S = 3.0
DRAIN_AT_ONCE = 50
READS_PER_S, READS_AT_ONCE = 1000.0, 2000
OK = "ok"
log = logging.getLogger("edge-ldp.agent")


class Uplink:
    """One device's way to its aggregator; call `wake()` when there may be something to send."""

    def __init__(
        self, config: AgentConfig, device: Device, clock: Clock, password: str | None
    ) -> None:
        self._fleet, self._id = config.device.fleet, config.device.id
        names = [s.name for s in config.streams if config.mode == "local"]
        self._plan_topics = [topic(self._fleet, "plan", name) for name in names]
        self._sending = config.sending
        self._drain = Bucket(config.sending.batches_per_s, DRAIN_AT_ONCE)
        self._reads = Bucket(READS_PER_S, READS_AT_ONCE)
        self._plans = PlanQueue()
        self._changed = asyncio.Event()
        self._trouble = LinkTrouble()
        self._peer: tuple[str, int] | None = None
        self._was_up = False
        self._unheard_s: float | None = None  # since when batches wait for any receipt
        self._device = device
        self._clock = clock
        self._broker = _broker(config, password)
        self._draw = unhurried(system_draw())  # reports need randomness, the link goes on
        self._link: Link | None = None
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()
        self._drained = asyncio.Event()
        self._said = ""

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
        if self._link is None:
            return f"degraded: {self._trouble.name}"
        limit_s = 2 * RESEND_INTERVALS * self._sending.receipt_interval_s
        unheard_s = self._unheard_s
        if unheard_s is not None and self._clock.monotonic() - unheard_s > limit_s:
            return "degraded: no receipt from the aggregator"
        return OK

    def reconfigure(self, config: AgentConfig, password: str | None) -> None:
        """Go by another configuration of the same device: at once, by a new link if need be."""
        self._sending = config.sending
        self._drain = Bucket(config.sending.batches_per_s, DRAIN_AT_ONCE)
        broker = _broker(config, password)
        if broker != self._broker:
            self._broker = broker
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
            why = self._trouble.explained(reason)
            self._say(f"broker {self._broker.endpoint}: {why}; reports are kept, trying again")
            try:
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()
            except TimeoutError:
                attempt += 1

    def _wait_after(self, reason: str, attempt: int) -> float:
        """Return how long to wait before the next attempt, and note what is wrong."""
        now_s = asyncio.get_running_loop().time()
        self._trouble.note(reason, now_s, was_up=self._was_up)
        wait_s = backoff_s(attempt, self._draw)
        return REFUSED_RETRY_S + wait_s if self._trouble.is_refusal else wait_s

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
                await self._publish_status(link, "offline")
        except (TimeoutError, LinkLostError, RefusedError):
            log.info("not everything could be sent before the stop; it is kept")
        await link.close()

    async def _session(self) -> str:
        """Live through one link, from connect to loss; return why it ended."""
        reasons: list[str] = []
        self._was_up = False
        try:
            link = await open_link(self._broker)
        except LinkLostError as exc:
            return exc.reason
        try:
            await link.subscribe([*self._plan_topics, topic(self._fleet, "receipt", self._id)])
            await self._publish_status(link, "online")
            self._link, self._was_up = link, True
            if link.max_packet is not None:
                empty = packet_bytes(topic(self._fleet, "report", self._id), b"")
                self._device.limit_frames(link.max_packet - empty)
            self._say(f"broker {self._broker.endpoint}: connected, MQTT {link.protocol}")
            self._device.pack_waiting()
            async with task_group() as tasks:
                tasks.create_task(self._receive(link), name="receive")
                tasks.create_task(self._send(link), name="send")
                tasks.create_task(self._tell(link), name="tell")
                tasks.create_task(self._weigh_plans(link), name="plans")
                tasks.create_task(self._until_changed(), name="changed")
        except* (LinkLostError, RefusedError) as group:
            reasons += [str(exc) for exc in _leaves(group)]
        finally:
            self._link = None
            await link.close()
        return reasons[0].removeprefix(f"broker {self._broker.endpoint}: ")

    async def _receive(self, link: Link) -> None:
        """Take messages, a flood of them no faster than a device can: the broker holds the rest."""
        while True:
            message = await link.receive()
            wait_s = self._reads.take(asyncio.get_running_loop().time())
            if wait_s:
                await asyncio.sleep(wait_s)
            name = name_in_topic(self._fleet, "plan", message.topic)
            if name is not None:
                self._plans.put(name, message.payload)
            elif message.topic == topic(self._fleet, "receipt", self._id):
                self._take_receipt(message)

    async def _weigh_plans(self, link: Link) -> None:
        while True:
            name, payload = await self._plans.get()
            if self._device.accept_plan(name, payload) not in ("same", "held"):
                await self._publish_status(link, "online")

    async def _until_changed(self) -> None:
        await self._changed.wait()
        raise LinkLostError(self._broker.endpoint, "left: the configuration changed")

    def _take_receipt(self, message: Message) -> None:
        try:
            receipt = parse_receipt(message.payload)
        except MessageError as exc:
            self._say(f"receipt ignored: {exc}")
            return
        self._device.accept_receipt(receipt)
        self._unheard_s = None
        self.wake()

    async def _send(self, link: Link) -> None:
        while True:
            started = self._device.delivery.start()
            if started:
                async with task_group() as tasks:
                    for key in started:
                        tasks.create_task(self._send_one(link, key))
            else:
                self._drained.set()
                self._wake.clear()
                await self._wake.wait()
                await self._jitter()

    async def _send_one(self, link: Link, key: Key) -> None:
        delivery = self._device.delivery
        payload = self._device.payload(key)
        if payload is None:
            delivery.forget([key])
            return
        acknowledged = False
        try:
            if not self._hurry.is_set():
                await self._clock.sleep(self._drain.take(self._clock.monotonic()))
            await Outlet(link).send(outgoing.report(self._fleet, self._id, key, payload))
            acknowledged = True
        except TooBigError as exc:  # packed for a broker that took more; tried again as overdue
            self._say(f"a batch of {len(payload)} bytes waits: {exc}")
            acknowledged = True
        finally:
            if acknowledged:
                delivery.acknowledged(key, self._clock.monotonic())
                if self._unheard_s is None:
                    self._unheard_s = self._clock.monotonic()
            else:
                delivery.failed(key)

    async def _jitter(self) -> None:
        """Wait a random moment, so that the time of sending tells nothing; a stop cuts it short."""
        steps = self._draw(JITTER_STEPS)
        seconds = self._clock.real(self._sending.jitter_s) * steps / JITTER_STEPS
        try:
            async with asyncio.timeout(seconds):
                await self._hurry.wait()
        except TimeoutError:
            return

    async def _tell(self, link: Link) -> None:
        """Publish the status every receipt interval: the aggregator answers it with a receipt."""
        while True:
            await self._clock.sleep(self._sending.receipt_interval_s)
            await self._publish_status(link, "online")

    async def _publish_status(self, link: Link, state: str) -> None:
        said = self._device.status(state)
        try:
            await Outlet(link).send(outgoing.status(self._fleet, self._id, said))
        except TooBigError as exc:
            self._say(f"the status is not sent: {exc}")

    def _say(self, line: str) -> None:
        """Log a change of state once, not every attempt."""
        if line != self._said:
            log.info("%s", line)
            self._said = line


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for exc in group.exceptions:
        found += _leaves(exc) if isinstance(exc, BaseExceptionGroup) else [exc]
    return found


def _broker(config: AgentConfig, password: str | None) -> Broker:
    table, device = config.broker, config.device
    will = Message(
        topic(device.fleet, "status", device.id),
        Status(state="offline", software="-").to_json(),
        retain=True,
    )
    return Broker(
        host=table.host,
        port=table.use_port,
        client_id=f"edge-ldp-{device.fleet}-{device.id}",
        username=table.username,
        password=password,
        tls=table.use_tls,
        ca_file=table.ca_file,
        cert_file=table.cert_file,
        key_file=table.key_file,
        crl_file=table.crl_file,
        protocol=table.protocol,
        keepalive_s=table.keepalive_s,
        will=will,
    )
