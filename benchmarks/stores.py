"""Reports a second from received frames to durable counts, by store and workers.

`python -m benchmarks.stores sqlite URL URL:2 [--rounds 100] [--turns 3]` measures each store in
turn, so that a busy machine is busy for all. URL is a PostgreSQL server's, as
postgresql://postgres@/postgres?host=/run/postgresql; each turn makes a database there and drops it;
`URL:2` is with two worker processes. Flushes are of 500 frames of 50 reports, from 1,000 devices.

With `--records 100000` it prints instead the bytes that the dedupe state of so many devices takes,
one stream each, no gap open, the digests of 8 batches kept: index and free space included, once as
first written and once after every record was replaced three times in flushes of 200 at random.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg

from aggregator.counting.records import Changes, Record
from aggregator.counting.seen_batches import DIGEST, DeviceState
from aggregator.counting.tally import Tally
from aggregator.intake.intake import commit
from aggregator.store.postgres.store import PostgresStore
from aggregator.store.sqlite.store import SqliteStore
from benchmarks.intake_traffic import (
    AT_ONCE,
    FLEET,
    NOW_S,
    REPORTS,
    codes_of,
    flushes,
    messages_of,
    plan_of,
    rules_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aggregator.counting.records import Key, Known
    from aggregator.store.contract import Store

DATABASE = "edge_ldp_benchmark"


def open_store(where: str, *, alone: bool) -> Store:
    if where.startswith("postgres"):
        return PostgresStore.open(where, alone=alone)
    return SqliteStore.open(Path(where))


def work(where: str, rounds: int, lane: tuple[int, int], meet: Any, spans: Any) -> None:
    """Be one of several workers: every so manieth flush, from the moment that all are ready."""
    at, workers = lane
    plan = plan_of("hybrid")
    given = [messages_of(one) for one in flushes(plan, rounds)][at::workers]
    rules = rules_of(codes_of(plan, watched=True), rounds, REPORTS)
    store = open_store(where, alone=workers == 1)
    meet.wait()
    begun = time.monotonic()
    for messages in given:
        commit(store, fleet=FLEET, messages=messages, rules=rules)
    spans.put((begun, time.monotonic()))
    store.close()


def measure(where: str, rounds: int, workers: int) -> float:
    """Return reports a second, from the first worker's begin to the last one's end."""
    made = multiprocessing.get_context("spawn")
    meet, spans = made.Barrier(workers), made.Queue()
    tasks = [
        made.Process(target=work, args=(where, rounds, (at, workers), meet, spans))
        for at in range(workers)
    ]
    for task in tasks:
        task.start()
    begun, ended = zip(*(spans.get() for _ in tasks), strict=True)
    for task in tasks:
        task.join()
    store = open_store(where, alone=True)
    counted = int(store.totals(1).count.sum())
    store.close()
    assert counted == rounds * 2 * AT_ONCE * REPORTS
    spent_s: float = max(ended) - min(begun)
    return counted / spent_s


def record_bytes(where: str, count: int) -> tuple[float, float]:
    """Return bytes a device and stream, as first written and after updates."""
    store = open_store(where, alone=True)
    names = [f"home-{at:07d}" for at in range(count)]
    for start in range(0, count, 1000):
        _replace(store, names[start : start + 1000], 60_007)
    fresh = _size(where) / count
    rng = np.random.default_rng(1)
    for turn in range(1, 4):
        order = rng.permutation(count)
        for start in range(0, count, AT_ONCE):
            _replace(store, [names[at] for at in order[start : start + AT_ONCE]], 60_007 + turn)
    store.close()
    return fresh, _size(where) / count


def _replace(store: Store, names: list[str], batch: int) -> None:
    digests = b"".join(DIGEST.pack(at, os.urandom(8)) for at in range(batch - 7, batch + 1))
    state = DeviceState(batch, 1_900_000, 1, (), digests)
    record = Record(state, 1_600_000, 300_000, 7, 500, 0, 300_100, 0, 1, batch + 1, 0)
    made = {(name, 1): record for name in names}
    store.update(frozenset(made), frozenset(), NOW_S, partial(_put, made))


def _size(where: str) -> int:
    if not where.startswith("postgres"):
        return Path(where).stat().st_size
    with psycopg.connect(where, autocommit=True) as db:
        (size,) = db.execute("SELECT pg_total_relation_size('records')").fetchone() or (0,)
    return int(size)


def _put(records: dict[Key, Record], _: Known) -> Changes:
    none: frozenset[str] = frozenset()
    return Changes(records, {}, Tally(), {}, {}, none, none, none)


@contextmanager
def place(name: str) -> Iterator[str]:
    """Give an empty store's place, and take it away afterwards."""
    if name == "sqlite":
        with tempfile.TemporaryDirectory() as directory:
            yield str(Path(directory) / "a.db")
        return
    with psycopg.connect(name, autocommit=True) as db:
        db.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        db.execute(f"CREATE DATABASE {DATABASE} TEMPLATE template0 ENCODING 'UTF8'")
        head, query, rest = name.partition("?")
        try:
            yield f"{head.rpartition('/')[0]}/{DATABASE}{query}{rest}"
        finally:
            db.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


def name_and_workers(store: str) -> tuple[str, int]:
    """Return a store's name and how many shall write to it at once, `:2` behind it (no port)."""
    name, _, workers = store.rpartition(":")
    whole = "://" not in name or "/" in name.partition("://")[2]
    return (name, int(workers)) if whole and workers.isdigit() else (store, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stores", nargs="+")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--records", type=int)
    args = parser.parse_args()
    if args.records:
        for store in args.stores:
            with place(store) as where:
                fresh, used = record_bytes(where, args.records)
            name = store.partition(":")[0]
            print(f"{name}: {fresh:.0f} bytes a device and stream, {used:.0f} after updates")  # noqa: T201
        return
    rates: dict[str, list[float]] = {}
    for _ in range(args.turns):
        for store in args.stores:
            name, workers = name_and_workers(store)
            with place(name) as where:
                rate = measure(where, args.rounds, workers)
            rates.setdefault(f"{name.partition(':')[0]}, {workers} at once", []).append(rate)
    for name, found in rates.items():
        low, middle, high = min(found), median(found), max(found)
        print(f"{name}: {middle:,.0f} reports/s ({low:,.0f} to {high:,.0f})")  # noqa: T201


if __name__ == "__main__":
    main()
