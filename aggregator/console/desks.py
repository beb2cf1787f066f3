"""The processes that answer, and what they answered a moment ago.

The same question of many viewers is put once. An answer is kept for twice the time that it took, so
that no crowd of viewers, and no stream of commits, makes the processes work more than they rest.
What a page of a large fleet is made of takes seconds: who asks again is given the last of it at
once, and told when the new one is there.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections import OrderedDict
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aggregator.console.answering import EXIT_BUSY, Said, answer, begin

if TYPE_CHECKING:
    from collections.abc import Callable

    from aggregator.console.answering import Given

LEAST_KEPT_S = 0.25
MOST_KEPT_S = 10.0
SLOW_S = 0.2  # a page that takes longer is given as it last was, if that is not older than
MOST_STALE_S = 120.0
MOST_KEPT = 256
MOST_WAITING = 64
Key = tuple[str, str, "Given"]


@dataclass(frozen=True, slots=True)
class _Kept:
    """An answer, when it was there, and how long it took."""

    said: Said
    at: float
    took: float

    def is_fresh(self, now: float) -> bool:
        return now < self.at + min(MOST_KEPT_S, max(LEAST_KEPT_S, 2 * self.took))

    def is_fair(self, now: float) -> bool:
        """Say whether a page may show it while the next one is made."""
        return not self.said.code and self.took > SLOW_S and now < self.at + MOST_STALE_S


class Desks:
    """Puts questions to `processes` processes; belongs to one event loop."""

    def __init__(self, file: str, processes: int) -> None:
        self._file = file
        self._processes = processes
        self._pool = self._make()
        self._asked: dict[Key, asyncio.Task[Said]] = {}
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        self._waiting: set[Key] = set()
        self.fresh: Callable[[], None] = lambda: None  # called when what was given is outdated
        self.answered = 0
        self.worked_s = 0.0

    async def ask(self, kind: str, name: str, given: Given = ()) -> Said:
        """Return the answer, one of a moment ago if there is one."""
        key = (kind, name, given)
        kept, now = self._kept.get(key), time.monotonic()
        if kept is not None and kept.is_fresh(now):
            return kept.said
        task = self._asked.get(key)
        if task is None:
            if len(self._asked) >= MOST_WAITING:
                return Said(EXIT_BUSY, b"", "too much is asked at once: try again in a moment")
            task = asyncio.create_task(self._put(key), name=f"question {name}")
            self._asked[key] = task
        if kept is not None and kind == "make" and kept.is_fair(now):
            self._waiting.add(key)
            return kept.said
        return await asyncio.shield(task)

    async def start(self) -> None:
        """Start every process, and make what is looked at first."""
        loop = asyncio.get_running_loop()
        ready = [
            loop.run_in_executor(self._pool, answer, self._file, "make", "pulse", ())
            for _ in range(self._processes)
        ]
        await asyncio.gather(*ready)
        for name in ("overview", "devices"):  # so that neither the first viewer waits for these
            key: Key = ("make", name, ())
            self._asked[key] = asyncio.create_task(self._put(key), name=f"question {name}")

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown(cancel_futures=True)

    async def _put(self, key: Key) -> Said:
        began = time.monotonic()
        try:
            said = await self._work(key)
        finally:
            del self._asked[key]
        now = time.monotonic()
        self.answered += 1
        self.worked_s += now - began
        self._kept[key] = _Kept(said, now, now - began)
        self._kept.move_to_end(key)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        if key in self._waiting:
            self._waiting.remove(key)
            self.fresh()
        return said

    async def _work(self, key: Key) -> Said:
        loop = asyncio.get_running_loop()
        pool = self._pool
        try:
            return await loop.run_in_executor(pool, answer, self._file, *key)
        except BrokenProcessPool:
            if self._pool is pool:
                self._pool = self._make()
            return Said(EXIT_BUSY, b"", "a process ended while it answered: try again")

    def _make(self) -> ProcessPoolExecutor:
        starting = multiprocessing.get_context("forkserver")  # what they share is loaded once
        starting.set_forkserver_preload(["aggregator.console.answering"])
        return ProcessPoolExecutor(
            self._processes,
            mp_context=starting,
            initializer=begin,
            initargs=(self._file,),
        )
