"""The aggregator under load, its courier and its broker killed, or beside many readers."""

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from aggregator.store.sqlite.reader import SqliteReader
from tests.integration.aggregator_bench import (
    STREAM,
    Aggregator,
    Wire,
    assert_counts_are_right,
    until,
    wires,
)
from tests.integration.conftest import RealBroker
from tests.processes import kill

OpenWire = Callable[[], Awaitable[Wire]]


@pytest.fixture
async def open_wire(fast_broker: RealBroker) -> AsyncIterator[OpenWire]:
    async with wires(fast_broker) as make:
        yield make


@pytest.fixture
def aggregator(
    tmp_path: Path, fast_broker: RealBroker, request: pytest.FixtureRequest
) -> Iterator[Aggregator]:
    made = Aggregator(tmp_path, fast_broker, intake=getattr(request, "param", ""))
    made.start()
    yield made
    made.kill()


def survey_codes(wire: Wire, count: int, seed: int) -> list[int]:
    plan = wire.plans[-1]
    first = plan.stream_mechanism.code_count
    draw = random.Random(seed)  # noqa: S311 (which codes a test sends, not noise)
    return [first + draw.randrange(plan.survey_mechanism.code_count) for _ in range(count)]


def make_batches(wire: Wire, devices: int, batches: int, reports: int) -> list[tuple[str, bytes]]:
    made = wire.add(devices, wire.plans[-1])
    return [
        device.make(survey_codes(wire, reports, seed=batch))
        for batch in range(batches)
        for device in made
    ]


# of the smaller load no flush is more than a tenth: each strike still has its own moment
@pytest.mark.parametrize(
    ("batches", "aggregator"),
    [
        pytest.param(25, "flush_messages = 100", id="small"),
        pytest.param(100, "", id="large", marks=pytest.mark.slow),
    ],
    indirect=["aggregator"],
)
async def test_its_courier_killed_again_and_again_it_counts_everything_once_AGG_01_AGG_02(
    open_wire: OpenWire, aggregator: Aggregator, batches: int
) -> None:
    """The process that holds the link dies between any two packets; what it read comes again."""
    wire, killed = await open_wire(), set[int]()
    await wire.plan()
    messages = make_batches(wire, 40, batches, 20)
    total = 40 * batches * 20
    sending = asyncio.create_task(wire.send(messages))
    for share in (0.05, 0.25, 0.5, 0.75):
        await until(lambda share=share: aggregator.counted() >= share * total)
        await until(lambda: set(aggregator.couriers()) - killed)
        for pid in aggregator.couriers():
            kill(pid)
            killed.add(pid)
    await sending
    await until(lambda: aggregator.counted() >= total)
    await asyncio.sleep(0.3)
    assert aggregator.counts() == wire.expected()
    assert len(killed) >= 4


async def test_a_broker_killed_with_its_store_gone_loses_nothing_NET_03_NET_04(
    open_wire: OpenWire, aggregator: Aggregator, fast_broker: RealBroker
) -> None:
    """NET-03, NET-04: devices keep batches until the receipt covers them, and send them again."""
    wire = await open_wire()
    await wire.plan()
    aggregator.kill()
    await wire.send(make_batches(wire, 10, 10, 5))
    fast_broker.kill()
    fast_broker.forget()
    fast_broker.start()
    aggregator.start()
    again = await open_wire()
    assert (await again.plan()).epoch == wire.plans[-1].epoch
    assert aggregator.counted() == 0
    again.devices = wire.devices
    await again.settle()
    assert aggregator.counts() == again.expected()


async def test_reports_at_qos_0_are_taken_and_do_not_end_the_link_REP_01(
    open_wire: OpenWire, aggregator: Aggregator
) -> None:
    """Acknowledging what has no number is a protocol error: any device could cut us off by it."""
    wire = await open_wire()
    await wire.plan()
    for to, payload in make_batches(wire, 5, 4, 5):
        await wire.link.publish(to, payload, qos=0)
    await until(lambda: aggregator.counted() == 100)
    await assert_counts_are_right(aggregator, wire)
    assert aggregator.log.read_text().count("connect") == 1  # once, and never again


async def test_fifty_readers_see_whole_flushes_and_change_no_count_AGG_21(
    open_wire: OpenWire, aggregator: Aggregator
) -> None:
    """Counts that a reader sees are always those of the records it sees; benchmarks/readers.py."""
    wire = await open_wire()
    await wire.plan()
    messages = make_batches(wire, 40, 20, 10)
    done = threading.Event()

    def read() -> int:
        seen = 0
        while not done.is_set():
            reader = SqliteReader.open(aggregator.store)
            try:
                with reader.reading() as db:
                    db.execute("BEGIN")
                    records = sum(record.counted for _, record in reader.records())
                    assert records == int(reader.totals(STREAM).count.sum())
                    db.execute("COMMIT")
                seen += 1
            finally:
                reader.close()
        return seen

    with ThreadPoolExecutor(50) as pool:
        readers = [pool.submit(read) for _ in range(50)]
        try:
            await wire.send(messages)
            await until(lambda: aggregator.counted() == 8000, 60)
        finally:
            done.set()
        assert min(one.result() for one in readers) > 0
    await assert_counts_are_right(aggregator, wire)
