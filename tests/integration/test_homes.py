"""The simulated fleet over a real broker, with a scripted aggregator that may be deaf at first."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import numpy as np
import pytest

from edge_ldp import Hybrid, SquareWave
from edge_ldp.device import frame
from edge_ldp.protocol.messages import Receipt, StreamReceipt, name_in_topic, parse_status, topic
from edge_ldp.protocol.plan import Plan, Policy
from edge_ldp.ratio import floor_ratio
from edge_ldp.service.clock import Clock
from edge_ldp.service.mqtt import Broker, Link, LinkLostError, open_link
from firmware_stubs.simulator.fleet import SimulatedFleet
from firmware_stubs.simulator.session import LinkChanged, NoPlan, NoReceipts, Simulation
from tests.integration.conftest import RealBroker, free_port

FIRST_SLOT = 1_922_300
DAY_S = 86_400
RATE = DAY_S / 0.25  # a simulated day in a quarter of a second
HOMES, DAYS = 5, 4
PLAN = Plan(
    fleet="demo",
    stream="power",
    stream_id=1,
    unit="W",
    epoch=1,
    issued_s=FIRST_SLOT * 900,
    expires_s=FIRST_SLOT * 900 + 900 * DAY_S,
    slot_seconds=900,
    low=0,
    ceiling=43_470,
    share=(1, 4),
    stream_mechanism=Hybrid(epsilon=1, low=0, high=8000, size=16),
    survey_mechanism=SquareWave(epsilon=1, low=0, high=43_470),
)


class ScriptedAggregator:
    """Keeps every frame as it came; answers each status with a receipt, but the first `deaf`."""

    def __init__(self, broker: RealBroker, deaf: int = 0) -> None:
        self._broker = broker
        self._deaf = deaf
        self.payloads: dict[tuple[str, int], list[bytes]] = {}
        self.states: dict[str, list[str]] = {}
        self.series: set[int] = set()

    async def run(self) -> None:
        """Stay connected; the plan is published anew on each connection."""
        while True:
            with suppress(LinkLostError):
                link = await open_link(Broker(self._broker.host, self._broker.port, "scripted"))
                try:
                    await self._serve(link)
                finally:
                    await link.close()
            await asyncio.sleep(0.05)

    async def _serve(self, link: Link) -> None:
        await link.publish(topic("demo", "plan", "power"), PLAN.to_json(), retain=True)
        await link.subscribe([topic("demo", kind, "+") for kind in ("report", "status")])
        while True:
            await self._take(link)

    async def _take(self, link: Link) -> None:
        message = await link.receive()
        home = name_in_topic("demo", "report", message.topic)
        if home:
            head = frame.decode_header(message.payload)
            self.series.add(head.series)
            self.payloads.setdefault((home, head.batch), []).append(message.payload)
            return
        home = name_in_topic("demo", "status", message.topic)
        assert home
        self.states.setdefault(home, []).append(parse_status(message.payload).state)
        self._deaf -= 1
        if self._deaf < 0:
            held = [batch for device, batch in self.payloads if device == home]
            highest = max(held, default=0)
            gaps = tuple((n, n) for n in range(1, highest) if n not in held)
            told = tuple(StreamReceipt(1, highest, gaps, series) for series in self.series)
            receipt = Receipt(told, "0" * 16, 0, home)
            await link.publish(topic("demo", "receipt", home), receipt.to_json(), retain=True)


@asynccontextmanager
async def working(aggregator: ScriptedAggregator) -> AsyncIterator[None]:
    task = asyncio.create_task(aggregator.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def play(
    broker: RealBroker, receipt_interval_s: float, tell: Callable[[object], None] = lambda _: None
) -> SimulatedFleet:
    fleet, session = made(broker.port, receipt_interval_s, tell)
    async with asyncio.timeout(300):
        await session.run(FIRST_SLOT * 900, receipt_interval_s)
    return fleet


def made(
    port: int, receipt_interval_s: float, tell: Callable[[object], None]
) -> tuple[SimulatedFleet, Simulation]:
    policy = Policy("demo", "power", "W", 900, 0, 43_470, floor_ratio(1))
    homes = [f"home-{number}" for number in range(HOMES)]
    fleet = SimulatedFleet(policy, homes, FIRST_SLOT, receipt_interval_s, os.urandom)
    values = np.arange(HOMES * DAYS * 96, dtype=np.int64).reshape(HOMES, -1)
    clock = Clock(FIRST_SLOT * 900, time.time(), RATE)
    link = Broker("127.0.0.1", port, "fleet")
    return fleet, Simulation(fleet, values, link, clock, tell)


async def test_without_a_broker_it_says_what_may_mend_it() -> None:
    told: list[object] = []
    _, session = made(port := free_port(), DAY_S, told.append)
    with suppress(TimeoutError):
        async with asyncio.timeout(0.5):
            await session.run(FIRST_SLOT * 900, DAY_S)
    remedy = f"nothing listens there: check [broker] host and port ({port}), and the broker"
    assert LinkChanged("Connection refused", remedy) in told


async def test_that_no_plan_comes_is_said_and_said_again(
    broker: RealBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No aggregator runs: nothing was said, for ever."""
    monkeypatch.setattr("firmware_stubs.simulator.session.WAITING_S", 0.05)
    told, said_again = list[object](), asyncio.Event()

    def hear(event: object) -> None:
        told.append(event)
        if told.count(NoPlan()) > 1:
            said_again.set()

    playing = asyncio.create_task(play(broker, 20 * DAY_S, hear))
    async with asyncio.timeout(30):
        await said_again.wait()
    playing.cancel()
    with suppress(asyncio.CancelledError):
        await playing
    assert LinkChanged("up") in told


async def test_that_receipts_are_waited_for_is_said_until_they_come(
    broker: RealBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An aggregator that gives no receipts at the end: nothing was said while they failed."""
    monkeypatch.setattr("firmware_stubs.simulator.session.WAITING_S", 0.05)
    told = list[object]()
    async with working(ScriptedAggregator(broker, deaf=4 * HOMES)):
        fleet = await play(broker, DAY_S, told.append)
    assert told.count(NoReceipts()) > 1
    assert fleet.outbox.pending == 0


async def test_every_day_of_every_home_is_sent_once_and_confirmed(broker: RealBroker) -> None:
    aggregator = ScriptedAggregator(broker)
    async with working(aggregator):
        fleet = await play(broker, 20 * DAY_S)
    assert fleet.outbox.pending == 0
    assert fleet.outbox.created == HOMES * DAYS * 96
    assert fleet.outbox.resent == 0
    batches = range(1, 1 + DAYS)
    assert aggregator.series == {fleet.series}
    assert set(aggregator.payloads) == {(f"home-{n}", b) for n in range(HOMES) for b in batches}
    assert all(len(copies) == 1 for copies in aggregator.payloads.values())
    assert {states[0] for states in aggregator.states.values()} == {"online"}
