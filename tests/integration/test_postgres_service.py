"""The aggregator on PostgreSQL, killed and with its server crashed: AGG-01, AGG-06."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from aggregator.commands.common import EXIT_STORE
from tests.integration.aggregator_bench import until, wires
from tests.integration.conftest import EVERY_SECOND, RealBroker
from tests.integration.workers_bench import OnPostgres
from tests.postgres import PostgresServer


async def test_AGG_25_a_server_that_is_away_at_the_start_is_waited_for(
    tmp_path: Path, make_broker: Callable[[str], RealBroker], server: PostgresServer
) -> None:
    """It said that it waits, and exited."""
    broker = make_broker(EVERY_SECOND)
    aggregator = OnPostgres(tmp_path, broker, server.new_database())
    await asyncio.to_thread(server.crash)
    aggregator.start()
    try:
        await until(lambda: b"tried again every 2 s" in aggregator.log.read_bytes())
        assert aggregator.log.read_bytes().count(b"cannot be used now") == 1
        await asyncio.to_thread(server.start)
        async with wires(broker) as make:
            wire = await make()
            await wire.plan()  # it came up by itself
    finally:
        assert aggregator.end() == 0


async def test_AGG_25_what_waiting_does_not_mend_ends_the_start(
    tmp_path: Path, make_broker: Callable[[str], RealBroker], server: PostgresServer
) -> None:
    aggregator = OnPostgres(tmp_path, make_broker(EVERY_SECOND), server.url("nowhere"))
    aggregator.start()
    await until(lambda: b"does not exist" in aggregator.log.read_bytes())
    assert aggregator.wait() == EXIT_STORE
