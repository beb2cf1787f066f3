"""A fleet's SQLite store goes on in PostgreSQL while its devices send: AGG-22."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from aggregator.main import main
from aggregator.store.postgres.reader import PostgresReader
from tests.integration.aggregator_bench import Aggregator, until, wires
from tests.integration.conftest import EVERY_SECOND, RealBroker
from tests.integration.test_aggregator_kills import make_batches
from tests.integration.test_postgres_service import OnPostgres
from tests.postgres import running_postgres


@pytest.mark.slow
async def test_a_store_moved_with_traffic_flowing_counts_everything_once_AGG_22(
    tmp_path: Path, make_broker: Callable[[str], RealBroker]
) -> None:
    broker = make_broker(EVERY_SECOND)
    (tmp_path / "new").mkdir()
    with running_postgres() as server:
        old = Aggregator(tmp_path, broker)
        new = OnPostgres(tmp_path / "new", broker, server.new_database())
        clock = old.config.read_text().split("[clock]")[1].split("[intake]")[0]
        text = new.config.read_text()
        before, rest = text.split("[clock]")
        new.config.write_text(f"{before}[clock]{clock}[intake]{rest.split('[intake]')[1]}")
        old.start()
        try:
            async with wires(broker) as make:
                wire = await make()
                await wire.plan()
                messages = make_batches(wire, 20, 50, 20)
                total = 20 * 50 * 20
                sending = asyncio.create_task(wire.send(messages))
                await until(lambda: old.counted() >= 0.2 * total)
                old.kill()
                moved = old.counts()
                files = ["--from", str(old.config), "--to", str(new.config)]
                assert await asyncio.to_thread(main, ["migrate", *files]) == 0
                assert new.counts() == moved
                assert new.accounts() == old.accounts()
                assert new.plans() == old.plans()
                new.start()
                await sending
                # what the old process had counted but not acknowledged comes once more
                await until(lambda: new.counted() >= total)
                await asyncio.sleep(0.3)
                assert new.counts() == wire.expected()
                assert new.ask("status")["streams"][0]["counted"] == total
                assert new.end() == 0
        finally:
            old.kill()
            new.kill()
        assert await asyncio.to_thread(main, ["migrate", *files]) == 4  # it was moved
        old.start()
        assert old.wait() == 4
        assert b"was moved to" in old.log.read_bytes()
        PostgresReader.open(new.url).close()
