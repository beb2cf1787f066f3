"""One connection to an MQTT broker on the asyncio loop: paho-mqtt moves the packets, no thread.

A Link lives from connect to loss. Whoever owns it opens the next one, with a fresh client, so no
packet id or half-sent message of a former connection ever matters (docs/faults.md, NET-19): the
owner's outbox is the only queue. Incoming messages wait in a bounded inbox; when it is full the
socket is not read, which is the back-pressure the broker sees.
"""

import asyncio
import ssl
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.reasoncodes import ReasonCode

from edge_ldp.service.broker import Broker, LinkLostError, Message, RefusedError, TooBigError
from edge_ldp.service.mqtt_socket import (
    Inbox,
    LoopSocket,
    connect_client,
    make_client,
    packet_bytes,
)
from edge_ldp.service.tls import reason_of, valid_until

__all__ = [
    "Broker",
    "Link",
    "LinkLostError",
    "Message",
    "RefusedError",
    "TooBigError",
    "open_link",
    "packet_bytes",
]

MISC_INTERVAL_S = 1.0
_QOS = 1  # asked for in every subscription
_UNHEARD = 0x10  # PUBACK, "No matching subscribers": OASIS MQTT 5.0 §3.4.2.1
_UNSUPPORTED = "unsupported protocol version"
_UNANSWERED = "closed before it answered"
_SILENT = "no answer in time"
_UNSPECIFIED = "unspecified error"  # paho's word for an end without a word
_BOUNDLESS = "it sends a message larger than anybody may"
GONE = "the connection broke off: the broker stopped, or the network did"


async def open_link(broker: Broker) -> "Link":
    """Return a connected Link; raises LinkLostError. "auto" tries MQTT 5, then 3.1.1.

    Where MQTT 5 gets no answer over a connection that stands, too: some brokers swallow it.
    """
    link = Link(broker, "5" if broker.protocol == "auto" else broker.protocol)
    try:
        await link.open()
    except LinkLostError as exc:
        is_swallowed = exc.reason == _SILENT and link.peer is not None
        if broker.protocol != "auto" or not (
            is_swallowed or exc.reason in (_UNSUPPORTED, _UNANSWERED)
        ):
            raise
        link = Link(broker, "3.1.1")
        await link.open()
    return link


