"""A link that plays back messages, and what the shell's tests share."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from aggregator.config import AggregatorConfig, parse_config
from edge_ldp.service.mqtt import Link, LinkLostError, Message

CONFIG = """
fleet = "demo"
[broker]
host = "127.0.0.1"
[store]
path = "{path}"
[intake]
{intake}
[[streams]]
name = "power"
id = 1
unit = "W"
ceiling = 1000
epsilon = 2
size = 16
survey_size = 32
min_survey_reports = 500
horizon = "hour-of-day over 28 days"
revise_slots = 4
"""


def make_config(path: Path, intake: str = "") -> AggregatorConfig:
    return parse_config(CONFIG.format(path=path, intake=intake), "test.toml")


class FakeLink(Link):
    """Gives out what is in `inbox`, remembers acknowledgements and publishes in order."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.inbox = deque(messages)
        self.events: list[object] = []
        self.acked: list[int] = []
        self.published: dict[str, bytes] = {}
        self.fails: list[Exception] = []
        self._more = asyncio.Event()

    def send(self, *messages: Message) -> None:
        self.inbox += messages
        self._more.set()

    def break_off(self) -> None:
        self._broken = True
        self._more.set()

    async def acknowledged(self, count: int) -> None:
        await until(lambda: len(self.events) == count)

    _broken = False

    async def receive(self) -> Message:
        while not self.inbox:
            if self._broken:
                raise LinkLostError("fake:1", "gone")
            self._more.clear()
            await self._more.wait()
        return self.inbox.popleft()

    def receive_ready(self, limit: int) -> list[Message]:
        return [self.inbox.popleft() for _ in range(min(limit, len(self.inbox)))]

    def ack(self, message: Message) -> None:
        self.events.append(("ack", message.mid))
        self.acked.append(message.mid)

    async def publish(
        self, topic: str, payload: bytes, *, retain: bool = False, qos: int = 1
    ) -> None:
        await asyncio.sleep(0)
        if self.fails:
            raise self.fails.pop(0)
        assert (retain, qos) == (True, 1)
        self.events.append(("publish", topic))
        self.published[topic] = payload

    async def subscribe(self, topics: Sequence[str]) -> None:
        self.events.append(("subscribe", tuple(topics)))


async def until(condition: Callable[[], bool], timeout_s: float = 300) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110 (nothing tells us)
            await asyncio.sleep(0.005)
