"""kill -9 before and after each call that leaves the aggregator, under backlog: AGG-01, AGG-02.

Receive, write to the store, commit (sync), acknowledge: `faulty_disk.c` counts the calls, and a
fork server starts the next aggregator within milliseconds. The broker alone brings again what was
not acknowledged: no device sends anything twice here, so what was acknowledged too early is missing
in the end, and what was committed twice is too much.
"""

import asyncio
import signal
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.integration.aggregator_bench import Aggregator, assert_counts_are_right, until, wires
from tests.integration.aggregator_forks import Forks
from tests.integration.conftest import EVERY_SECOND, RealBroker
from tests.integration.faulty import build, environment
from tests.integration.test_aggregator_kills import make_batches
from tests.integration.workers_bench import OnPostgres
from tests.postgres import PostgresServer

pytestmark = pytest.mark.timeout(600)
FLUSH = "flush_messages = 10\nflush_ms = 5"


async def killed_at(
    points: Iterable[int], aggregator: Aggregator, broker: RealBroker, backlog: tuple[int, int, int]
) -> int:
    """Kill at each point under backlog, then count what is left; return how often it was killed."""
    aggregator.start()
    layer = environment(build(aggregator.config.parent), aggregator.store.parent, begun=1)
    forks, kills = Forks(aggregator.config, layer, log=aggregator.log), 0
    try:
        async with wires(broker) as make:
            wire = await make()
            await wire.plan()
            aggregator.end(signal.SIGTERM)
            await wire.send(make_batches(wire, *backlog))
            total = wire.expected().total()
            before = counted = 0
            for point in points:
                ended = await asyncio.to_thread(forks.run, point)  # the wire lives on meanwhile
                kills += ended == -signal.SIGKILL
                counted = aggregator.counted()
                assert before <= counted <= total
                before = counted
            assert counted < total  # there was a backlog at every point
            aggregator.start()
            await until(lambda: aggregator.counted() >= total, 150)
            await assert_counts_are_right(aggregator, wire)
    finally:
        forks.close()
        aggregator.kill()
    return kills


# each kill costs an aggregator: five here, spread as the others are
@pytest.mark.parametrize(
    ("points", "load"),
    [
        (range(61, 241, 41), (20, 40, 5)),
        pytest.param(range(61, 241, 18), (20, 40, 5), marks=pytest.mark.slow),
        pytest.param(range(41, 241), (40, 200, 5), marks=pytest.mark.slow),
    ],
    ids=len,
)
async def test_killed_before_and_after_calls_it_counts_everything_once_AGG_01_AGG_02(
    tmp_path: Path,
    make_broker: Callable[[str], RealBroker],
    points: range,
    load: tuple[int, int, int],
) -> None:
    broker = make_broker(EVERY_SECOND)
    made = Aggregator(tmp_path, broker, intake=FLUSH)
    assert await killed_at(points, made, broker, load) == len(points)


@pytest.mark.slow
async def test_on_postgresql_killed_at_every_call_it_counts_everything_once_AGG_01_AGG_02(
    tmp_path: Path, make_broker: Callable[[str], RealBroker], postgres: PostgresServer
) -> None:
    broker = make_broker(EVERY_SECOND)
    points = range(41, 241, 2)
    made = OnPostgres(tmp_path, broker, postgres.new_database(), intake=FLUSH)
    assert await killed_at(points, made, broker, (40, 100, 5)) == len(points)
