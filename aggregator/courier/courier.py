"""A link to the broker that a process of its own holds: used like `edge_ldp.service.mqtt.Link`.

One Python process does one thing at a time, and a client that reads packets is busy for 60 µs with
each. So the aggregator settles and stores here, and its courier reads and acknowledges there (ADR
19). Nothing is acknowledged but what `ack` names; a courier that dies is a lost link.
"""

import asyncio
import itertools
import socket
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from aggregator.courier import wire as packets
from edge_ldp.service.broker import Broker, LinkLostError, Message, RefusedError, TooBigError
from edge_ldp.service.mqtt import Link

INBOX_LIMIT = 1000  # messages; above it the wire is not read, nor in the end the broker
END_S = 5.0
_GONE = "its courier ended"
_COMMAND = ("-P", "-m", "aggregator.courier.process")


async def open_courier(broker: Broker) -> "CourierLink":
    """Start a courier and return its link, connected; raises LinkLostError.

    Cancelled at any moment it leaves no process and no socket behind.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        wire = await packets.Wire.on(ours)
        try:
            process = await _start(theirs.fileno())
        except BaseException as exc:
            await wire.close()
            if isinstance(exc, OSError):
                reason = f"no courier starts: {exc.strerror or exc}"
                raise LinkLostError(broker.endpoint, reason) from exc
            raise
    link = CourierLink(broker, wire, process)
    try:
        await link.open()
    except BaseException:
        await link.close(abrupt=True)
        raise
    return link


async def _start(number: int) -> asyncio.subprocess.Process:
    """Return a courier at the other end of the socket of this number; raises OSError."""
    return await asyncio.create_subprocess_exec(
        sys.executable, *_COMMAND, str(number), pass_fds=(number,)
    )


class CourierLink:
    """One connection: publish, subscribe, receive, acknowledge; LinkLostError when it is gone."""

    def __init__(
        self, broker: Broker, wire: packets.Wire, process: asyncio.subprocess.Process
    ) -> None:
        self._broker = broker
        self.protocol = ""
        self.valid_until_s: int | None = None  # its certificates
        self._wire, self._process = wire, process  # the process holds the connection
        self._inbox: deque[Message] = deque()  # what came and nobody took yet
        self._arrived, self._room = asyncio.Event(), asyncio.Event()
        self._lost: LinkLostError | None = None
        self._numbers = itertools.count()
        self._opened: asyncio.Future[packets.Opened] = asyncio.get_running_loop().create_future()
        self._waiting: dict[int, asyncio.Future[None]] = {}  # answers, by number
        self._acks: list[int] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Have the courier connect; raises LinkLostError with the broker's reason."""
        self._wire.write(packets.Open(self._broker))
        for work in (self._receive_events(), self._beat()):
            self._tasks.append(asyncio.create_task(work, name="courier"))
        opened = await self._opened
        self.protocol, self.valid_until_s = opened.protocol, opened.valid_until_s

    async def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribe at QoS 1; raises RefusedError or LinkLostError.

        Somebody must receive meanwhile: the answer stands behind the backlog of the session.
        """
        number = next(self._numbers)
        await self._order(number, packets.Subscribe(number, list(topics)))

    async def publish(
        self, topic: str, payload: bytes, *, retain: bool = False, qos: int = 1
    ) -> None:
        """Publish and return once the broker acknowledged.

        Raises RefusedError, LinkLostError, or TooBigError for what the broker takes no packet for.
        """
        number = next(self._numbers)
        await self._order(number, packets.Publish(number, topic, payload, retain, qos))

    async def receive(self) -> Message:
        """Return the next message; LinkLostError once none is left and the link gone.

        Safe to cancel: a message not returned stays in the inbox.
        """
        while not self._inbox:
            if self._lost:
                raise self._lost
            self._arrived.clear()
            await self._arrived.wait()
        return self.receive_ready(1)[0]

    def receive_ready(self, limit: int) -> list[Message]:
        """Return up to `limit` messages that are already here, without waiting."""
        taken = [self._inbox.popleft() for _ in range(min(limit, len(self._inbox)))]
        if len(self._inbox) <= INBOX_LIMIT // 2:
            self._room.set()
        return taken

    def ack(self, message: Message) -> None:
        """Acknowledge a message; those of one turn of the loop go together."""
        if not self._acks:
            asyncio.get_running_loop().call_soon(self._send_acks)
        self._acks.append(message.mid)

    async def close(self, *, abrupt: bool = False) -> None:
        """End the courier; what was acknowledged goes out first (abrupt: without a word).

        Cancelled at any moment it leaves no process behind.
        """
        self._send_acks()
        if not abrupt and not self._lost:
            self._wire.write(packets.Close())
        self._lose("closed")
        for task in self._tasks:
            task.cancel()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(END_S):
                    await self._wire.close()
                    await self._process.wait()
        finally:  # of a close that is cancelled, too
            if self._process.returncode is None:
                self._process.kill()
                await self._process.wait()

    def _send_acks(self) -> None:
        if self._acks and not self._lost:
            self._wire.write(packets.Ack(self._acks))
        self._acks = []

    async def _order(self, number: int, order: packets.Subscribe | packets.Publish) -> None:
        if self._lost:
            raise self._lost
        answered = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._wire.write(order)
        try:
            await answered
        finally:
            del self._waiting[number]

    async def _beat(self) -> None:
        """Show that we are alive: a courier does not go on for an aggregator that hangs."""
        while True:
            await asyncio.sleep(packets.beat_s(self._broker))
            self._wire.write(packets.Beat())

    async def _receive_events(self) -> None:
        """Take in what the courier brings, as long as there is room for it."""
        while (frame := await self._wire.read(packets.patience_s(self._broker))) is not None:
            news = packets.NEWS.decode(frame)
            if isinstance(news, packets.Came):
                self._inbox.extend(Message(*message) for message in news.messages)
                self._arrived.set()
                if len(self._inbox) >= INBOX_LIMIT:
                    self._room.clear()
                    await self._room.wait()
            elif isinstance(news, packets.Done | packets.Refused):
                self._settle(news)
            elif isinstance(news, packets.Opened):
                self._opened.set_result(news)
            elif isinstance(news, packets.Lost):
                self._lose(news.reason)
                return
        self._lose(_GONE)

    def _settle(self, news: packets.Done | packets.Refused) -> None:
        future = self._waiting.get(news.number)
        if future is None or future.done():  # nobody waits any more
            return
        if isinstance(news, packets.Done):
            future.set_result(None)
        elif news.limit is not None:
            future.set_exception(TooBigError(news.topic, news.limit))
        else:
            future.set_exception(RefusedError(news.topic, news.reason))

    def _lose(self, reason: str) -> LinkLostError:
        if self._lost is None:
            self._lost = LinkLostError(self._broker.endpoint, reason)
            waited: list[asyncio.Future[Any]] = [self._opened, *self._waiting.values()]
            for future in waited:
                if not future.done():
                    future.set_exception(self._lost)
                    future.exception()  # it may be that nobody waits any more
            self._arrived.set()
        return self._lost


AnyLink = Link | CourierLink  # of this process, or of another
