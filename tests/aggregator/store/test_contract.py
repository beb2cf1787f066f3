"""SQLite keeps the contract of a store; its own faults are in test_sqlite_store.py."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from aggregator.store.sqlite.reader import SqliteReader
from aggregator.store.sqlite.store import SqliteStore
from tests.aggregator.store_contract import OpenReader, OpenStore, StoreContract


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Iterator[OpenStore]:
        """Give a function that opens the same store; what was open before is closed first."""
        opened: list[SqliteStore] = []

        def reopen() -> SqliteStore:
            for store in opened:
                store.close()
            opened.append(SqliteStore.open(tmp_path / "store.db"))
            return opened[-1]

        yield reopen
        for store in opened:
            store.close()

    @pytest.fixture
    def open_reader(self, tmp_path: Path) -> OpenReader:
        """Give a function that opens a reader beside it."""
        return lambda: SqliteReader.open(tmp_path / "store.db")
