"""paho's client as we use it, made for one connection, and its socket on the asyncio loop.

It connects beside the loop, is read while there is room and written when paho asks for it.

Brokers lie and flood: what is held of one is bounded here (docs/faults.md, NET-30).
"""

import asyncio
import ssl
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from edge_ldp.service.broker import Broker, Message
from edge_ldp.service.tasks import in_thread
from edge_ldp.service.tls import make_context

INBOX_LIMIT = 1000
INBOX_BYTES = 4 << 20  # as many reports as that count, each of the largest size
MOST_BYTES = 16 << 20  # of a packet: beyond it the broker, who was asked for less, is left
READ_BURST = 32


class Inbox:
    """What was read and nobody took yet, with a bound by count and by bytes."""

    def __init__(self) -> None:
        self._messages: deque[Message] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        """How many messages wait."""
        return len(self._messages)

    @property
    def fill(self) -> float:
        """Return how full it is, by count or by bytes: from 1 on nothing more is read."""
        return max(len(self._messages) / INBOX_LIMIT, self._bytes / INBOX_BYTES)

    def put(self, message: Message) -> None:
        """Take a message; of one that nobody asked for by its size, no more than tells so."""
        if len(message.payload) > MAX_PACKET_BYTES:
            message = message._replace(payload=message.payload[: MAX_PACKET_BYTES + 1])
        self._messages.append(message)
        self._bytes += len(message.payload)

    def take(self) -> Message:
        """Return the message that has waited longest."""
        message = self._messages.popleft()
        self._bytes -= len(message.payload)
        return message


class LoopSocket:
    """Follows the socket of a client through paho's callbacks, from open to close.

    While `inbox` is full the socket is not read, which is the back-pressure that the broker sees.
    `is_over`: nobody waits for the connection any more. `refuse`: a packet is beyond every bound.
    """

    def __init__(
        self,
        client: paho.Client,
        inbox: Inbox,
        is_over: Callable[[], bool],
        refuse: Callable[[], None],
    ) -> None:
        self.peer: tuple[str, int] | None = None  # whom we really speak to
        self.opened: Any = None  # by the thread that connects, maybe before the loop knows of it
        self.current: Any = None
        self.is_read = False
        self._last: Any = None
        self._client = client
        self._inbox = inbox
        self._is_over = is_over
        self._refuse = refuse
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        client.on_socket_open = self._on_open
        client.on_socket_close = self._on_close
        client.on_socket_register_write = self._on_register_write
        client.on_socket_unregister_write = self._on_unregister_write

    @property
    def alert(self) -> str | None:
        """Return why TLS ended the connection, if it said so (`edge_ldp.service.tls`)."""
        return getattr(self._last, "alert", None)

    def steer(self) -> None:
        """Read from the socket unless the inbox is full; start again when it is half empty."""
        if self.current is None:
            return
        if self.is_read and self._inbox.fill >= 1:
            self._loop.remove_reader(self.current)
            self.is_read = False
        elif not self.is_read and self._inbox.fill <= 1 / 2:
            self._loop.add_reader(self.current, self._readable)
            self.is_read = True
            self._read_pending()

    def detach(self) -> None:
        """Let the loop forget the socket."""
        if self.current is not None and self.current.fileno() >= 0:
            self._loop.remove_reader(self.current)
            self._loop.remove_writer(self.current)
        self.current = None
        self.is_read = False

    # connect() runs in a helper thread, everything else on the loop

    def _on_open(self, _client: paho.Client, _data: Any, sock: Any) -> None:
        """Take over a socket that paho opened.

        Who leaves closes what is `opened`, and from then on it is closed here: so the last of both
        does, also where the loop runs no more.
        """
        self.opened = sock
        if self._is_over():  # a name that took too long to resolve: nobody waits any more
            sock.close()
        else:
            self._in_loop(self._attach, sock)

    def _on_close(self, _client: paho.Client, _data: Any, _sock: Any) -> None:
        self._in_loop(self.detach)

    def _on_register_write(self, _client: paho.Client, _data: Any, sock: Any) -> None:
        self._in_loop(self._watch_writable, sock)

    def _on_unregister_write(self, _client: paho.Client, _data: Any, sock: Any) -> None:
        self._in_loop(self._unwatch_writable, sock)

    def _in_loop(self, action: Any, *args: Any) -> None:
        if threading.get_ident() == self._thread:
            action(*args)
            return
        try:
            self._loop.call_soon_threadsafe(action, *args)
        except RuntimeError:  # the loop is closed: a connection that comes now is nobody's
            if action == self._attach:
                args[0].close()

    def _attach(self, sock: Any) -> None:
        if self._is_over():
            return
        self.current = self._last = sock
        with suppress(OSError):
            self.peer = sock.getpeername()[:2]
        self.steer()

    def _watch_writable(self, sock: Any) -> None:
        if sock.fileno() >= 0:
            self._loop.add_writer(sock, self._client.loop_write)

    def _unwatch_writable(self, sock: Any) -> None:
        if sock.fileno() >= 0:
            self._loop.remove_writer(sock)

    def _readable(self) -> None:
        if not self.is_read:
            return
        for _ in range(READ_BURST):  # paho reads one packet a call, or as many as are in flight
            before = len(self._inbox)
            self._client.loop_read()
            if coming_bytes(self._client) > MOST_BYTES:
                self._refuse()
                return
            if self._inbox.fill >= 1 or (len(self._inbox) == before and not self._pending()):
                break
        self.steer()
        self._read_pending()

    def _read_pending(self) -> None:
        """Go on soon with what TLS holds: no byte on the socket would wake the loop for it."""
        if self.is_read and self._pending():
            self._loop.call_soon(self._readable)

    def _pending(self) -> bool:
        """Say whether TLS holds bytes that the loop cannot see on the socket."""
        return isinstance(self.current, ssl.SSLSocket) and self.current.pending() > 0


