"""A serial adapter in the network that hands bytes through: plain TCP on loopback, one client.

As with PtyPort, bytes sent while nobody listens are lost. Nothing here blocks the event loop.
"""

import asyncio
import socket
from contextlib import suppress

_WAIT_S = 0.002  # real seconds between two looks for a client


class TcpPort:
    """The meter's end of a line whose other end is a TCP connection to `port`."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self.host = host
        self.port = port  # 0: chosen with the first `plug`, and kept
        self._server: asyncio.Server | None = None
        self._client: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    @property
    def name(self) -> str:
        """What an agent calls this port."""
        return f"socket://{self.host}:{self.port}"

    @property
    def has_reader(self) -> bool:
        """Whether a client is connected."""
        return self._client is not None

    async def plug(self) -> None:
        """Listen for a client."""
        self._server = await asyncio.start_server(self._take, self.host, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def unplug(self) -> None:
        """Go away, as an adapter does whose power is cut while its peer still hears."""
        if self._server is not None:
            self._server.close()
        self.hang_up()

    def hang_up(self) -> None:
        """Close the client's connection, and go on listening."""
        client, self._client = self._client, None
        if client is not None:
            client[1].close()

    async def wait_for_reader(self) -> None:
        """Return once a client is connected."""
        while not self.has_reader:  # noqa: ASYNC110 (as PtyPort)
            await asyncio.sleep(_WAIT_S)

    async def read(self) -> bytes:
        """Return what the client sent next; waits while it is silent or not there."""
        while True:
            await self.wait_for_reader()
            client = self._client
            if client and (data := await client[0].read(4096)):
                return data
            self.hang_up()

    async def write(self, data: bytes) -> bool:
        """Send bytes, waiting while the client is slow; False if there is none."""
        if self._client is None:
            return False
        with suppress(ConnectionError):
            self._client[1].write(data)
            await self._client[1].drain()
            return True
        self.hang_up()
        return False

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the first client, and turn others away, as adapters do."""
        if self._client is not None and not self._client[0].at_eof():
            writer.close()
            return
        self.hang_up()
        sock: socket.socket = writer.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client = (reader, writer)
