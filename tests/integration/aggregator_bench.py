"""An aggregator process against a real broker, and devices that behave as the agent does."""

from __future__ import annotations

import asyncio
import io
import json
import signal
import sys
import time
from collections import Counter
from contextlib import asynccontextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from aggregator.main import main
from aggregator.plans.cache import read_recent_counts
from aggregator.store.sqlite.reader import SqliteReader
from edge_ldp.device import frame
from edge_ldp.protocol.messages import (
    Receipt,
    Status,
    StreamStatus,
    name_in_topic,
    parse_receipt,
    topic,
)
from edge_ldp.protocol.plan import Plan, parse_plan
from edge_ldp.service.mqtt import Broker, Link, open_link
from tests.forked import Forked
from tests.integration.agent_bench import KEEP_S
from tests.integration.both_stores import assert_accounted
from tests.processes import children

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
    from pathlib import Path

    from aggregator.config import StreamTable
    from aggregator.counting.records import Record
    from aggregator.plans.revision import RecentCounts
    from tests.integration.conftest import RealBroker

FLEET = "demo"
STREAM = 1
WAIT_S = 300
TELL_S = 3.0  # how long an answer to a status is waited for
CLOCK_RATE = 5000  # slots last a second of the clock: 5,000 of them pass in a real one
CONFIG = """
fleet = "demo"
[broker]
host = "127.0.0.1"
port = {port}
{broker}
[store]
path = "{store}"
[clock]
origin_s = 1700000000
started_s = {started}
rate = {rate}
[intake]
resend_window_s = 31622400
receipt_interval_s = 604800
{intake}
[[streams]]
name = "power"
id = 1
unit = "W"
ceiling = 4095
epsilon = 4
mechanism = "{mechanism}"
size = 64
survey_size = 64
slot_seconds = 1
bucket_slots = 1024
horizon = 100000
min_survey_reports = {surveys}
revise_slots = 100000000
"""


class Aggregator:
    """One `edge-ldp aggregator run` process and its files."""

    def __init__(  # noqa: PLR0913 (what tests vary)
        self,
        directory: Path,
        broker: RealBroker,
        *,
        intake: str = "",
        login: str = "",
        surveys: int = 10**9,
        mechanism: str = "hybrid",
    ) -> None:
        self.broker = broker
        self.store = directory / "aggregator.db"
        self.config = directory / "aggregator.toml"
        self.log = directory / "aggregator.log"
        self.config.write_text(
            CONFIG.format(
                port=broker.port,
                broker=login,
                store=self.store,
                started=time.time(),
                rate=CLOCK_RATE,
                intake=intake,
                surveys=surveys,
                mechanism=mechanism,
            )
        )
        self._process: Forked | None = None

    def start(self) -> None:
        """Start it; it may not be connected yet."""
        words = ["aggregator", "run", "-c", str(self.config)]
        self._process = Forked(words, log=self.log)

    def wait(self) -> int:
        """Wait until it ends by itself; return its exit code."""
        process, self._process = self._process, None
        assert process is not None
        return process.wait(WAIT_S)

    @property
    def pid(self) -> int:
        """Its process id, while it runs."""
        assert self._process is not None
        return self._process.pid

    def couriers(self) -> list[int]:
        """Return the processes that hold its links to the broker."""
        return children(self.pid)

    def kill(self) -> None:
        """End it by SIGKILL."""
        self.end(signal.SIGKILL)

    def end(self, number: int = signal.SIGTERM) -> int:
        """End it by a signal and return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(number)
        return process.wait(300)

    def command(self, name: str, *options: str) -> list[str]:
        """Return the command line of one of its commands."""
        program = [sys.executable, "-m", "edge_ldp.cli", "aggregator", name]
        return [*program, "-c", str(self.config), *options]

    def ask(self, name: str, *options: str) -> Any:
        """Return the JSON that a command prints."""
        printed = io.StringIO()
        with redirect_stdout(printed):
            code = main([name, "-c", str(self.config), "--json", *options])
        assert code == 0, printed.getvalue()
        return json.loads(printed.getvalue())

    def counts(self) -> Counter[tuple[int, int]]:
        """Return what is counted: reports by (epoch, code)."""
        totals = self.read(lambda reader: reader.totals(STREAM))
        found: Counter[tuple[int, int]] = Counter()  # of several groups and classes
        rows = (totals.epoch.tolist(), totals.code.tolist(), totals.count.tolist())
        for epoch, code, count in zip(*rows, strict=True):
            found[epoch, code] += count
        return found

    def counted(self) -> int:
        """Return how many reports are counted."""
        return self.counts().total() if self.store.exists() else 0

    def accounts(self) -> dict[str, Record]:
        """Return what is kept of each device's reports."""
        pairs: list[Any] = self.read(lambda reader: list(reader.records()))
        return {device: one for (device, stream), one in pairs if stream == STREAM}

    def seen(self, stream: StreamTable, now_s: int) -> RecentCounts:
        """Return what a revision of the stream goes by."""
        found: RecentCounts = self.read(partial(read_recent_counts, stream=stream, now_s=now_s))
        return found

    def refused(self) -> dict[str, int]:
        """Return messages that were not counted, by reason."""
        rows = self.read(lambda reader: reader.refused())
        return {row.reason: row.messages for row in rows}

    def read(self, use: Any) -> Any:
        reader = SqliteReader.open(self.store)
        try:
            return use(reader)
        finally:
            reader.close()


