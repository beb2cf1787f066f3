"""A page that answers what a test says, byte by byte if it wants; each request is kept."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress


class PageServer:
    """Answers with `body` and `status`, or lets `talk` do as it likes."""

    def __init__(self, body: bytes = b"", status: int = 200) -> None:
        self.body = body
        self.status = status
        self.headers: dict[str, str] = {}
        self.talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]] | None
        self.talk = None
        self.requests: list[str] = []
        self.port = 0
        self.serving: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.serving.add(task)
        try:
            self.requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
            if self.talk is not None:
                await self.talk(reader, writer)
                return
            headers = {"Content-Length": str(len(self.body)), **self.headers}
            lines = [f"HTTP/1.1 {self.status} -", *(f"{k}: {v}" for k, v in headers.items())]
            writer.write("\r\n".join([*lines, "", ""]).encode() + self.body)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


@asynccontextmanager
async def page_server(
    body: bytes = b"", status: int = 200, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[PageServer]:
    """Give a running server on a free port of this machine."""
    made = PageServer(body, status)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=tls)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for task in made.serving:
            task.cancel()
        await asyncio.gather(*made.serving, return_exceptions=True)
