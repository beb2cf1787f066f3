"""The store on a thread of its own, one call after the other, or one page ahead of its reader."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

from aggregator.errors import StoreHeldError
from aggregator.store.contract import Store

RETRY_S = 0.25
_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_END = object()


class StoreThread:
    """Calls the store without blocking the event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._waiting = 0

    @property
    def is_held(self) -> bool:
        """Say whether some call waits for the store: it is locked, full or read-only."""
        return self._waiting > 0

    async def call(self, use: Callable[[Store], _T]) -> _T:
        """Return `use(store)`; repeats it while the store is held. Other StoreErrors are raised.

        When the caller is cancelled the call still ends, before the next one starts. What other
        calls meet is not told again (reading works while another process locks out writing).
        """
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, use, self._store)
        except StoreHeldError as exc:
            if not self._waiting:
                _log.warning("%s", exc)
        self._waiting += 1
        try:
            while True:
                await asyncio.sleep(RETRY_S)
                try:
                    result = await loop.run_in_executor(self._thread, use, self._store)
                except StoreHeldError:
                    continue
                if self._waiting == 1:
                    _log.warning("the store works again")
                return result
        finally:
            self._waiting -= 1

    def leave(self, use: Callable[[Store], object]) -> None:
        """Have `use(store)` done before the store closes; that it failed, nobody hears."""
        self._thread.submit(use, self._store)

    def close(self) -> None:
        """Wait for the call that runs, and close the store."""
        self._thread.shutdown(wait=True)
        self._store.close()


def one_ahead(items: Iterator[_T]) -> Iterator[_T]:
    """Yield items, each made on a thread beside what is done with the one before it."""
    with ThreadPoolExecutor(1, thread_name_prefix="ahead") as thread:
        coming = thread.submit(next, items, _END)
        while (item := coming.result()) is not _END:
            coming = thread.submit(next, items, _END)
            yield cast("_T", item)
