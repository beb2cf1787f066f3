"""Work beside a test in one loop, and a clock that stands still while such work does."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

TICK_S = 0.01


class PacedClock:
    """Tells how long this process has been at work: a peer that is held up with us is not late."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def time(self) -> float:
        return self._now_s

    async def run(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._now_s += TICK_S


@asynccontextmanager
async def beside(*work: Coroutine[Any, Any, Any]) -> AsyncIterator[list[asyncio.Task[Any]]]:
    """Let work run meanwhile; it is cancelled, and ends, with us."""
    running = [asyncio.create_task(one) for one in work]
    try:
        yield running
    finally:
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)


@asynccontextmanager
async def paced(module: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Let a module that asks the loop for nothing but its time go by a paced clock."""
    clock = PacedClock()
    own = SimpleNamespace(**vars(asyncio) | {"get_running_loop": lambda: clock})
    monkeypatch.setattr(f"{module}.asyncio", own)
    async with beside(clock.run()):
        yield
