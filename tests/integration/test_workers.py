"""Several aggregators on one database and one broker: AGG-06, AGG-08, AGG-09, AGG-26."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from edge_ldp.service.mqtt import Broker, open_link
from tests.integration.aggregator_bench import assert_counts_are_right, until, wires
from tests.integration.conftest import EVERY_SECOND, RealBroker
from tests.integration.test_aggregator_kills import make_batches
from tests.integration.workers_bench import Worker, at_work, crew
from tests.postgres import PostgresServer


@pytest.fixture
def broker(make_broker: Callable[[str], RealBroker]) -> RealBroker:
    return make_broker(EVERY_SECOND)


async def all_connected(workers: list[Worker]) -> None:
    await until(lambda: all(worker.is_connected for worker in workers))


async def test_two_workers_share_the_reports_and_one_of_them_leads(
    tmp_path: Path, broker: RealBroker, server: PostgresServer
) -> None:
    workers = crew(tmp_path, broker, server.new_database(), 2)
    with at_work(workers):
        async with wires(broker) as make:
            wire = await make()
            await all_connected(workers)
            await wire.plan()
            await wire.send(make_batches(wire, 20, 50, 20))
            await until(lambda: workers[0].counted() == 20 * 50 * 20)
            assert workers[0].counts() == wire.expected()
            await wire.settle()  # any worker's commit is in the receipt
            assert workers[0].refused().keys() <= {"duplicate"}
            assert any(worker.led for worker in workers)
            assert workers[1].ask("status")["streams"][0]["pending"] == 0
            await assert_counts_are_right(workers[1], wire)
        second = Worker(tmp_path / "worker-0", broker, workers[0].url, "worker-0")
        second.start()
        assert second.wait() == 4
        assert "in use by another worker named worker-0" in second.log.read_text()


@pytest.mark.parametrize(
    "expired",
    [
        pytest.param(False, id="session-kept"),
        pytest.param(True, id="session-expired", marks=pytest.mark.slow),
    ],
)
async def test_a_worker_killed_with_unacknowledged_messages_loses_none_AGG_09(
    tmp_path: Path, broker: RealBroker, server: PostgresServer, *, expired: bool
) -> None:
    workers = crew(tmp_path, broker, server.new_database(), 2)
    frozen = workers[1]
    with at_work(workers):
        async with wires(broker) as make:
            wire = await make()
            await all_connected(workers)
            await wire.plan()
            await until(lambda: sum(worker.led for worker in workers) == 1)
            frozen.signal(signal.SIGSTOP)
            await wire.send(make_batches(wire, 10, 40, 5))
            await until(lambda: workers[0].counted() >= 900)
            await asyncio.sleep(0.3)
            assert workers[0].counted() < 10 * 40 * 5  # the others wait for the frozen one
            frozen.kill()
            if expired:
                await end_session(broker, "edge-ldp-demo-aggregator-worker-1")
            frozen.start()
            if not expired:
                await until(lambda: workers[0].counts() == wire.expected())
                return
            await until(lambda: frozen.log.read_bytes().count(b"connected to") == 2)
            await asyncio.sleep(0.3)
            assert workers[0].counted() < 10 * 40 * 5  # gone with the session
            await wire.settle()
            assert workers[0].counts() == wire.expected()


async def end_session(broker: RealBroker, client: str) -> None:
    """Let the broker forget a client, as when its session expires."""
    link = await open_link(Broker(broker.host, broker.port, client, protocol="5"))
    await link.close()
