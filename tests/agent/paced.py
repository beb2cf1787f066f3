"""A clock for what waits in vain beside its peer, in one loop: it stands still while that does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

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
async def paced(module: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Let a module that asks the loop for nothing but its time go by a paced clock."""
    clock = PacedClock()
    own = SimpleNamespace(**vars(asyncio) | {"get_running_loop": lambda: clock})
    monkeypatch.setattr(f"{module}.asyncio", own)
    running = asyncio.create_task(clock.run())
    yield
    running.cancel()
