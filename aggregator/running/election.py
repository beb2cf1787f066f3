"""Who does what only one may do: issues plans, hears statuses, tends the store."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from aggregator.errors import AggregatorError, StoreHeldError
from aggregator.store.worker import Lock

PING_S = 1.0
_log = logging.getLogger(__name__)


class LeadLostError(AggregatorError):
    """We do not lead any more: somebody else does, or soon will."""


class Election:
    """Asks the lock again and again, on a thread of its own; without a lock we always lead."""

    def __init__(self, lock: Lock | None) -> None:
        self._lock = lock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lead")

    @property
    def is_shared(self) -> bool:
        """Say whether somebody else could lead."""
        return self._lock is not None

    async def won(self) -> None:
        """Return once we lead."""
        while not await self._is_ours():  # noqa: ASYNC110 (nobody tells us)
            await asyncio.sleep(PING_S)

    async def sure(self) -> None:
        """Return if we lead at this moment; else raise LeadLostError."""
        if not await self._is_ours():
            raise LeadLostError("the lead is lost")

    async def held(self) -> None:
        """Keep the lead until it is lost (LeadLostError)."""
        while True:
            await asyncio.sleep(PING_S)
            await self.sure()

    async def resign(self) -> None:
        """Lead no more, so that somebody else can at once."""
        if self._lock is not None:
            await self._call(self._lock.close)

    def close(self) -> None:
        """Resign, and wait for it."""
        if self._lock is not None:
            self._thread.submit(self._lock.close)
        self._thread.shutdown(wait=True)

    async def _is_ours(self) -> bool:
        if self._lock is None:
            return True
        try:
            return bool(await self._call(self._lock.is_ours))
        except StoreHeldError as exc:
            _log.debug("%s", exc)  # the intake says so too, once
            return False

    async def _call(self, use: Callable[[], object]) -> object:
        return await asyncio.get_running_loop().run_in_executor(self._thread, use)
