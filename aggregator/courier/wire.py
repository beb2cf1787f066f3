"""What an aggregator and its courier say to each other: MessagePack frames on a pair of sockets.

Orders go down, from the aggregator to the courier; news come up. `number`s pair an order with its
answer. Nobody else is on the sockets, which have no name.
"""

import asyncio
import socket
import struct
from typing import TypeAlias

from msgspec import Struct
from msgspec.msgpack import Decoder, Encoder

from edge_ldp.service.broker import Broker

START_S = 10.0  # a busy machine may take so long to start a process
_LENGTH = struct.Struct("<I")


def beat_s(broker: Broker) -> float:
    """Return after how many seconds to show again that one is alive, as MQTT itself would."""
    return broker.keepalive_s / 2


def patience_s(broker: Broker) -> float:
    """Return after how many silent seconds the other end counts as dead."""
    return START_S + 1.5 * broker.keepalive_s


class Open(Struct, array_like=True, tag=True):
    """Connect; the first order, answered by Opened or Lost."""

    broker: Broker


class Subscribe(Struct, array_like=True, tag=True):
    """Subscribe to topics; answered by Done or Refused."""

    number: int
    topics: list[str]


class Publish(Struct, array_like=True, tag=True):
    """Publish; answered by Done or Refused once the broker answered."""

    number: int
    topic: str
    payload: bytes
    retain: bool
    qos: int


class Ack(Struct, array_like=True, tag=True):
    """Acknowledge messages by their `mid`s, in this order."""

    mids: list[int]


class Close(Struct, array_like=True, tag=True):
    """Disconnect with a word; the end of the wire alone is an end without one."""


class Beat(Struct, array_like=True, tag=True):
    """Still alive: sent down, and answered by one."""


class Opened(Struct, array_like=True, tag=True):
    """Connected, by this protocol; until when its certificates are valid."""

    protocol: str
    valid_until_s: int | None


class Came(Struct, array_like=True, tag=True):
    """Messages as they came: topic, payload, retain, mid."""

    messages: list[tuple[str, bytes, bool, int]]


class Done(Struct, array_like=True, tag=True):
    """What `number` ordered is done."""

    number: int


class Refused(Struct, array_like=True, tag=True):
    """What `number` ordered was refused; `limit` in bytes, where the packet was too big."""

    number: int
    topic: str
    reason: str
    limit: int | None = None


class Lost(Struct, array_like=True, tag=True):
    """The link is lost, or was never had; nothing comes after this."""

    reason: str


Order: TypeAlias = Open | Subscribe | Publish | Ack | Beat | Close
News: TypeAlias = Opened | Came | Done | Refused | Beat | Lost
ORDERS: Decoder[Order] = Decoder(Order)
NEWS: Decoder[News] = Decoder(News)


class Wire:
    """One end: frames are written without waiting, and read one after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._encoder = Encoder()

    @classmethod
    async def on(cls, sock: socket.socket) -> "Wire":
        """Return the wire on a connected socket, which it owns from now on."""
        return cls(*await asyncio.open_connection(sock=sock))

    async def read(self, patience_s: float | None = None) -> bytes | None:
        """Return the next frame; None at the end, whoever ended it and how.

        A wire that is silent for `patience_s` has ended, and so has one whose read was cancelled.
        """
        try:
            async with asyncio.timeout(patience_s):
                head = await self._reader.readexactly(_LENGTH.size)
                return await self._reader.readexactly(*_LENGTH.unpack(head))
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
            return None

    def write(self, frame: Order | News) -> None:
        """Send a frame; one that nobody reads any more is dropped."""
        data = self._encoder.encode(frame)
        self._writer.writelines((_LENGTH.pack(len(data)), data))

    async def drain(self) -> None:
        """Wait until the other end has taken most of what was written, or is gone."""
        try:
            await self._writer.drain()
        except ConnectionError:
            return

    async def close(self) -> None:
        """Send what is left, and end the wire."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            return