@dataclass
class Device:
    """A device's outbox: batches made, kept until a receipt covers them, re-sent bit for bit."""

    name: str
    plan: Plan
    made: dict[int, bytes] = field(default_factory=dict)
    kept: dict[int, bytes] = field(default_factory=dict)
    reports: Counter[tuple[int, int]] = field(default_factory=Counter)
    next_slot: int = 0

    def make(self, codes: Iterable[int]) -> tuple[str, bytes]:
        """Make the next batch of these codes, and return its topic and payload."""
        found = list(codes)
        first = max(self.next_slot, self.plan.issued_s + 1)
        self.next_slot = first + len(found)
        number = len(self.made) + 1
        slots = range(first, self.next_slot)
        payload = frame.encode(STREAM, number, self.plan.epoch, slots, found)
        self.made[number] = self.kept[number] = payload
        self.reports.update((self.plan.epoch, code) for code in found)
        return self.topic, payload

    @property
    def topic(self) -> str:
        """Where its reports go."""
        return topic(FLEET, "report", self.name)

    def status(self) -> tuple[str, bytes]:
        """Return the topic and payload of its status."""
        following = len(self.made) + 1
        told = StreamStatus(
            STREAM,
            first=1,
            next=following,
            oldest=min(self.kept, default=following),
            created=self.reports.total(),
            expired=0,
        )
        return topic(FLEET, "status", self.name), Status("online", "test", (told,)).to_json()

    def take(self, receipt: Receipt) -> None:
        """Forget what a receipt covers."""
        for number in list(self.kept):
            if receipt.covers(STREAM, number):
                del self.kept[number]