class Link:
    """One connection: publish, subscribe, receive, acknowledge; LinkLostError when it is gone."""

    def __init__(self, broker: Broker, protocol: str) -> None:
        self.broker = broker
        self.protocol = protocol
        self.max_packet: int | None = None  # bytes, as the broker says
        self._credit = asyncio.Semaphore(broker.window)  # publishes not yet acknowledged
        self._loop = asyncio.get_running_loop()
        self._answered: asyncio.Future[None] = self._loop.create_future()
        self._waiting: dict[int, tuple[Sequence[str], asyncio.Future[bool]]] = {}
        self._inbox = Inbox()
        self._arrived = asyncio.Event()
        self._lost: LinkLostError | None = None
        self._misc: asyncio.Task[None] | None = None
        self._client = make_client(broker, protocol)
        self._socket = LoopSocket(
            self._client, self._inbox, lambda: self._lost is not None, self._refuse
        )
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = self._on_disconnect
        self._client.on_message = self._on_message
        self._client.on_publish = self._on_publish
        self._client.on_subscribe = self._on_subscribe
        self._client.on_unsubscribe = self._on_unsubscribe

    @property
    def peer(self) -> tuple[str, int] | None:
        """Return the address that we really speak to."""
        return self._socket.peer

    @property
    def valid_until_s(self) -> int | None:
        """Return when the first certificate that the link stands on expires (seconds UTC)."""
        return valid_until(self._socket.current, self.broker.ca_file)

    async def open(self) -> None:
        """Connect and wait for the broker's answer; raises LinkLostError with the reason."""
        broker = self.broker
        try:
            async with asyncio.timeout(broker.connect_timeout_s):
                await connect_client(self._client, broker, self.protocol)
                self._misc = asyncio.create_task(self._housekeeping(), name="mqtt-misc")
                await self._answered
        except TimeoutError as exc:
            await self.close()
            raise LinkLostError(broker.endpoint, _SILENT) from exc
        except UnicodeError as exc:  # in looking it up: an empty label, or one too long
            raise LinkLostError(broker.endpoint, "no host can have this name") from exc
        except OSError as exc:
            reason = reason_of(exc) if isinstance(exc, ssl.SSLError) else exc.strerror
            raise LinkLostError(broker.endpoint, reason or str(exc)) from exc
        except (LinkLostError, asyncio.CancelledError):
            await self.close()
            raise

    async def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribe at QoS 1; raises LinkLostError, or RefusedError naming what was not granted.

        What is granted at QoS 0 is refused too: its messages could get lost. With a kept session
        somebody must receive meanwhile: the answer stands behind the backlog, and a full inbox is
        not read past.
        """
        self._check()
        _, mid = self._client.subscribe([(topic, _QOS) for topic in topics])
        if mid is None:
            raise self._lose("gone")
        await self._answer(mid, topics)

    async def unsubscribe(self, topic: str) -> None:
        """Take a subscription back; what came before the broker's answer is in the inbox."""
        self._check()
        _, mid = self._client.unsubscribe(topic)
        if mid is None:
            raise self._lose("gone")
        await self._answer(mid, ())

    async def publish(
        self, topic: str, payload: bytes, *, retain: bool = False, qos: int = 1
    ) -> None:
        """Publish and return once the broker acknowledged (QoS 0: once it is written).

        A PUBACK is not durability (docs/design.md, Messages). Raises RefusedError, LinkLostError,
        or TooBigError when the broker said that it takes no packet so large.
        """
        await self.publish_heard(topic, payload, retain=retain, qos=qos)

    async def publish_heard(
        self, topic: str, payload: bytes, *, retain: bool = False, qos: int = 1
    ) -> bool:
        """Publish as above; False when the broker has nobody to hand it to (MQTT 5 says so)."""
        self._check()
        if self.max_packet is not None and packet_bytes(topic, payload) > self.max_packet:
            raise TooBigError(topic, self.max_packet)
        async with self._credit:
            self._check()
            info = self._client.publish(topic, payload, qos=qos, retain=retain)
            return await self._answer(info.mid, [topic])

    async def receive(self) -> Message:
        """Return the next message; raises LinkLostError once the inbox is empty and the link gone.

        Safe to cancel: a message not returned stays in the inbox.
        """
        while not self._inbox:
            if self._lost:
                raise self._lost
            self._arrived.clear()
            await self._arrived.wait()
        message = self._inbox.take()
        self._socket.steer()
        return message

    def receive_ready(self, limit: int) -> list[Message]:
        """Return up to `limit` messages that are already here, without waiting."""
        taken = [self._inbox.take() for _ in range(min(limit, len(self._inbox)))]
        self._socket.steer()
        return taken

    def ack(self, message: Message) -> None:
        """Acknowledge an incoming message (manual_ack); nothing happens when the link is gone.

        One sent at QoS 0 has no number: acknowledging it would end the link.
        """
        if message.mid and not self._lost:
            self._client.ack(message.mid, 1)

    async def close(self, *, abrupt: bool = False) -> None:
        """Disconnect (abrupt: without a word, so that the broker sends the will)."""
        self.leave(abrupt=abrupt)

    def leave(self, *, abrupt: bool = False) -> None:
        """Do the same where nobody can wait."""
        if self._misc:
            self._misc.cancel()
        sock = self._socket.current
        if sock and not abrupt and not self._lost:
            self._client.disconnect()
            self._client.loop_write()
        self._lose("closed")
        self._socket.detach()
        if self._socket.opened:
            self._socket.opened.close()  # paho leaves it open after a refused connection

    async def _answer(self, mid: int, topics: Sequence[str]) -> bool:
        future: asyncio.Future[bool] = self._loop.create_future()
        self._waiting[mid] = (topics, future)
        if self._lost:
            self._waiting.pop(mid)
            raise self._lost
        return await future

    def _refuse(self) -> None:
        """Leave a broker who sends a packet that no memory is there for."""
        self._lose(_BOUNDLESS)
        self.leave(abrupt=True)

    def _check(self) -> None:
        if self._lost:
            raise self._lost

    def _lose(self, reason: str) -> LinkLostError:
        if self._lost is None:
            self._lost = LinkLostError(self.broker.endpoint, reason)
            waiting, self._waiting = self._waiting, {}
            waited: list[asyncio.Future[Any]] = [future for _, future in waiting.values()]
            for future in (self._answered, *waited):
                if not future.done():
                    future.set_exception(self._lost)
                    future.exception()  # it may be that nobody waits any more
            self._arrived.set()
        return self._lost

    async def _housekeeping(self) -> None:
        while not self._lost:
            await asyncio.sleep(MISC_INTERVAL_S)
            self._client.loop_misc()

    # paho's callbacks

    def _on_connect(
        self, _client: paho.Client, _data: Any, _flags: Any, code: ReasonCode, props: Any
    ) -> None:
        if code.is_failure:
            self._lose(str(code).lower())
        elif not self._answered.done():
            self.max_packet = getattr(props, "MaximumPacketSize", None)
            allowed = getattr(props, "ReceiveMaximum", self.broker.window)
            self._credit = asyncio.Semaphore(min(self.broker.window, allowed))
            self._answered.set_result(None)

    def _on_disconnect(
        self, _client: paho.Client, _data: Any, _flags: Any, code: ReasonCode, _props: Any
    ) -> None:
        alert = self._socket.alert
        if not self._answered.done():
            self._lose(alert or _UNANSWERED)
        reason = str(code).lower()
        self._lose(alert or (GONE if reason == _UNSPECIFIED else reason))

    def _on_message(self, _client: paho.Client, _data: Any, message: paho.MQTTMessage) -> None:
        try:
            topic = message.topic
        except UnicodeDecodeError:
            topic = ""  # no topic of ours; the owner refuses it like any other
        self._inbox.put(Message(topic, bytes(message.payload), message.retain, message.mid))
        self._arrived.set()

    def _on_publish(
        self, _client: paho.Client, _data: Any, mid: int, code: ReasonCode, _props: Any
    ) -> None:
        self._settle(mid, [code], 0)

    def _on_subscribe(
        self, _client: paho.Client, _data: Any, mid: int, codes: list[ReasonCode], _props: Any
    ) -> None:
        self._settle(mid, codes, _QOS)

    def _on_unsubscribe(
        self, _client: paho.Client, _data: Any, mid: int, _codes: Any, _props: Any
    ) -> None:
        self._settle(mid, (), 0)

    def _settle(self, mid: int, codes: Sequence[ReasonCode], least: int) -> None:
        """Answer who waits; a code below `least` grants less than was asked for."""
        topics, future = self._waiting.pop(mid, ((), None))
        if future is None or future.done():
            return
        refused = [
            (topic, code)
            for topic, code in zip_longest(topics, codes)
            if code is None or code.is_failure or code.value < least
        ]
        if not refused:
            future.set_result(_UNHEARD not in [code.value for code in codes])
            return
        names = ", ".join(topic or "-" for topic, _ in refused)
        why = refused[0][1]
        future.set_exception(RefusedError(names, "no answer" if why is None else str(why).lower()))
