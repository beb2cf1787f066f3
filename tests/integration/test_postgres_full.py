"""AGG-05 on PostgreSQL: no room for its tables is a hold, and nothing is half there."""

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest

from aggregator.counting.refusals import Rules
from aggregator.errors import StoreHeldError
from aggregator.store.postgres.store import PostgresStore
from edge_ldp.service.broker import Message
from tests.integration.both_stores import NOW, House, report, rules
from tests.integration.test_agent_storage import fill, mounted
from tests.postgres import PostgresServer

FRAMES, REPORTS, MOST = 200, 40, 300


@contextmanager
def small_database(server: PostgresServer) -> Iterator[tuple[str, Path]]:
    """Give a database of its own small file system, and where that is."""
    with TemporaryDirectory(dir=server.directory) as outer:
        shutil.chown(outer, server.directory.owner())
        with mounted(Path(outer) / "small", "size=24m") as place:
            shutil.chown(place, server.directory.owner())
            name = f"full{uuid4().hex}"
            server.ask(f"CREATE TABLESPACE {name} LOCATION '{place}'")
            server.ask(f"CREATE DATABASE {name} TEMPLATE template0 TABLESPACE {name}")
            yield server.url(name), place
            server.ask(f"DROP DATABASE {name}")
            server.ask(f"DROP TABLESPACE {name}")


def flush(turn: int) -> list[Message]:
    slots = range(NOW - REPORTS, NOW)
    return [report(1, slots, device=f"home-{turn}-{at}") for at in range(FRAMES)]


def until_it_is_held(house: House, by: Rules) -> int:
    """Return how many flushes there was room for."""
    for turn in range(1, MOST):
        try:
            house.take(*flush(turn), by=by)
        except StoreHeldError as exc:
            if "No space left" not in str(exc):
                raise
            return turn
    pytest.fail("there was room for everything")


def test_without_room_for_its_tables_postgresql_is_a_hold_AGG_05(postgres: PostgresServer) -> None:
    """Full in the middle of a flush: all of it is undone, and it is taken when there is room."""
    with small_database(postgres) as (url, place), closing(PostgresStore.open(url)) as store:
        house, by = House(store), rules(max_devices=10**6)
        house.take(*flush(0), by=by)
        filling = fill(place)
        taken = until_it_is_held(house, by)
        assert house.counts().total() == taken * FRAMES * REPORTS
        assert len(house.records()) == taken * FRAMES
        filling.unlink()
        house.take(*flush(taken), by=by)
        assert house.counts().total() == (taken + 1) * FRAMES * REPORTS
