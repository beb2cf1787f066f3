"""The aggregator on PostgreSQL, killed and with its server crashed: AGG-01, AGG-06."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from aggregator.commands.common import EXIT_STORE
from aggregator.errors import StoreError
from aggregator.store.postgres.reader import PostgresReader
from tests.integration.aggregator_bench import Aggregator, Wire, until, wires
from tests.integration.conftest import EVERY_SECOND, RealBroker
from tests.integration.test_aggregator_kills import make_batches
from tests.postgres import PostgresServer


class OnPostgres(Aggregator):
    """The same process with its store on a server."""

    def __init__(self, directory: Path, broker: RealBroker, url: str, *, intake: str = "") -> None:
        super().__init__(directory, broker, intake=intake)
        self.url = url
        text = self.config.read_text()
        self.config.write_text(text.replace(f'path = "{self.store}"', f'url = "{url}"'))

    def counted(self) -> int:
        """Return how many reports are counted; none while the server is away."""
        try:
            return self.counts().total()
        except StoreError:
            return 0

    def read(self, use: Any) -> Any:
        reader = PostgresReader.open(self.url)
        try:
            return use(reader)
        finally:
            reader.close()


async def send_until_counted(
    wire: Wire, messages: Sequence[tuple[str, bytes]], aggregator: OnPostgres
) -> asyncio.Task[None]:
    """Begin to send messages, and return as soon as some of them are counted."""
    before = aggregator.counted()
    sending = asyncio.create_task(wire.send(messages))
    await until(lambda: aggregator.counted() > before)
    return sending


@pytest.mark.slow
async def test_killed_and_with_its_server_crashed_it_counts_everything_once_AGG_01_AGG_06(
    tmp_path: Path, make_broker: Callable[[str], RealBroker], server: PostgresServer
) -> None:
    broker = make_broker(EVERY_SECOND)
    aggregator = OnPostgres(tmp_path, broker, server.new_database())
    aggregator.start()
    try:
        async with wires(broker) as make:
            wire = await make()
            await wire.plan()
            messages = make_batches(wire, 20, 50, 20)
            total = 20 * 50 * 20
            for first in (0, 500):
                sending = await send_until_counted(wire, messages[first : first + 250], aggregator)
                aggregator.kill()
                await sending
                aggregator.start()
                more = messages[first + 250 : first + 500]
                sending = await send_until_counted(wire, more, aggregator)
                await asyncio.to_thread(server.crash)
                await asyncio.to_thread(server.start)
                await sending
            await until(lambda: aggregator.counted() >= total)
            await asyncio.sleep(0.3)
            assert aggregator.counts() == wire.expected()
            view = aggregator.ask("status")
            assert view["streams"][0]["counted"] == total
            assert aggregator.end() == 0
    finally:
        aggregator.kill()
    assert b"in use by another" not in aggregator.log.read_bytes()


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
