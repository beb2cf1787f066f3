"""The page's port: bounded in how many may ask, how long, how often, and how much.

However often it is asked, it is made anew every SHOWN_S at most, and no more than so many a second
are answered: an agent has slots to look after.
"""

import asyncio
from contextlib import suppress

from agent.config.sections import PageTable
from agent.errors import AgentError
from agent.page.gather import Household
from agent.page.html import message_html, page_html
from agent.page.http import (
    HTML,
    JSON,
    MOST_BYTES,
    PageAsked,
    PageReply,
    encoded,
    name_asked,
    question,
    said,
)
from agent.running.door import Door
from edge_ldp.service.broker import LOOPBACK

MOST_OPEN = 16
LIFE_S = 10.0
"""Of a connection, whole: to ask, and to take the answer."""

SHOWN_S = 2.0
MOST_A_SECOND = 20
NOTHING_HERE = said(404, "there is nothing here")


class Page(Door):
    """Answers whoever may look, until cancelled."""

    def __init__(self, table: PageTable, household: Household) -> None:
        super().__init__("page", table)
        self._household = household
        self._names = {name_asked(one) for one in (*LOOPBACK[:2], table.listen, *table.hosts)}
        self._names |= {"::1"}
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._made: tuple[float, PageReply] | None = None
        self._proof: tuple[str, PageReply] | None = None
        self._proving = asyncio.Lock()
        self._second, self._answers = 0, 0

    async def run(self) -> None:
        """Listen; where that cannot be, say why and try again."""
        loop = asyncio.get_running_loop()

        def comer() -> asyncio.StreamReaderProtocol:
            reader = asyncio.StreamReader(MOST_BYTES, loop)
            return asyncio.StreamReaderProtocol(reader, self._come, loop)

        words = "what left this house is shown at http://{}, as [page] asks"
        try:
            await self.stand_open(comer, words)
        finally:
            for writer in [*self._open.values()]:
                writer.transport.abort()

    async def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hear one question and answer it; the one who has taken longest goes for a new one."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 (asyncio made one)
        peer = writer.get_extra_info("peername")
        if peer is None or not self.admits(peer[0]):
            writer.transport.abort()
            return
        if len(self._open) >= MOST_OPEN:
            self.say(f"more than {MOST_OPEN} ask at once: the oldest goes")
            next(iter(self._open.values())).transport.abort()
        self._open[task] = writer
        try:
            async with asyncio.timeout(LIFE_S):
                await self._converse(reader, writer)
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            writer.transport.abort()
        finally:
            self._open.pop(task, None)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            asked: PageAsked | PageReply = said(
                400, f"expected at most {MOST_BYTES} bytes of headers"
            )
        else:
            asked = question(head, self._names)
        is_head = isinstance(asked, PageAsked) and asked.is_head
        reply = await self.reply(asked.path) if isinstance(asked, PageAsked) else asked
        writer.write(encoded(reply, is_head=is_head))
        await writer.drain()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    async def reply(self, path: str) -> PageReply:
        """Return what is at a path."""
        if not self._may_answer():
            self.say(f"asked more than {MOST_A_SECOND} times a second: not answered")
            return said(429, "too many requests")
        try:
            return self._page() if path == "/" else await self._file(path)
        except AgentError as exc:
            self.say(f"the state cannot be read: {exc}")
            return PageReply(503, HTML, message_html("Not to be told now", str(exc)).encode())

    async def _file(self, path: str) -> PageReply:
        """Return what is there to be taken along."""
        kind, _, name = path.removeprefix("/").partition("/")
        stem, _, ending = name.rpartition(".")
        if (kind, ending) == ("proof", "json"):
            return await self._proved(stem, name)
        payload = self._household.plan(stem) if (kind, ending) == ("plan", "plan") else None
        return NOTHING_HERE if payload is None else PageReply(200, JSON, payload, name)

    def _page(self) -> PageReply:
        now_s = asyncio.get_running_loop().time()
        if self._made is None or now_s - self._made[0] >= SHOWN_S:
            body = page_html(self._household.facts()).encode()
            self._made = now_s, PageReply(200, HTML, body)
        return self._made[1]

    async def _proved(self, stem: str, name: str) -> PageReply:
        """Return a certificate: proved in a thread, one at a time, and the last one kept."""
        async with self._proving:
            if self._proof is not None and self._proof[0] == name:
                return self._proof[1]
            work = self._household.proof_of(stem)
            if work is None:
                return NOTHING_HERE
            found = await asyncio.to_thread(work)
            reply = PageReply(200, JSON, found, name) if found else said(503, "it is not proved")
            self._proof = name, reply
            return reply

    def _may_answer(self) -> bool:
        second = int(asyncio.get_running_loop().time())
        if second != self._second:
            self._second, self._answers = second, 0
        self._answers += 1
        return self._answers <= MOST_A_SECOND
