"""A database that fails over, or goes back to a moment: nothing lost, nothing twice (AGG-43)."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count

import pytest

from aggregator.errors import StoreHeldError
from aggregator.intake.intake import commit
from aggregator.store.postgres.store import PostgresStore
from aggregator.store.sqlite.store import SqliteStore
from tests.integration.test_postgres import RULES, everything, flush, report, sqlite, take
from tests.postgres import PostgresServer, running_postgres

__all__ = ["sqlite"]  # a fixture
STANDS = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


def _until(is_so: Callable[[], bool], working: Future[None] | None = None) -> None:
    """Wait for something, as long as what is to bring it about goes on."""
    while not is_so():
        assert working is None or not working.done(), working
        time.sleep(0.01)


def test_a_standby_takes_over_and_who_is_left_behind_acknowledges_nothing_AGG_43(
    sqlite: SqliteStore,
) -> None:
    """Flushes go on over two hosts in one URL; each commit waits until both servers have it."""
    done, taken = threading.Event(), 0

    def load(store: PostgresStore) -> None:
        nonlocal taken
        for step in count():
            if done.is_set():
                return
            take(store, flush(step))
            taken = step + 1

    with running_postgres() as old:
        url, new = old.new_database(), PostgresServer(of=old)
        both = url.replace(f"={old.directory}", f"={old.directory},{new.directory}")
        store = PostgresStore.open(f"{both}&target_session_attrs=read-write")
        try:
            new.start()
            old.set("synchronous_standby_names", "*")
            _until(lambda: old.ask(STANDS) == [(1,)])
            with ThreadPoolExecutor(1) as pool:
                loading = pool.submit(load, store)
                try:
                    _until(lambda: taken >= 20, loading)
                    old.crash()
                    new.promote()
                    new.ask("ALTER SYSTEM RESET synchronous_standby_names")  # it stands alone
                    new.ask("SELECT pg_reload_conf()")
                    before = taken
                    _until(lambda: taken >= before + 20, loading)
                finally:
                    done.set()
                loading.result()
            for step in range(taken):
                take(sqlite, flush(step))
            assert everything(store) == everything(sqlite)
            _acknowledges_nothing(old, url)
            assert everything(store) == everything(sqlite)
        finally:
            store.close()
            new.remove()


def _acknowledges_nothing(old: PostgresServer, url: str) -> None:
    """Start the server that was left behind: a worker there waits for a standby, and is told."""
    old.start()
    with ThreadPoolExecutor(1) as pool:

        def write() -> None:
            store = PostgresStore.open(url)
            try:
                commit(store, fleet="demo", messages=[report("home-a", 0)], rules=RULES)
            finally:
                store.close()

        writing = pool.submit(write)
        _until(lambda: old.ask(WAITS) == [(1,)], writing)
        old.crash()
        with pytest.raises(StoreHeldError):
            writing.result()


def test_going_back_to_a_moment_counts_what_comes_again_once_AGG_43(sqlite: SqliteStore) -> None:
    with running_postgres() as lost:
        kept = lost.directory / "kept"
        lost.ask("ALTER SYSTEM SET archive_mode = 'on'")
        lost.set("archive_command", f"mkdir -p {kept} && cp %p {kept}/%f")
        lost.crash()
        lost.start()
        url = lost.new_database()
        store = PostgresStore.open(url)
        for step in range(4):
            take(store, flush(step))
        found = PostgresServer(of=lost)
        try:
            for step in range(4, 8):
                take(store, flush(step))
            lost.ask("SELECT pg_create_restore_point('before')")
            for step in range(8, 12):
                take(store, flush(step))
            store.close()
            lost.ask("SELECT pg_switch_wal()")
            _until(lambda: lost.ask("SELECT archived_count > 1 FROM pg_stat_archiver") == [(True,)])
            found.go_back("before", f"cp {kept}/%f %p")
            store = PostgresStore.open(url.replace(str(lost.directory), str(found.directory)))
            for step in range(8):
                take(sqlite, flush(step))
            assert everything(store) == everything(sqlite)
            for step in range(6, 12):  # devices send what no receipt covered, and more
                take(sqlite, flush(step))
                take(store, flush(step))
            assert everything(store) == everything(sqlite)
            store.close()
        finally:
            found.remove()
