"""What arrived and was not looked at yet: little, and looked at slowly in a flood.

Checking a signature and reading a plan costs a device milliseconds, a receipt a look into the state
file, and whoever holds the broker may send ten thousand a second.
Source: docs/faults.md, PLN-13, NET-14, NET-24, NET-31.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from agent.config import AgentConfig
from agent.link.bucket import Bucket
from edge_ldp.protocol.group_month import MOST_BYTES, GroupMonth, fresh_month
from edge_ldp.protocol.messages import topic
from edge_ldp.protocol.plan import MAX_PLAN_BYTES
from edge_ldp.protocol.signing import HEAD_BYTES
from edge_ldp.service.mqtt import Message

CHECKS_PER_S = 1.0
CHECKS_AT_ONCE = 20
WAITING = 16  # the newest ones stay: a plan is retained, so the last one is what counts
LONGEST = MAX_PLAN_BYTES + HEAD_BYTES + 1  # enough to be refused for its size
LONGEST_RECEIPT = 1 << 18  # of every stream, all the series and gaps that one holds


class PlanQueue:
    """Holds the newest plans until there is time to check them; `pace` says when there is."""

    def __init__(self, pace: Bucket | None = None) -> None:
        self._waiting: deque[tuple[str, bytes]] = deque(maxlen=WAITING)
        self._there = asyncio.Event()
        self._pace = pace or Bucket(CHECKS_PER_S, CHECKS_AT_ONCE)

    def put(self, name: str, payload: bytes) -> None:
        """Take a plan of a stream's name; the oldest that waits makes room."""
        self._waiting.append((name, payload[:LONGEST]))
        self._there.set()

    async def get(self) -> tuple[str, bytes]:
        """Return the next plan to check, once its turn has come."""
        while not self._waiting:
            self._there.clear()
            await self._there.wait()
        await asyncio.sleep(self._pace.take(asyncio.get_running_loop().time()))
        return self._waiting.popleft()


class ReceiptQueue:
    """Holds the newest receipts until there is time to look; times are the device's monotonic.

    A receipt tells all that those before it told.
    """

    def __init__(self) -> None:
        self._waiting: deque[Message] = deque(maxlen=WAITING)
        self._there = asyncio.Event()
        self._pace = Bucket(CHECKS_PER_S, CHECKS_AT_ONCE)

    def put(self, message: Message) -> None:
        """Take a receipt; the oldest that waits makes room."""
        if len(message.payload) > LONGEST_RECEIPT:
            return
        self._waiting.append(message)
        self._there.set()

    def take(self, now_s: float) -> Message | None:
        """Return the next receipt if it may be looked at now."""
        if not self._waiting or self._pace.wait_s(now_s):
            return None
        self._pace.take(now_s)
        return self._waiting.popleft()

    async def due(self, now: Callable[[], float]) -> float:
        """Return, once there is a receipt, how long it has to wait."""
        while not self._waiting:
            self._there.clear()
            await self._there.wait()
        return self._pace.wait_s(now())


class HeardMonth:
    """Holds the fleet's word on `[device] group`, read when somebody looks: no more needs it."""

    def __init__(self, config: AgentConfig, now: Callable[[], float]) -> None:
        self._group, self._now = config.device.group, now
        self._units = {one.name: one.unit for one in config.streams}
        self.topics = [topic(config.device.fleet, "group", self._group)] if self._group else []
        self._payload = b""

    def hear(self, payload: bytes) -> None:
        """Take a message; of one that is too long enough to be refused for it."""
        self._payload = payload[: MOST_BYTES + 1]

    def shown(self) -> GroupMonth | None:
        """Return what may be shown at this moment: of this home's own streams, in their units."""
        found = fresh_month(self._payload, self._group, self._now())
        if found is None:
            return None
        streams = tuple(one for one in found.streams if self._units.get(one.stream) == one.unit)
        return found._replace(streams=streams) if streams else None