class Wire:
    """The devices' side of the broker: one link that publishes for all of them."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.plans: list[Plan] = []
        self.devices: dict[str, Device] = {}
        self.receipts: Counter[str] = Counter()

    @classmethod
    async def open(cls, broker: RealBroker, name: str = "devices", **login: Any) -> Wire:
        """Return a wire that hears plans and receipts."""
        link = await open_link(
            Broker(broker.host, broker.port, name, protocol="5", keepalive_s=KEEP_S, **login)
        )
        await link.subscribe([topic(FLEET, "plan", "+"), topic(FLEET, "receipt", "+")])
        return cls(link)

    async def plan(self, epoch: int = 1) -> Plan:
        """Return the plan of an epoch or of a later one, once it is there."""
        async with asyncio.timeout(WAIT_S):
            while not self.plans or self.plans[-1].epoch < epoch:
                self.hear(await self.link.receive())
        return self.plans[-1]

    def hear(self, message: Any) -> None:
        """Take in one plan or receipt."""
        name = name_in_topic(FLEET, "receipt", message.topic)
        if name is None:
            self.plans.append(parse_plan(message.payload))
            return
        self.receipts[name] += 1
        if name in self.devices:
            self.devices[name].take(parse_receipt(message.payload))

    def heard(self) -> int:
        """Take in what has arrived; return how many receipts there were so far."""
        while messages := self.link.receive_ready(1000):
            for message in messages:
                self.hear(message)
        return self.receipts.total()

    def kept(self) -> int:
        """Take in what has arrived; return how many batches are not covered by a receipt."""
        self.heard()
        return sum(len(device.kept) for device in self.devices.values())

    def add(self, count: int, plan: Plan) -> list[Device]:
        """Return new devices that run a plan."""
        made = [Device(f"home-{len(self.devices) + at:04d}", plan) for at in range(count)]
        self.devices.update((device.name, device) for device in made)
        return made

    async def send(self, messages: Iterable[tuple[str, bytes]], *, at_once: int = 200) -> None:
        """Publish messages in order, some at a time, until the broker has them all."""
        gate = asyncio.Semaphore(at_once)

        async def one(to: str, payload: bytes) -> None:
            try:
                await self.link.publish(to, payload)
            finally:
                gate.release()

        async with asyncio.TaskGroup() as group:
            for message in messages:
                await gate.acquire()
                group.create_task(one(*message))

    async def settle(self) -> None:
        """Do as devices do until receipts cover every batch: tell, listen, send what is kept."""
        async with asyncio.timeout(WAIT_S):
            while self.kept():
                before = self.heard()
                await self.send(device.status() for device in self.devices.values())
                for _ in range(100):
                    if self.heard() >= before + len(self.devices):
                        break
                    await asyncio.sleep(0.02)
                await self.send(
                    (device.topic, payload)
                    for device in self.devices.values()
                    for payload in device.kept.values()
                )

    def expected(self) -> Counter[tuple[int, int]]:
        """Return every report ever made, by (epoch, code)."""
        return sum((device.reports for device in self.devices.values()), Counter())


@asynccontextmanager
async def wires(broker: RealBroker) -> AsyncIterator[Callable[[], Awaitable[Wire]]]:
    """Give a function that opens a wire; all are closed in the end."""
    opened: list[Wire] = []

    async def make() -> Wire:
        opened.append(await Wire.open(broker))
        return opened[-1]

    try:
        yield make
    finally:
        for wire in opened:
            await wire.link.close(abrupt=True)


async def assert_counts_are_right(
    aggregator: Aggregator, wire: Wire, *, pending: int = 0, rejected: int = 0
) -> None:
    """Assert that every report made is counted once, but for those pending or rejected.

    Devices tell what they made; then created = counted + rejected + expired + pending, exactly, for
    each of them, and the counts hold what the records say.
    """
    created = {device.name: device.reports.total() for device in wire.devices.values()}

    def told() -> bool:
        found = aggregator.accounts()
        return all(name in found and found[name].created == n for name, n in created.items())

    async with asyncio.timeout(WAIT_S):
        while True:  # as devices do: a status may be refused for the rate
            await wire.send(device.status() for device in wire.devices.values())
            with suppress(TimeoutError):
                await until(told, TELL_S)
                break
    aggregator.read(
        lambda reader: assert_accounted(reader, created, pending=pending, rejected=rejected)
    )
    if not pending and not rejected:
        assert aggregator.counts() == wire.expected()


async def until(condition: Any, timeout_s: float = WAIT_S) -> None:
    """Wait until `condition()` holds."""
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110 (another process is waited for)
            await asyncio.sleep(0.02)