PACKET_HEAD = 5 + 2 + 2 + 1  # of a PUBLISH: fixed header, topic length, packet id, no properties
MAX_PACKET_BYTES = 1 << 19  # asked of MQTT 5 brokers: twice the largest message that is ever read
_PROTOCOLS = {"5": paho.MQTTv5, "3.1.1": paho.MQTTv311}


def make_client(broker: Broker, protocol: str) -> paho.Client:
    """Return a client that is not connected, and never connects by itself."""
    client = paho.Client(
        CallbackAPIVersion.VERSION2,
        client_id=broker.client_id,
        clean_session=None if protocol == "5" else broker.session_s == 0,
        protocol=_PROTOCOLS[protocol],
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
    return client


async def connect_client(client: paho.Client, broker: Broker, protocol: str) -> None:
    """Open the connection, which blocks, in a thread; the broker's answer comes later."""
    options: dict[str, Any] = {}
    if protocol == "5":
        options["clean_start"] = broker.session_s == 0
        options["properties"] = _connect_properties(broker)
    keepalive_s = _ping_after(broker.keepalive_s)
    await in_thread(
        lambda: client.connect(broker.host, broker.port, keepalive_s, **options), "mqtt-connect"
    )


def packet_bytes(topic: str, payload: bytes) -> int:
    """Return the size that a PUBLISH packet of this message has at most."""
    return PACKET_HEAD + len(topic.encode()) + len(payload)


def coming_bytes(client: paho.Client) -> int:
    """Return the size that a packet which is being read says it has."""
    return client._in_packet["remaining_length"]  # noqa: SLF001 (there is no public word)


def _ping_after(keepalive_s: int) -> int:
    """Return after how many silent seconds to ask; paho waits as long again, and looks each 1 s."""
    return max(1, keepalive_s * 3 // 4 - 1)


def _connect_properties(broker: Broker) -> Properties:
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = broker.session_s
    properties.ReceiveMaximum = broker.window
    properties.MaximumPacketSize = MAX_PACKET_BYTES
    return properties
