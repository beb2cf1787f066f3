"""The processes that answer, and what they answered since the last commit.

An answer holds until something is committed (and not for ever: silence and age are told by the
clock), so the same question of many viewers is put once for each commit. Whoever asks more often
than every twice the time that it took is given the last answer, so that no crowd, and no stream of
commits, makes the processes work more than they rest; where that is outdated, viewers are told once
the new one is there. So they are of a page that takes long: the last one is shown at once.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from socket import socket

from aggregator.commands.common import EXIT_CONFIG
from aggregator.console.answering import EXIT_BUSY, HELLO, PACKET, Given, Reply

LOOK_S = 0.2  # how old what is known of the store's version may be
LEAST_KEPT_S = 0.25
MOST_KEPT_S = 10.0
MOST_RENEWED_S = 0.6  # a commit is told no later than that, whatever is not yet made anew
SLOW_S = 0.2  # a page that takes longer is given as it last was, if that is not older than
MOST_STALE_S = 120.0
MOST_KEPT = 256
MOST_WAITING = 64
MOST_SIGNS = 16
ENDS = Reply(EXIT_BUSY, b"", "the console ends: try again in a moment")
DIED = Reply(EXIT_BUSY, b"", "a process ended while it answered: try again")
MANY = Reply(EXIT_BUSY, b"", "too much is asked at once: try again in a moment")
LONG = Reply(EXIT_CONFIG, b"", "what is asked for is too long")
Key = tuple[str, str, "Given"]


@dataclass(frozen=True, slots=True)
class _Cached:
    """An answer, when it was there, and how long it took."""

    reply: Reply
    version: Reply  # of the store, before it was asked
    at: float
    took: float

    def is_of(self, version: Reply, now: float) -> bool:
        """Say whether nothing can have changed since."""
        return self.version == version and now < self.at + MOST_KEPT_S

    def rest_s(self, now: float) -> float:
        """Return how long until it may be asked again."""
        return self.at + min(MOST_KEPT_S, max(LEAST_KEPT_S, 2 * self.took)) - now

    def is_fair(self, now: float) -> bool:
        """Say whether a page may show it while the next one is made."""
        return not self.reply.code and self.took > SLOW_S and now < self.at + MOST_STALE_S


class Channel:
    """One of the processes that answer, as seen from here; one question at a time."""

    def __init__(self, end: socket) -> None:
        end.setblocking(False)
        self._end = end
        self._lock = asyncio.Lock()
        self._number = 0

    async def ready(self) -> None:
        """Wait until somebody is at work there."""
        async with self._lock:
            await self._packet()

    async def ask(self, kind: str, name: str = "", given: Given = ()) -> Reply:
        """Return the answer to a question."""
        async with self._lock:
            self._number += 1
            question = json.dumps([self._number, kind, name, given]).encode()
            if len(question) > PACKET:
                return LONG
            with suppress(ConnectionError):
                await asyncio.get_running_loop().sock_sendall(self._end, question)
            while (head := await self._packet()) != HELLO:
                number, code, err, parts = json.loads(head)
                body = [head]
                while len(body) <= parts and body[-1] != HELLO:
                    body.append(await self._packet())
                if body[-1] == HELLO:
                    break
                if number == self._number:
                    return Reply(code, b"".join(body[1:]), err)
            return DIED

    async def _packet(self) -> bytes:
        packet = b""
        with suppress(ConnectionError):
            packet = await asyncio.get_running_loop().sock_recv(self._end, PACKET)
        if not packet:  # whoever started the console has to start it anew
            sys.stderr.write("edge-ldp console: the processes that answer are gone\n")
            os.kill(os.getpid(), signal.SIGTERM)
        return packet or HELLO


class Desks:
    """Puts questions to the processes that answer; belongs to one event loop.

    The first channel is for what is known at once: the store's version, whose token it is.
    """

    def __init__(self, channels: Sequence[socket], signing: socket | None = None) -> None:
        self._quick, *self._lines = (Channel(channel) for channel in channels)
        self._signing = None if signing is None else Channel(signing)
        self._opening: asyncio.Task[None] | None = None
        self._signs = 0
        self._free: asyncio.Queue[Channel] = asyncio.Queue()
        self._asked: dict[Key, asyncio.Task[Reply]] = {}
        self._cached: OrderedDict[Key, _Cached] = OrderedDict()
        self._waiting: set[Key] = set()
        self._watched: set[Key] = set()
        self._resting: dict[Key, asyncio.Event] = {}
        self._looking: asyncio.Task[Reply] | None = None
        self._looked_at = 0.0
        self.fresh: Callable[[], None] = lambda: None  # called when what was given is outdated
        self.answered = 0
        self.worked_s = 0.0

    async def ask(self, kind: str, name: str, given: Given = ()) -> Reply:
        """Return the answer, one of a moment ago if there is one."""
        key = (kind, name, given)
        version = await self.version()
        cached, now = self._cached.get(key), time.monotonic()
        self._watched.add(key)
        if cached is not None and cached.is_of(version, now):
            return cached.reply
        rest_s = 0.0 if cached is None else cached.rest_s(now)
        task = self._begun(key, max(0.0, rest_s))
        if task is None:
            return MANY
        if cached is not None and (rest_s > 0 or (kind == "make" and cached.is_fair(now))):
            self._waiting.add(key)
            return cached.reply
        await asyncio.wait({task, self._over}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else ENDS

    async def version(self, *, now: bool = False) -> Reply:
        """Return the store's version, as of a moment ago."""
        if now or self._looking is None or time.monotonic() > self._looked_at + LOOK_S:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._quick.ask("version"), name="version")
            self._looked_at = time.monotonic()
        return await asyncio.shield(self._looking)

    async def owner(self, token: str) -> Reply:
        """Return whose token it is, as of now."""
        return await self._quick.ask("token", token)

    async def sign_on(self, kind: str, code: str = "", given: Given = ()) -> Reply:
        """Return what the process that asks the provider tells."""
        assert self._signing is not None  # noqa: S101 (else nobody signs on)
        if self._signs >= MOST_SIGNS:
            return MANY
        self._signs += 1
        try:
            return await self._signing.ask(kind, code, given)
        finally:
            self._signs -= 1

    async def renew(self) -> None:
        """Make anew what was asked for since the last time, but for figures that take long.

        Pages first, and they are waited for: their figures are made while viewers fetch these.
        """
        keys, now = sorted(self._watched & self._cached.keys(), key=_is_figure), time.monotonic()
        self._watched.clear()
        pages = []
        for key in keys[:MOST_WAITING]:
            cached = self._cached[key]
            is_quick = cached.took < MOST_RENEWED_S
            if is_quick and key in self._resting:
                self._resting[key].set()
            if is_quick or not _is_figure(key):
                task = self._begun(key, 0.0 if is_quick else max(0.0, cached.rest_s(now)))
                pages += [task] if task is not None and not _is_figure(key) else []
        if pages:
            await asyncio.wait(pages, timeout=MOST_RENEWED_S)

    def _begun(self, key: Key, rest_s: float = 0.0) -> asyncio.Task[Reply] | None:
        """Return the task of a question, begun after a rest if there is none; None: too many."""
        if key not in self._asked:
            if len(self._asked) >= MOST_WAITING:
                return None
            task = asyncio.create_task(self._put(key, rest_s), name=f"question {key[1]}")
            self._asked[key] = task
        return self._asked[key]

    async def start(self) -> None:
        """Wait for every process, and make what is looked at first."""
        self._over = asyncio.get_running_loop().create_future()
        if self._signing is not None:  # nobody waits for a provider but who signs on
            self._opening = asyncio.create_task(self._signing.ready(), name="sign-on")
        await asyncio.gather(*(line.ready() for line in (self._quick, *self._lines)))
        for line in self._lines:
            self._free.put_nowait(line)
        for name in ("overview", "devices"):  # so that neither the first viewer waits for these
            self._begun(("make", name, ()))

    def end(self) -> None:
        """Let those go who wait for an answer."""
        if not self._over.done():
            self._over.set_result(None)

    def close(self) -> None:
        """Ask no more: the processes end with this one."""
        if self._opening is not None:
            self._opening.cancel()
        for task in self._asked.values():
            task.cancel()

    async def _put(self, key: Key, rest_s: float) -> Reply:
        try:
            await self._rest(key, rest_s)
            version, began = await self.version(), time.monotonic()
            line = await self._free.get()
            try:
                reply = await line.ask(*key)
            finally:
                self._free.put_nowait(line)
        finally:
            del self._asked[key]
        now = time.monotonic()
        self.answered += 1
        self.worked_s += now - began
        self._cached[key] = _Cached(reply, version, now, now - began)
        self._cached.move_to_end(key)
        while len(self._cached) > MOST_KEPT:
            self._cached.popitem(last=False)
        if key in self._waiting:
            self._waiting.remove(key)
            self.fresh()
        return reply

    async def _rest(self, key: Key, rest_s: float) -> None:
        """Wait until it may be asked again, or is to be made anew for all."""
        if rest_s:
            self._resting[key] = asyncio.Event()
            with suppress(TimeoutError):
                async with asyncio.timeout(rest_s):
                    await self._resting[key].wait()
            del self._resting[key]


def _is_figure(key: Key) -> bool:
    return key[0] == "ask"
