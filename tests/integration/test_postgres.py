"""PostgreSQL cut off at every step of a flush, and the same counts as SQLite: AGG-06, 07, 10."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aggregator.counting.refusals import Codes, Rules, StreamRules
from aggregator.errors import StoreHeldError
from aggregator.intake.intake import commit
from aggregator.store.contract import Reader, Store
from aggregator.store.flush_ids import flush_day
from aggregator.store.postgres import statements as schema
from aggregator.store.postgres.link import connect
from aggregator.store.postgres.store import PostgresStore
from aggregator.store.sqlite.store import SqliteStore
from edge_ldp.device.frame import encode
from edge_ldp.protocol.messages import Status, StreamStatus
from edge_ldp.service.mqtt import Message
from tests.integration.cutting_proxy import CuttingProxy
from tests.postgres import PostgresServer

SLOT_S, REPORTS = 900, 5
NOW_S = 1_700_000_000
FIRST = NOW_S // SLOT_S - 2000
CODES = 8
RULES = Rules(
    {1: StreamRules(SLOT_S, 4, {1: Codes(np.ones(CODES, np.bool_), 0)})},
    *(None, 100, 35 * 86_400, 300, float(NOW_S)),
)


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore.open(tmp_path / "a.db")
    yield made
    made.close()


def report(device: str, batch: int) -> Message:
    slots = [FIRST + REPORTS * batch + at for at in range(REPORTS)]
    codes = [(ord(device[-1]) + 3 * slot) % CODES for slot in slots]
    return Message(f"edge-ldp/v1/demo/report/{device}", encode(1, batch + 1, 1, slots, codes))


def status(device: str, batches: int) -> Message:
    told = StreamStatus(1, batches, batches + 1, 1, created=batches * REPORTS, expired=0)
    payload = Status("online", "1", (told,)).to_json()
    return Message(f"edge-ldp/v1/demo/status/{device}", payload)


def take(
    store: Store, messages: Sequence[Message], *, name: UUID | None = None, same_id: bool = True
) -> int:
    """Commit a flush as the intake does, also when the store is held; return how often it was."""
    name = name or uuid4()
    for held in count():
        if not same_id:
            name = uuid4()
        try:
            commit(store, fleet="demo", messages=messages, rules=RULES, name=name)
        except StoreHeldError:
            time.sleep(0.01)
        else:
            return held
    raise AssertionError


def counts(reader: Reader) -> list[list[int]]:
    found = reader.counts(1, 0, 1 << 32)
    return [part.tolist() for part in (found.epoch, found.bucket, found.code, found.count)]


def everything(reader: Reader) -> list[Any]:
    """Return all that a store says, but for what only one engine has."""
    totals = reader.totals(1)
    return [
        *counts(reader),
        *(part.tolist() for part in (totals.epoch, totals.code, totals.count)),
        *(reader.presence(1), list(reader.records()), reader.devices(), reader.refused()),
        *(reader.marks(), reader.last_commit_s()),
    ]


def flush(step: int) -> list[Message]:
    """Return a flush with what old and new devices, statuses, repeats and refusals bring."""
    old, new = "home-a", f"home-{step}"
    stray = Message("edge-ldp/v1/demo/report/home-a", b"no frame")
    reports = [report(old, 2 * step), report(new, 0), report(new, 0), report(old, 2 * step + 1)]
    return [*reports, stray, status(old, 2 * step + 2), status(new, 1)]


# a third of the steps, from the first to beyond the last; each of them with the slow tests
@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("answered", [False, True], ids=["before", "answer-lost"])
def test_cut_at_each_step_of_a_flush_everything_counts_once_AGG_06_AGG_07(
    server: PostgresServer, url: str, sqlite: SqliteStore, stride: int, *, answered: bool
) -> None:
    with TemporaryDirectory(prefix="cut-") as place:
        proxy = CuttingProxy(Path(place), server.directory)
        store = PostgresStore.open(url.replace(str(server.directory), place))
        held = 0
        for at in count():
            take(sqlite, flush(at))
            proxy.cut_at(stride * at, answered=answered)
            held += take(store, flush(at))
            if not proxy.was_cut:
                break
            try:
                found = everything(store)
            except StoreHeldError:  # cut when the flush had its answer: felt only now
                held += 1
                found = everything(store)
            assert found == everything(sqlite), at
        proxy.close()
        assert at == held  # each cut was felt, and felt once
        assert stride * at > 10
        assert everything(store) == everything(sqlite)
        store.close()


@pytest.mark.slow
def test_a_flush_waits_for_the_end_of_its_own_lost_attempt_AGG_07(url: str) -> None:
    """A client that went silent in mid-transaction: the server ends what it left open."""
    store = PostgresStore.open(url)
    flush = uuid4()
    with closing(connect(url, None)) as silent:
        silent.execute("BEGIN")
        silent.execute(schema.PUT_FLUSH, (flush_day(flush.bytes), flush, 1))
        with pytest.raises(StoreHeldError, match="lock timeout"):
            commit(store, fleet="demo", messages=[report("home-a", 0)], rules=RULES, name=flush)
        assert counts(store)[3] == []
        take(store, [report("home-a", 0)], name=flush)
        assert sum(counts(store)[3]) == REPORTS
        with pytest.raises(psycopg.Error, match="idle-in-transaction"):
            silent.execute("COMMIT")
    store.close()


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_order_over_one_and_three_workers_counts_as_sqlite_does_AGG_10(
    server: PostgresServer, data: st.DataObject
) -> None:
    devices = [f"home-{name}" for name in "abcd"]
    first = [report(device, 0) for device in devices]
    rest = [report(device, batch) for device in devices for batch in range(1, 6)]
    twice = data.draw(st.lists(st.sampled_from(rest), max_size=10))
    sent = data.draw(st.permutations(rest + twice))
    size = data.draw(st.integers(1, 6))
    flushes = [sent[at : at + size] for at in range(0, len(sent), size)]
    with TemporaryDirectory() as place:
        sqlite = SqliteStore.open(Path(place) / "a.db")
        one = PostgresStore.open(server.new_database())
        shared = server.new_database()
        workers = [PostgresStore.open(shared, alone=False) for _ in range(3)]
        stores: list[Store] = [sqlite, one, *workers]
        for store in stores[:3]:
            take(store, first)
        for messages in flushes:
            take(sqlite, messages)
            take(one, messages)
        lanes = [flushes[at::3] for at in range(3)]

        def work(lane: int) -> None:
            for messages in lanes[lane]:
                take(workers[lane], messages)
            workers[lane].merge()

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(work, range(3)))
        assert everything(one) == everything(sqlite)
        assert counts(workers[0]) == counts(sqlite)
        assert sum(counts(sqlite)[3]) == len(devices) * 6 * REPORTS
        settled = [(key, r.counted, r.duplicates) for key, r in sqlite.records()]
        assert [(key, r.counted, r.duplicates) for key, r in workers[0].records()] == settled
        assert workers[0].presence(1) == sqlite.presence(1)
        for store in stores:
            store.close()
