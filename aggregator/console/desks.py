"""The processes that answer, and what they answered since the last commit.

An answer holds until something is committed (and not for ever: silence and age are told by the
clock), so the same question of many viewers is put once for each commit. Whoever asks more often
than every twice the time that it took is given the last answer, so that no crowd, and no stream of
commits, makes the processes work more than they rest; where that is outdated, viewers are told once
the new one is there. So they are of a page that takes long: the last one is shown at once.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections import OrderedDict
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aggregator.console.answering import EXIT_BUSY, Desk, Said, answer_in_process, begin

if TYPE_CHECKING:
    from collections.abc import Callable

    from aggregator.console.answering import Given

LOOK_S = 0.2  # how old what is known of the store's version may be
LEAST_KEPT_S = 0.25
MOST_KEPT_S = 10.0
MOST_RENEWED_S = 0.6  # a commit is told no later than that, whatever is not yet made anew
SLOW_S = 0.2  # a page that takes longer is given as it last was, if that is not older than
MOST_STALE_S = 120.0
MOST_KEPT = 256
MOST_WAITING = 64
ENDS = Said(EXIT_BUSY, b"", "the console ends: try again in a moment")
Key = tuple[str, str, "Given"]


@dataclass(frozen=True, slots=True)
class _Kept:
    """An answer, when it was there, and how long it took."""

    said: Said
    version: Said  # of the store, before it was asked
    at: float
    took: float

    def is_of(self, version: Said, now: float) -> bool:
        """Say whether nothing can have changed since."""
        return self.version == version and now < self.at + MOST_KEPT_S

    def rest_s(self, now: float) -> float:
        """Return how long until it may be asked again."""
        return self.at + min(MOST_KEPT_S, max(LEAST_KEPT_S, 2 * self.took)) - now

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
        self._watched: set[Key] = set()
        self._resting: dict[Key, asyncio.Event] = {}
        self._desk = Desk(file)
        self._looker = ThreadPoolExecutor(1, "version")
        self._looking: asyncio.Future[Said] | None = None
        self._looked_at = 0.0
        self.fresh: Callable[[], None] = lambda: None  # called when what was given is outdated
        self.answered = 0
        self.worked_s = 0.0

    async def ask(self, kind: str, name: str, given: Given = ()) -> Said:
        """Return the answer, one of a moment ago if there is one."""
        key = (kind, name, given)
        version = await self.version()
        kept, now = self._kept.get(key), time.monotonic()
        self._watched.add(key)
        if kept is not None and kept.is_of(version, now):
            return kept.said
        rest_s = 0.0 if kept is None else kept.rest_s(now)
        task = self._begun(key, max(0.0, rest_s))
        if task is None:
            return Said(EXIT_BUSY, b"", "too much is asked at once: try again in a moment")
        if kept is not None and (rest_s > 0 or (kind == "make" and kept.is_fair(now))):
            self._waiting.add(key)
            return kept.said
        await asyncio.wait({task, self._over}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else ENDS

    async def version(self, *, now: bool = False) -> Said:
        """Return the store's version, as of a moment ago."""
        if now or self._looking is None or time.monotonic() > self._looked_at + LOOK_S:
            if self._looking is None or self._looking.done():
                loop = asyncio.get_running_loop()
                self._looking = loop.run_in_executor(self._looker, self._desk.version)
            self._looked_at = time.monotonic()
        return await asyncio.shield(self._looking)

    async def renew(self) -> None:
        """Make anew what was asked for since the last time, but for figures that take long.

        Pages first, and they are waited for: their figures are made while viewers fetch these.
        """
        keys, now = sorted(self._watched & self._kept.keys(), key=_is_figure), time.monotonic()
        self._watched.clear()
        pages = []
        for key in keys[:MOST_WAITING]:
            kept = self._kept[key]
            is_quick = kept.took < MOST_RENEWED_S
            if is_quick and key in self._resting:
                self._resting[key].set()
            if is_quick or not _is_figure(key):
                task = self._begun(key, 0.0 if is_quick else max(0.0, kept.rest_s(now)))
                pages += [task] if task is not None and not _is_figure(key) else []
        if pages:
            await asyncio.wait(pages, timeout=MOST_RENEWED_S)

    def _begun(self, key: Key, rest_s: float = 0.0) -> asyncio.Task[Said] | None:
        """Return the task of a question, begun after a rest if there is none; None: too many."""
        if key not in self._asked:
            if len(self._asked) >= MOST_WAITING:
                return None
            task = asyncio.create_task(self._put(key, rest_s), name=f"question {key[1]}")
            self._asked[key] = task
        return self._asked[key]

    async def start(self) -> None:
        """Start every process, and make what is looked at first."""
        loop = asyncio.get_running_loop()
        self._over = loop.create_future()
        ready = [
            loop.run_in_executor(self._pool, answer_in_process, self._file, "make", "message", ())
            for _ in range(self._processes)
        ]
        await asyncio.gather(*ready)
        for name in ("overview", "devices"):  # so that neither the first viewer waits for these
            self._begun(("make", name, ()))

    def end(self) -> None:
        """Let those go who wait for an answer."""
        if not self._over.done():
            self._over.set_result(None)

    def close(self) -> None:
        """End the processes, and let go of the store."""
        for task in self._asked.values():
            task.cancel()
        self._looker.submit(self._desk.close)
        self._looker.shutdown()
        self._pool.shutdown(cancel_futures=True)

    async def _put(self, key: Key, rest_s: float) -> Said:
        try:
            await self._rest(key, rest_s)
            version, began = await self.version(), time.monotonic()
            said = await self._work(key)
        finally:
            del self._asked[key]
        now = time.monotonic()
        self.answered += 1
        self.worked_s += now - began
        self._kept[key] = _Kept(said, version, now, now - began)
        self._kept.move_to_end(key)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        if key in self._waiting:
            self._waiting.remove(key)
            self.fresh()
        return said

    async def _rest(self, key: Key, rest_s: float) -> None:
        """Wait until it may be asked again, or is to be made anew for all."""
        if rest_s:
            self._resting[key] = asyncio.Event()
            with suppress(TimeoutError):
                async with asyncio.timeout(rest_s):
                    await self._resting[key].wait()
            del self._resting[key]

    async def _work(self, key: Key) -> Said:
        loop = asyncio.get_running_loop()
        pool = self._pool
        try:
            return await loop.run_in_executor(pool, answer_in_process, self._file, *key)
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


def _is_figure(key: Key) -> bool:
    return key[0] == "ask"
