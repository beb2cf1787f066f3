"""The link to the aggregator: connect, subscribe, send what is due, take plans and receipts.

Reconnects for ever with full jitter; while the link is down everything stays in the journal. A
batch is settled by the aggregator's receipt alone.
"""

import asyncio
import logging

from agent.config import AgentConfig
from agent.outbox import Key
from agent.shell.device import Device
from edge_ldp.backoff import JITTER_STEPS, backoff_s
from edge_ldp.device.errors import EntropyError
from edge_ldp.entropy import StuckEntropyError, system_draw
from edge_ldp.messages import Status, name_in_topic, parse_receipt, topic
from edge_ldp.shell.clock import Clock
from edge_ldp.shell.mqtt import Broker, Link, LinkLostError, Message, RefusedError, open_link
from edge_ldp.strict_json import MessageError

STABLE_S = 60.0
REFUSED_RETRY_S = 30.0
FAREWELL_S = 3.0
CREDENTIALS = ("not authorized", "bad user name or password")
log = logging.getLogger("edge-ldp.agent")


class Uplink:
    """One device's way to its aggregator; call `wake()` when there may be something to send."""

    def __init__(
        self, config: AgentConfig, device: Device, clock: Clock, password: str | None
    ) -> None:
        self._fleet, self._id = config.device.fleet, config.device.id
        self._plan_topics = [topic(self._fleet, "plan", s.name) for s in config.streams]
        self._sending = config.sending
        self._device = device
        self._clock = clock
        self._broker = _broker(config, password)
        self._draw = system_draw()
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

    async def run(self) -> None:
        """Keep a link until the farewell."""
        attempt = 0
        while not self._hurry.is_set():
            begun_s = asyncio.get_running_loop().time()
            reason = await self._session()
            if asyncio.get_running_loop().time() - begun_s > STABLE_S:
                attempt = 0
            if self._hurry.is_set():
                return
            self._say(f"broker {self._broker.endpoint}: {reason}; reports are kept, trying again")
            refused = any(text in reason for text in CREDENTIALS)
            await asyncio.sleep(REFUSED_RETRY_S if refused else backoff_s(attempt, self._pace))
            attempt += 1

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
        try:
            link = await open_link(self._broker)
        except LinkLostError as exc:
            return exc.reason
        try:
            await link.subscribe([*self._plan_topics, topic(self._fleet, "receipt", self._id)])
            await self._publish_status(link, "online")
            self._link = link
            self._say(f"broker {self._broker.endpoint}: connected, MQTT {link.protocol}")
            self._device.pack_waiting()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._receive(link), name="receive")
                tasks.create_task(self._send(link), name="send")
                tasks.create_task(self._tell(link), name="tell")
        except* (LinkLostError, RefusedError) as group:
            reasons += [str(exc) for exc in _leaves(group)]
        finally:
            self._link = None
            await link.close()
        return reasons[0].removeprefix(f"broker {self._broker.endpoint}: ")

    async def _receive(self, link: Link) -> None:
        while True:
            message = await link.receive()
            name = name_in_topic(self._fleet, "plan", message.topic)
            if name is not None:
                if self._device.accept_plan(name, message.payload) != "same":
                    await self._publish_status(link, "online")
            elif message.topic == topic(self._fleet, "receipt", self._id):
                self._take_receipt(message)

    def _take_receipt(self, message: Message) -> None:
        try:
            receipt = parse_receipt(message.payload)
        except MessageError as exc:
            self._say(f"receipt ignored: {exc}")
            return
        self._device.accept_receipt(receipt)
        self.wake()

    async def _send(self, link: Link) -> None:
        while True:
            started = self._device.delivery.start()
            if started:
                async with asyncio.TaskGroup() as tasks:
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
            await link.publish(topic(self._fleet, "report", self._id), payload)
            acknowledged = True
        finally:
            if acknowledged:
                delivery.acknowledged(key, self._clock.monotonic())
            else:
                delivery.failed(key)

    def _pace(self, n: int) -> int:
        """Return a random moment of n, or the middle one while there is no randomness.

        Reports need randomness, pace does not: the device gives slots up, the link goes on.
        """
        try:
            return self._draw(n)
        except StuckEntropyError:
            raise
        except EntropyError:
            return n // 2

    async def _jitter(self) -> None:
        """Wait a random moment, so that the time of sending tells nothing; a stop cuts it short."""
        steps = self._pace(JITTER_STEPS)
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
        payload = self._device.status(state).to_json()
        await link.publish(topic(self._fleet, "status", self._id), payload, retain=True)

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
        protocol=table.protocol,
        keepalive_s=table.keepalive_s,
        will=will,
    )
