"""One connection to an MQTT broker on the asyncio loop: paho-mqtt moves the packets, no thread.

A Link lives from connect to loss. Whoever owns it opens the next one, with a fresh client, so no
packet id or half-sent message of a former connection ever matters (FAULTS NET-19): the owner's
outbox is the only queue. Incoming messages wait in a bounded inbox; when it is full the socket is
not read, which is the back-pressure the broker sees.
"""

import asyncio
import ssl
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from edge_ldp.shell.broker import Broker, LinkLostError, Message, RefusedError, TooBigError
from edge_ldp.shell.tls import make_context, reason_of

__all__ = [
    "INBOX_LIMIT",
    "READ_BURST",
    "Broker",
    "Link",
    "LinkLostError",
    "Message",
    "RefusedError",
    "TooBigError",
    "open_link",
    "packet_bytes",
]

INBOX_LIMIT = 1000
MISC_INTERVAL_S = 1.0
_PROTOCOLS = {"5": paho.MQTTv5, "3.1.1": paho.MQTTv311}
_UNSUPPORTED = "unsupported protocol version"
_UNANSWERED = "closed before it answered"
READ_BURST = 32
PACKET_HEAD = 5 + 2 + 2 + 1  # of a PUBLISH: fixed header, topic length, packet id, no properties


async def open_link(broker: Broker) -> "Link":
    """Return a connected Link; raises LinkLostError. "auto" tries MQTT 5, then 3.1.1."""
    if broker.protocol != "auto":
        return await _open(broker, broker.protocol)
    try:
        return await _open(broker, "5")
    except LinkLostError as exc:
        if exc.reason not in (_UNSUPPORTED, _UNANSWERED):
            raise
    return await _open(broker, "3.1.1")


async def _open(broker: Broker, protocol: str) -> "Link":
    link = Link(broker, protocol)
    await link.open()
    return link


