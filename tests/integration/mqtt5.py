"""A scripted MQTT 5 broker: what it answers is the test's to say. Speaks just enough of OASIS's."""

import asyncio
import ssl
from dataclasses import dataclass, field
from typing import Self

CONNECT, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, PINGREQ, DISCONNECT = 1, 3, 8, 10, 12, 14
_FAILURES = 0x80  # reason codes from here on
RECEIVE_MAXIMUM, MAXIMUM_PACKET_SIZE = 0x21, 0x27


@dataclass(slots=True)
class Scripted:
    """Answers with these codes and limits; remembers what was published and how much at once.

    `connack` is a list of reason codes, one a connection, the last for all later ones; `puback` the
    same for reports. `suback`: what it grants for a topic that ends so, instead of QoS 1.
    Acknowledgements come after `delay_s`. `disconnect`: with this code it ends
    a connection once something was published. `flood`: bytes that follow a subscription at once.
    """

    connack: list[int] = field(default_factory=lambda: [0])
    puback: list[int] = field(default_factory=lambda: [0])
    suback: dict[str, int] = field(default_factory=dict)
    receive_maximum: int = 0
    maximum_packet: int = 0
    delay_s: float = 0.0
    disconnect: int = 0
    flood: bytes = b""
    context: ssl.SSLContext | None = None
    published: list[tuple[str, bytes]] = field(default_factory=list)
    connections: int = 0
    most_in_flight: int = 0
    largest: int = 0
    port: int = 0
    _in_flight: int = 0
    _server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.context)
        self._server, self.port = server, int(server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._in_flight = 0
        tasks: set[asyncio.Task[None]] = set()
        try:
            while True:
                kind, body = await _packet(reader)
                if kind == CONNECT:
                    code = _next(self.connack)
                    writer.write(_framed(0x20, bytes([0, code]) + _sized(self._properties())))
                    if code:
                        return
                elif kind in (SUBSCRIBE, UNSUBSCRIBE, PINGREQ):
                    writer.write(self._answer(kind, body))
                    if kind == SUBSCRIBE:
                        writer.write(self.flood)
                elif kind == PUBLISH:
                    task = asyncio.create_task(self._take(body, writer))
                    tasks.add(task)
                elif kind == DISCONNECT:
                    return
        except (asyncio.IncompleteReadError, OSError):
            return
        finally:
            for task in tasks:
                task.cancel()
            writer.close()

    async def _take(self, body: bytes, writer: asyncio.StreamWriter) -> None:
        size = int.from_bytes(body[:2], "big")
        name, rest = body[2 : 2 + size].decode(), body[2 + size :]
        mid, payload = rest[:2], rest[3:]  # no properties
        self.largest = max(self.largest, len(body) + 2)
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        await asyncio.sleep(self.delay_s)
        self._in_flight -= 1
        code = _next(self.puback) if "/report/" in name else 0
        if code < _FAILURES:
            self.published.append((name, payload))
        writer.write(_framed(0x40, mid + bytes([code, 0])))
        if self.disconnect:
            writer.write(_framed(0xE0, bytes([self.disconnect, 0])))

    def _answer(self, kind: int, body: bytes) -> bytes:
        if kind == PINGREQ:
            return b"\xd0\0"
        if kind == UNSUBSCRIBE:  # of one topic
            return _framed(0xB0, body[:2] + b"\0\0")
        codes = bytes(self._granted(name) for name in _topics(body[3:]))
        return _framed(0x90, body[:2] + b"\0" + codes)

    def _granted(self, name: str) -> int:
        return next((code for end, code in self.suback.items() if name.endswith(end)), 1)

    def _properties(self) -> bytes:
        found = b""
        if self.receive_maximum:
            found += bytes([RECEIVE_MAXIMUM]) + self.receive_maximum.to_bytes(2, "big")
        if self.maximum_packet:
            found += bytes([MAXIMUM_PACKET_SIZE]) + self.maximum_packet.to_bytes(4, "big")
        return found


def message(topic: bytes, payload: bytes) -> bytes:
    return _framed(0x30, len(topic).to_bytes(2, "big") + topic + b"\0" + payload)


def _topics(filters: bytes) -> list[str]:
    """Return the topics of a SUBSCRIBE without properties: length, name, options each."""
    found = []
    while filters:
        end = 2 + int.from_bytes(filters[:2], "big")
        found.append(filters[2:end].decode())
        filters = filters[end + 1 :]
    return found


def _next(codes: list[int]) -> int:
    return codes.pop(0) if len(codes) > 1 else codes[0]


async def _packet(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    first = (await reader.readexactly(1))[0]
    size = shift = 0
    while True:
        byte = (await reader.readexactly(1))[0]
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return first >> 4, await reader.readexactly(size)


def _sized(content: bytes) -> bytes:
    size, found = len(content), b""
    while True:
        size, byte = size >> 7, size & 0x7F
        found += bytes([byte | 0x80 if size else byte])
        if not size:
            return found + content


def _framed(kind: int, content: bytes) -> bytes:
    return bytes([kind]) + _sized(content)
