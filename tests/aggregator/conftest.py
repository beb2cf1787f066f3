"""Fixtures of tests that run on both stores: one PostgreSQL server for all of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.aggregator.engines import Engine
from tests.postgres import PostgresServer, running_postgres


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    """Give a PostgreSQL server for the whole run."""
    with running_postgres() as made:
        yield made


@pytest.fixture
def url(server: PostgresServer) -> str:
    """Give a database of its own."""
    return server.new_database()


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    """Give a new store's place on each engine in turn."""
    path = tmp_path / "a.db"
    if request.param == "sqlite":
        return Engine("sqlite", f'path = "{path}"', path, "")
    url = request.getfixturevalue("url")
    return Engine("postgres", f'url = "{url}"', path, url)
