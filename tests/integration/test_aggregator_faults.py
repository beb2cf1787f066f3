"""The aggregator process beside many readers, and where devices do not ask for an answer."""

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
from tests.integration.test_aggregator_kills import make_batches

OpenWire = Callable[[], Awaitable[Wire]]


@pytest.fixture
async def open_wire(fast_broker: RealBroker) -> AsyncIterator[OpenWire]:
    async with wires(fast_broker) as make:
        yield make


@pytest.fixture
def aggregator(tmp_path: Path, fast_broker: RealBroker) -> Iterator[Aggregator]:
    made = Aggregator(tmp_path, fast_broker)
    made.start()
    yield made
    made.kill()


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
