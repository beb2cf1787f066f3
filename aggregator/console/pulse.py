"""Tells viewers that something was committed; what changed they ask for themselves."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aggregator.console.answering import Reply
    from aggregator.console.desks import Desks

LOOK_S = 0.1
ALIVE_S = 15.0
MOST_VIEWERS = 1000


class Pulse:
    """Looks at the store as long as anybody listens."""

    def __init__(self, desks: Desks) -> None:
        self._desks = desks
        self._news = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        self._last: Reply | None = None
        self._is_over = False
        self.viewers = 0
        desks.fresh = self._tell

    @property
    def is_full(self) -> bool:
        """Whether nobody more may listen."""
        return self.viewers >= MOST_VIEWERS

    async def listen(self) -> AsyncIterator[str]:
        """Yield server-sent events: `commit` when something was committed, `trouble` when not."""
        self.viewers += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._look(), name="pulse")
        try:
            yield "retry: 1000\n\n"
            while True:
                news = self._news
                try:
                    async with asyncio.timeout(ALIVE_S):
                        await news.wait()
                except TimeoutError:
                    yield ": alive\n\n"
                    continue
                if self._is_over:
                    return
                is_wrong = self._last is not None and self._last.code
                yield f"event: {'trouble' if is_wrong else 'commit'}\ndata: {{}}\n\n"
        finally:
            self.viewers -= 1

    def end(self) -> None:
        """Let everybody who listens go."""
        self._is_over = True
        self._tell()

    async def close(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()
            with suppress(asyncio.CancelledError):
                await self._looking

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def _look(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            if self.viewers:
                version = await self._desks.version(now=True)
                if version != self._last:  # the first look too: pages may be older than it
                    self._last = version
                    await self._desks.renew()
                    self._tell()
            await asyncio.sleep(max(LOOK_S, clock() - began))
