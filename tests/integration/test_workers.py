"""Several aggregators on one database and one broker: AGG-06, AGG-08, AGG-09, AGG-26."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from aggregator.plans import planner
from aggregator.store.contract import PlanRow
from aggregator.store.postgres.store import PostgresStore
from edge_ldp.protocol.plan import Plan
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


def leader_of(workers: list[Worker]) -> Worker:
    return max(workers, key=lambda worker: worker.led)


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


async def test_a_killed_leader_is_followed_and_counting_goes_on_AGG_09(
    tmp_path: Path, broker: RealBroker, server: PostgresServer
) -> None:
    workers = crew(tmp_path, broker, server.new_database(), 2)
    with at_work(workers):
        async with wires(broker) as make:
            wire = await make()
            await all_connected(workers)
            first = await wire.plan()
            leader = leader_of(workers)
            (other,) = [worker for worker in workers if worker is not leader]
            await wire.send(make_batches(wire, 20, 20, 20))
            leader.kill()
            before = other.counted()
            sending = asyncio.create_task(wire.send(make_batches(wire, 20, 20, 20)))
            await until(lambda: other.counted() > before)
            await until(lambda: other.led == 1)
            await sending
            issue(other.url, planner.renewed(first, epoch=2, now_s=first.issued_s))
            assert (await wire.plan(epoch=2)).epoch == 2  # and publishes what is stored
            leader.start()
            await until(lambda: other.counts() == wire.expected())  # its session was kept
            assert leader.led == 1


def issue(url: str, plan: Plan) -> None:
    """Store a plan from another process, as `edge-ldp aggregator plan publish` does."""
    store = PostgresStore.open(url, alone=False)
    store.add_plan(PlanRow(1, plan.epoch, plan.issued_s, plan.to_json()))
    store.close()


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
