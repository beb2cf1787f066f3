"""Fixtures of tests that run on both stores: one PostgreSQL server for all of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from aggregator.store.sqlite.store import SqliteStore
from tests.aggregator.engines import Engine
from tests.aggregator.operator import Operator, operator
from tests.postgres import PostgresServer, running_postgres


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    with running_postgres() as made:
        yield made


@pytest.fixture
def url(server: PostgresServer) -> str:
    return server.new_database()


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    """Give a new store's place on each engine in turn."""
    path = tmp_path / "a.db"
    if request.param == "sqlite":
        return Engine("sqlite", f'path = "{path}"', path, "")
    url = request.getfixturevalue("url")
    return Engine("postgres", f'url = "{url}"', path, url)


@pytest.fixture
def desk(engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Operator:
    return operator(tmp_path, engine.text(), capsys)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore.open(tmp_path / "a.db")
    yield made
    made.close()
