"""What settling and committing a frame costs, with and without the bound per device.

`python -m benchmarks.intake [--rounds 40]` prints medians of µs of CPU a frame over flushes of 200
frames of 50 reports from 400 devices, both ways in turn.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from aggregator import planner
from aggregator.config import StreamTable
from aggregator.guard import Codes, Rules, StreamRules, allowed_codes
from aggregator.settle import read_frame, settle, wanted
from aggregator.shell.sqlite_store import SqliteStore
from edge_ldp.device.frame import encode

if TYPE_CHECKING:
    from aggregator.records import Arrival, Changes, Known
    from edge_ldp.plan import Plan

DEVICES, AT_ONCE, REPORTS, SLOT_S = 400, 200, 50, 900
NOW_S = 1_700_000_000
Flush = list[tuple[str, bytes]]


def plan_of(mechanism: str) -> Plan:
    stream = StreamTable(
        name="power",
        id=1,
        unit="W",
        ceiling=43_470,
        epsilon=1,
        horizon=1_000_000,
        mechanism="tuned" if mechanism == "tuned" else "hybrid",
    )
    first = planner.first_plan("demo", stream, epoch=1, now_s=NOW_S)
    following = planner.following(first, stream, 9000, (0, 43_470), now_s=NOW_S)
    assert following is not None
    return replace(following, epoch=1)


def flushes(plan: Plan, rounds: int) -> list[Flush]:
    rng = np.random.default_rng(1)
    made = []
    for batch in range(rounds):
        first = NOW_S // SLOT_S + 1 + batch * REPORTS
        slots = range(first, first + REPORTS)
        for start in range(0, DEVICES, AT_ONCE):
            codes = rng.integers(0, plan.reporter().code_count, (AT_ONCE, REPORTS)).tolist()
            names = (f"home-{start + at:06d}" for at in range(AT_ONCE))
            frames = (encode(1, batch + 1, 1, slots, row) for row in codes)
            made.append(list(zip(names, frames, strict=True)))
    return made


def measure(codes: Codes, given: list[Flush]) -> float:
    """Return the median µs of CPU of a frame."""
    last_s = NOW_S + SLOT_S * REPORTS * (len(given) + 2)
    streams = {1: StreamRules(SLOT_S, 4, {1: codes})}
    rules = Rules(streams, None, 10**6, 35 * 86_400, 300, float(last_s))
    spent = []
    with tempfile.TemporaryDirectory() as place:
        store = SqliteStore.open(Path(place) / "a.db")
        for flush in given:
            begun = time.process_time()
            arrivals = [read_frame(*frame) for frame in flush]
            names = frozenset(name for name, _ in flush)

            def decide(known: Known, arrivals: list[Arrival] = arrivals) -> Changes:
                return settle(arrivals, {}, {}, known, rules)

            store.update(wanted(arrivals, {}), names, 1, decide)
            spent.append(time.process_time() - begun)
        store.close()
    return median(spent) * 1e6 / AT_ONCE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    for mechanism in ("hybrid", "tuned"):
        plan = plan_of(mechanism)
        given, codes = flushes(plan, rounds), allowed_codes(plan)
        for turn in (1, 2):
            without = measure(replace(codes, watch=None), given)
            watched = measure(codes, given)
            share = watched / without - 1
            print(f"{mechanism} {turn}: {without:.0f} µs, {watched:.0f} watched, {share:+.0%}")  # noqa: T201


if __name__ == "__main__":
    main()