class Link:
    """One connection: publish, subscribe, receive, acknowledge; LinkLostError when it is gone."""

    def __init__(self, broker: Broker, protocol: str) -> None:
        self.broker = broker
        self.protocol = protocol
        self.session_present = False
        self.max_packet: int | None = None  # bytes, as the broker says
        self.peer: tuple[str, int] | None = None  # whom we really speak to
        self._last_socket: Any = None
        self._credit = asyncio.Semaphore(broker.window)  # publishes not yet acknowledged
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._client = self._make_client()
        self._answered: asyncio.Future[None] = self._loop.create_future()
        self._waiting: dict[int, tuple[str, asyncio.Future[None]]] = {}
        self._inbox: deque[Message] = deque()
        self._arrived = asyncio.Event()
        self._lost: LinkLostError | None = None
        self._socket: Any = None
        self._reading = False
        self._misc: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect and wait for the broker's answer; raises LinkLostError with the reason."""
        broker = self.broker
        options: dict[str, Any] = {}
        if self.protocol == "5":
            options["clean_start"] = broker.session_s == 0
            options["properties"] = _connect_properties(broker)
        try:
            async with asyncio.timeout(broker.connect_timeout_s):
                await _in_thread(
                    lambda: self._client.connect(
                        broker.host, broker.port, _ping_after(broker.keepalive_s), **options
                    )
                )
                self._misc = asyncio.create_task(self._housekeeping(), name="mqtt-misc")
                await self._answered
        except TimeoutError as exc:
            await self.close()
            raise LinkLostError(broker.endpoint, "no answer in time") from exc
        except ssl.SSLError as exc:
            raise LinkLostError(broker.endpoint, reason_of(exc)) from exc
        except OSError as exc:
            raise LinkLostError(broker.endpoint, exc.strerror or str(exc)) from exc
        except (LinkLostError, asyncio.CancelledError):
            await self.close()
            raise

    async def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribe at QoS 1; raises RefusedError or LinkLostError.

        With a kept session somebody must receive meanwhile: the answer stands behind the backlog,
        and a full inbox is not read past.
        """
        self._check()
        _, mid = self._client.subscribe([(topic, 1) for topic in topics])
        if mid is None:
            raise self._lose("gone")
        await self._answer(mid, ", ".join(topics))

    async def publish(
        self, topic: str, payload: bytes, *, retain: bool = False, qos: int = 1
    ) -> None:
        """Publish and return once the broker acknowledged (QoS 0: once it is written).

        A PUBACK is not durability (DESIGN §8). Raises RefusedError, LinkLostError, or TooBigError
        when the broker said that it takes no packet so large.
        """
        self._check()
        if self.max_packet is not None and packet_bytes(topic, payload) > self.max_packet:
            raise TooBigError(topic, self.max_packet)
        async with self._credit:
            self._check()
            info = self._client.publish(topic, payload, qos=qos, retain=retain)
            await self._answer(info.mid, topic)

    async def receive(self) -> Message:
        """Return the next message; raises LinkLostError once the inbox is empty and the link gone.

        Safe to cancel: a message not returned stays in the inbox.
        """
        while not self._inbox:
            if self._lost:
                raise self._lost
            self._arrived.clear()
            await self._arrived.wait()
        message = self._inbox.popleft()
        self._steer_reading()
        return message

    def receive_ready(self, limit: int) -> list[Message]:
        """Return up to `limit` messages that are already here, without waiting."""
        taken = [self._inbox.popleft() for _ in range(min(limit, len(self._inbox)))]
        self._steer_reading()
        return taken

    def ack(self, message: Message) -> None:
        """Acknowledge an incoming message (manual_ack); nothing happens when the link is gone."""
        if not self._lost:
            self._client.ack(message.mid, 1)

    async def close(self, *, abrupt: bool = False) -> None:
        """Disconnect (abrupt: without a word, so that the broker sends the will)."""
        if self._misc:
            self._misc.cancel()
        sock = self._socket
        if sock and not abrupt and not self._lost:
            self._client.disconnect()
            self._client.loop_write()
        self._lose("closed")
        self._detach()
        if sock:
            sock.close()  # paho leaves it open after a refused connection

    def _make_client(self) -> paho.Client:
        broker = self.broker
        client = paho.Client(
            CallbackAPIVersion.VERSION2,
            client_id=broker.client_id,
            clean_session=None if self.protocol == "5" else broker.session_s == 0,
            protocol=_PROTOCOLS[self.protocol],
            manual_ack=broker.manual_ack,
            reconnect_on_failure=False,
        )
        client.connect_timeout = broker.connect_timeout_s
        client.max_inflight_messages_set(broker.window)
        if broker.username is not None:
            client.username_pw_set(broker.username, broker.password)
        if broker.tls:
            client.tls_set_context(make_context(broker))
        if broker.will:
            client.will_set(broker.will.topic, broker.will.payload, 1, broker.will.retain)
        client.on_socket_open = self._on_socket_open
        client.on_socket_close = self._on_socket_close
        client.on_socket_register_write = self._on_register_write
        client.on_socket_unregister_write = self._on_unregister_write
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_message = self._on_message
        client.on_publish = self._on_publish
        client.on_subscribe = self._on_subscribe
        return client

    async def _answer(self, mid: int, topic: str) -> None:
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting[mid] = (topic, future)
        if self._lost:
            self._waiting.pop(mid)
            raise self._lost
        await future

    def _check(self) -> None:
        if self._lost:
            raise self._lost

    def _lose(self, reason: str) -> LinkLostError:
        if self._lost is None:
            self._lost = LinkLostError(self.broker.endpoint, reason)
            waiting, self._waiting = self._waiting, {}
            for future in (self._answered, *(future for _, future in waiting.values())):
                if not future.done():
                    future.set_exception(self._lost)
                    future.exception()  # it may be that nobody waits any more
            self._arrived.set()
        return self._lost

    async def _housekeeping(self) -> None:
        while not self._lost:
            await asyncio.sleep(MISC_INTERVAL_S)
            self._client.loop_misc()

    # paho's callbacks; connect() runs in a helper thread, everything else on the loop

    def _in_loop(self, action: Any, *args: Any) -> None:
        if threading.get_ident() == self._thread:
            action(*args)
            return
        try:
            self._loop.call_soon_threadsafe(action, *args)
        except RuntimeError:  # the loop is closed: a connection that comes now is nobody's
            if action == self._attach:
                args[0].close()

    def _on_socket_open(self, _client: paho.Client, _data: Any, sock: Any) -> None:
        self._in_loop(self._attach, sock)

    def _on_socket_close(self, _client: paho.Client, _data: Any, _sock: Any) -> None:
        self._in_loop(self._detach)

    def _on_register_write(self, _client: paho.Client, _data: Any, sock: Any) -> None:
        self._in_loop(self._watch_writable, sock)

    def _on_unregister_write(self, _client: paho.Client, _data: Any, sock: Any) -> None:
        self._in_loop(self._unwatch_writable, sock)

    def _attach(self, sock: Any) -> None:
        if self._lost:  # a name that took too long to resolve: nobody waits any more
            sock.close()
            return
        self._socket = self._last_socket = sock
        with suppress(OSError):
            self.peer = sock.getpeername()[:2]
        self._steer_reading()

    def _detach(self) -> None:
        if self._socket is not None and self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
        self._socket = None
        self._reading = False

    def _watch_writable(self, sock: Any) -> None:
        if sock.fileno() >= 0:
            self._loop.add_writer(sock, self._client.loop_write)

    def _unwatch_writable(self, sock: Any) -> None:
        if sock.fileno() >= 0:
            self._loop.remove_writer(sock)

    def _steer_reading(self) -> None:
        """Read from the socket unless the inbox is full; start again when it is half empty."""
        if self._socket is None:
            return
        if self._reading and len(self._inbox) >= INBOX_LIMIT:
            self._loop.remove_reader(self._socket)
            self._reading = False
        elif not self._reading and len(self._inbox) <= INBOX_LIMIT // 2:
            self._loop.add_reader(self._socket, self._readable)
            self._reading = True

    def _readable(self) -> None:
        for _ in range(READ_BURST):  # paho reads one packet a call
            before = len(self._inbox)
            self._client.loop_read()
            if len(self._inbox) == before and not self._pending():
                break
        self._steer_reading()

    def _pending(self) -> bool:
        """Say whether TLS holds bytes that the loop cannot see on the socket."""
        return isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    def _on_connect(
        self, _client: paho.Client, _data: Any, flags: Any, code: ReasonCode, props: Any
    ) -> None:
        if code.is_failure:
            self._lose(str(code).lower())
        elif not self._answered.done():
            self.session_present = bool(flags.session_present)
            self.max_packet = getattr(props, "MaximumPacketSize", None)
            allowed = getattr(props, "ReceiveMaximum", self.broker.window)
            self._credit = asyncio.Semaphore(min(self.broker.window, allowed))
            self._answered.set_result(None)

    def _on_disconnect(
        self, _client: paho.Client, _data: Any, _flags: Any, code: ReasonCode, _props: Any
    ) -> None:
        alert = getattr(self._last_socket, "alert", None)
        if not self._answered.done():
            self._lose(alert or _UNANSWERED)
        self._lose(alert or str(code).lower())

    def _on_message(self, _client: paho.Client, _data: Any, message: paho.MQTTMessage) -> None:
        try:
            topic = message.topic
        except UnicodeDecodeError:
            topic = ""  # no topic of ours; the owner refuses it like any other
        self._inbox.append(Message(topic, bytes(message.payload), message.retain, message.mid))
        self._arrived.set()

    def _on_publish(
        self, _client: paho.Client, _data: Any, mid: int, code: ReasonCode, _props: Any
    ) -> None:
        self._settle(mid, [code])

    def _on_subscribe(
        self, _client: paho.Client, _data: Any, mid: int, codes: list[ReasonCode], _props: Any
    ) -> None:
        self._settle(mid, codes)

    def _settle(self, mid: int, codes: Sequence[ReasonCode]) -> None:
        topic, future = self._waiting.pop(mid, ("", None))
        if future is None or future.done():
            return
        refusal = next((str(code).lower() for code in codes if code.is_failure), None)
        if refusal is None:
            future.set_result(None)
        else:
            future.set_exception(RefusedError(topic, refusal))


def packet_bytes(topic: str, payload: bytes) -> int:
    """Return the size that a PUBLISH packet of this message has at most."""
    return PACKET_HEAD + len(topic.encode()) + len(payload)


def _ping_after(keepalive_s: int) -> int:
    """Return after how many silent seconds to ask; paho waits as long again, and looks each 1 s."""
    return max(1, keepalive_s * 3 // 4 - 1)


async def _in_thread(work: Callable[[], object]) -> None:
    """Do what blocks beside the loop; a stop never waits for it, as it would for an executor's."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(exc: BaseException | None) -> None:
        if done.done():
            return
        if exc is None:
            done.set_result(None)
        else:
            done.set_exception(exc)

    def run() -> None:
        raised = None
        try:
            work()
        except Exception as exc:  # noqa: BLE001 (handed to the one who waits)
            raised = exc
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(settle, raised)

    threading.Thread(target=run, name="mqtt-connect", daemon=True).start()
    await done


def _connect_properties(broker: Broker) -> Properties:
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = broker.session_s
    properties.ReceiveMaximum = broker.window
    return properties
