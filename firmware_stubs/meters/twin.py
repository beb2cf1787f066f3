"""A simulated dongle: the newest telegram as a page that is asked for, or as a broker's message."""

import asyncio
import json
import secrets
import ssl
from contextlib import suppress
from pathlib import Path

from edge_ldp.device.errors import ParameterError
from edge_ldp.service.mqtt import Broker, Link, open_link
from firmware_stubs.meters.products import Twin

PRESSED_S = 30.0
"""How long a button that was pressed lets in who asks."""

_PHRASES = {200: "OK", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found"}


class PageTwin:
    """A dongle with pages; `press` is its button. Each request's first line is kept."""

    def __init__(self, twin: Twin, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        self.host = host
        self.port = port  # 0: chosen with the first `plug`, and kept
        self.tokens: set[str] = set()
        self.requests: list[str] = []
        self._twin = twin
        self._tls = tls
        self._newest = b""
        self._pressed_s = -PRESSED_S
        self._asked = asyncio.Event()
        self._server: asyncio.Server | None = None

    @property
    def name(self) -> str:
        """What an agent calls this port."""
        return f"{'https' if self._tls else 'http'}://{self.host}:{self.port}{self._twin.path}"

    async def plug(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._serve, self.host, self.port, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    def unplug(self) -> None:
        """Go away."""
        if self._server is not None:
            self._server.close()

    def press(self) -> None:
        """Press the button: for a while a token is given to whoever asks."""
        self._pressed_s = asyncio.get_running_loop().time()

    async def wait_for_reader(self) -> None:
        """Return once somebody has asked for anything."""
        await self._asked.wait()

    async def read(self) -> bytes:
        """Never return: nothing is sent to the meter."""
        await asyncio.Event().wait()
        return b""

    async def write(self, data: bytes) -> bool:
        """Take the meter's newest telegram."""
        self._newest = data
        return True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii", "replace")
            first, *lines = head.split("\r\n")
            self.requests.append(first)
            headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
            method, _, rest = first.partition(" ")
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            status, answer = self._answer(method, rest.partition(" ")[0], headers, body)
            lines = [f"HTTP/1.1 {status} {_PHRASES[status]}", f"Content-Length: {len(answer)}"]
            writer.write("\r\n".join([*lines, "Connection: close", "", ""]).encode() + answer)
            await writer.drain()
            self._asked.set()
        writer.close()

    def _answer(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, bytes]:
        if self._twin.gives_token:
            if (method, path) == ("POST", "/api/user"):
                return self._let_in(body)
            if headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
                return 401, b'{"error": "user:unauthorized"}'
        is_there = method == "GET" and path == self._twin.path and self._newest
        return (200, self._newest) if is_there else (404, b'{"error": "request:not-found"}')

    def _let_in(self, body: bytes) -> tuple[int, bytes]:
        name = json.loads(body)["name"]
        if asyncio.get_running_loop().time() - self._pressed_s >= PRESSED_S:
            return 403, b'{"error": "user:creation-not-enabled"}'
        token = secrets.token_hex(16).upper()
        self.tokens.add(token)
        return 200, json.dumps({"token": token, "name": name}).encode()


class TopicTwin:
    """A dongle that publishes to a broker."""

    def __init__(self, twin: Twin, host: str, port: int) -> None:
        self._twin = twin
        self._broker = Broker(host, port, "meter-twin")
        self._link: Link | None = None

    @property
    def name(self) -> str:
        """What an agent calls this port."""
        return f"mqtt://{self._broker.host}:{self._broker.port}/{self._twin.topic}"

    async def plug(self) -> None:
        """Connect."""
        self._link = await open_link(self._broker)

    def unplug(self) -> None:
        """Go away."""
        if self._link is not None:
            self._link.leave()

    async def wait_for_reader(self) -> None:
        """Return at once: nobody knows who listens."""

    async def read(self) -> bytes:
        """Never return: nothing is sent to the meter."""
        await asyncio.Event().wait()
        return b""

    async def write(self, data: bytes) -> bool:
        """Publish a telegram."""
        assert self._link is not None  # noqa: S101 (it is plugged)
        await self._link.publish(self._twin.topic, data, retain=self._twin.is_kept)
        return True


def twin_of(
    twin: Twin,
    listen: tuple[str, int] | None,
    broker: tuple[str, int] | None,
    tls: Path | None,
) -> PageTwin | TopicTwin:
    """Return a product's twin; raises ParameterError where its place is missing, or its TLS."""
    if twin.topic:
        if broker is None:
            raise ParameterError("--product", "--broker HOST:PORT, for this one")
        return TopicTwin(twin, *broker)
    if listen is None:
        raise ParameterError("--product", "--listen [HOST:]PORT, for this one")
    if not twin.gives_token:
        return PageTwin(twin, *listen)
    if tls is None:
        raise ParameterError("--product", f"--tls FILE, for this one, as made by: {_MADE_BY}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls)
    return PageTwin(twin, *listen, context)


_MADE_BY = (
    "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=appliance -days 365 -keyout FILE -out FILE"
)
