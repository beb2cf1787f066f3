"""The aggregator process in floods, without room, with a wrong clock and beside many readers."""

import asyncio
import io
import json
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from aggregator.main import main
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
from tests.integration.test_agent_storage import fill, mounted
from tests.integration.test_aggregator_kills import make_batches

OpenWire = Callable[[], Awaitable[Wire]]

DAY_S, ORIGIN_S = 86_400, 1_700_000_000


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


async def test_on_a_full_disk_it_holds_and_goes_on_when_there_is_room_AGG_05(
    tmp_path: Path, fast_broker: RealBroker, open_wire: OpenWire
) -> None:
    with mounted(tmp_path / "small", "size=2m") as place:
        aggregator = Aggregator(place, fast_broker)
        aggregator.log = tmp_path / "aggregator.log"
        aggregator.start()
        try:
            wire = await open_wire()
            await wire.plan()
            await wire.send(make_batches(wire, 5, 5, 5))
            await until(lambda: aggregator.counted() == 125)
            filling = fill(place)
            await wire.send(make_batches(wire, 60, 40, 5))
            await until(lambda: "no space" in aggregator.log.read_text())
            counted = aggregator.counted()
            await asyncio.sleep(1.0)
            assert aggregator.counted() == counted < 125 + 12_000
            filling.unlink()
            await until(lambda: aggregator.counted() == 125 + 12_000)
            await assert_counts_are_right(aggregator, wire)
            assert aggregator.end(signal.SIGTERM) == 0
        finally:
            aggregator.kill()
    said = aggregator.log.read_text()
    assert said.count("no space") == said.count("works again") <= 3


async def test_late_reports_of_a_closed_bucket_change_no_published_figure_AGG_18(
    open_wire: OpenWire, aggregator: Aggregator
) -> None:
    """The window of 366 days passes in an hour and three quarters; so the clock is set ahead."""
    wire = await open_wire()
    plan = await wire.plan()
    device, other = wire.add(2, plan)
    code = plan.stream_mechanism.code_count
    await wire.send([device.make([code + at for at in range(20)]), device.make([code] * 5)])
    await until(lambda: aggregator.counted() == 25)
    late = device.make([code] * 5), other.make([code] * 5)
    assert aggregator.end(signal.SIGTERM) == 0
    text = aggregator.config.read_text()
    ahead = f"origin_s = {ORIGIN_S + 2 * 366 * DAY_S}"
    aggregator.config.write_text(text.replace(f"origin_s = {ORIGIN_S}", ahead))
    before = aggregator.counts(), published(aggregator)
    aggregator.start()
    await wire.send(late)
    await until(lambda: aggregator.refused().get("late") == 2)
    assert (aggregator.counts(), published(aggregator)) == before
    await assert_counts_are_right(aggregator, wire, rejected=10)
    await wire.settle()  # the receipt covers them: they are not sent for ever
    assert aggregator.refused()["late"] == 2


def published(aggregator: Aggregator) -> dict[str, object]:
    """Return what a question about the buckets of the test is answered with."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        main(["query", "-c", str(aggregator.config), "--json"])
    view: dict[str, object] = json.loads(printed.getvalue())
    return {key: view[key] for key in ("from_s", "to_s", "density", "quantiles", "theta")}


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
