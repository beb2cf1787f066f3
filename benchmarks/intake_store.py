"""From received bytes to durable counts on SQLite: reports a second, and where the time goes."""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aggregator.counting import settle
from aggregator.counting.flush_counts import Counting
from aggregator.intake import intake
from aggregator.store.sqlite import store as sqlite_store
from aggregator.store.sqlite.store import SqliteStore
from benchmarks.intake_traffic import FLEET, codes_of, flushes, messages_of, rules_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from edge_ldp.protocol.plan import Plan

STAGES = ("decode", "judge", "place", "tally", "watch", "SQL", "commit")
_TIMED: tuple[tuple[str, Any, str], ...] = (
    ("decode", intake, "read_messages"),
    ("settle", intake, "settle"),
    ("judge", settle, "judge_all"),
    ("tally", Counting, "tally"),
    ("tally", Counting, "presence"),
    ("tally", Counting, "reporters"),
    ("watch", settle, "look_at"),
    ("SQL", sqlite_store, "known"),
    ("SQL", sqlite_store, "write"),
)


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one run: seconds of this process's CPU and of the wall clock; shares of the CPU."""

    reports: int
    frames: int
    cpu_s: float
    wall_s: float
    shares: dict[str, float]


def measure(plan: Plan, *, reports: int, frames: int, devices: int, watched: bool = True) -> Cost:
    """Settle at least so many frames of `reports` each, of which every one counts."""
    rounds = -(-frames // devices)
    given = [messages_of(one) for one in flushes(plan, rounds, devices=devices, reports=reports)]
    rules = rules_of(codes_of(plan, watched=watched), rounds, reports, devices)
    import_module("scipy.special")  # a service loads it once
    with tempfile.TemporaryDirectory() as place, stopwatch() as spent:
        store = SqliteStore.open(Path(place) / "a.db")
        begun_s, begun_cpu_s = time.perf_counter(), time.process_time()
        for messages in given:
            intake.commit(store, fleet=FLEET, messages=messages, rules=rules)
        wall_s, cpu_s = time.perf_counter() - begun_s, time.process_time() - begun_cpu_s
        counted = int(store.totals(1).count.sum())
        store.close()
    assert counted == rounds * devices * reports
    return Cost(counted, rounds * devices, cpu_s, wall_s, _shares(spent, cpu_s))


def _shares(spent: defaultdict[str, float], cpu_s: float) -> dict[str, float]:
    inside = sum(spent[stage] for stage in ("judge", "tally", "watch"))
    seconds = {**spent, "place": spent["settle"] - inside}
    seconds["commit"] = cpu_s - spent["settle"] - spent["decode"] - spent["SQL"]
    return {stage: seconds[stage] / cpu_s for stage in STAGES}


@contextmanager
def stopwatch() -> Iterator[defaultdict[str, float]]:
    """Take the CPU time of the stages, a few calls each flush, into what is yielded."""
    spent: defaultdict[str, float] = defaultdict(float)
    before = [(owner, name, getattr(owner, name)) for _, owner, name in _TIMED]
    for stage, owner, name in _TIMED:
        setattr(owner, name, _timed(getattr(owner, name), stage, spent))
    try:
        yield spent
    finally:
        for owner, name, work in before:
            setattr(owner, name, work)


def _timed(
    work: Callable[..., Any], stage: str, spent: defaultdict[str, float]
) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        begun = time.process_time()
        try:
            return work(*args, **kwargs)
        finally:
            spent[stage] += time.process_time() - begun

    return run
