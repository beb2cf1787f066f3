"""Two versions of the intake beside each other: the CPU that the same flushes take, in turn.

`python -m benchmarks.intake_pairs STORE TREE TREE [--reports 1 50] [--turns 5]`: STORE as in
benchmarks.stores, TREE a checkout. Each version settles 48 flushes of 500 frames into a store of
its own; of every flush both take their turn, so that whatever else the machine does is there for
both. Prints, by reports a frame, the medians in µs of CPU a frame of the process that settles, and
how many times as many frames a CPU second the second takes: of the pairs, and by turn. What both
counted and remember of devices has to be the same to the bit.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from hashlib import sha256
from importlib import import_module
from statistics import median

from aggregator.intake.intake import commit
from benchmarks import stores
from benchmarks.intake_traffic import (
    AT_ONCE,
    DEVICES,
    FLEET,
    codes_of,
    flushes,
    messages_of,
    plan_of,
    rules_of,
)

ROUNDS, FIRST = 24, 4  # flushes at the start, which enrol, are left out


def serve(where: str, reports: int) -> None:
    """Settle a flush for each line that comes; print what a frame took, at the end a digest."""
    plan = plan_of("hybrid")
    given = [messages_of(one) for one in flushes(plan, ROUNDS, reports=reports)]
    rules = rules_of(codes_of(plan, watched=True), ROUNDS, reports, DEVICES)
    import_module("scipy.special")  # a service loads it once
    store = stores.open_store(where, alone=True)
    for messages in given:
        sys.stdin.readline()
        begun_s = time.process_time()
        commit(store, fleet=FLEET, messages=messages, rules=rules)
        print((time.process_time() - begun_s) / AT_ONCE * 1e6, flush=True)  # noqa: T201
    rows = store.totals(1)
    counted = [one.tolist() for one in (rows.epoch, rows.bucket, rows.code, rows.count)]
    names = sorted({m.topic.rpartition("/")[2] for m in given[0]})
    states = [(name, *one) for name in names for one in store.states(name)]
    kept = [(*who, one.counted, one.state.highest, one.state.last_slot) for *who, one in states]
    print(sha256(repr((counted, kept)).encode()).hexdigest(), flush=True)  # noqa: T201
    store.close()


def turn(place: str, trees: list[str], reports: int, first: int) -> list[list[float]]:
    """Return µs a frame of each flush but the first ones, by version."""
    name = stores.DATABASE
    with stores.place(place) as one:
        stores.DATABASE = f"{name}_beside"
        with stores.place(place) as other:
            stores.DATABASE = name
            works = [_start(*of, reports) for of in zip((one, other), trees, strict=True)]
            spent: list[list[float]] = [[], []]
            for at in range(2 * ROUNDS):
                for who in (0, 1) if (at + first) % 2 else (1, 0):
                    spent[who].append(float(_ask(works[who])))
            digests = {_ask(work) for work in works}
            for work in works:
                work.communicate()
            stores.DATABASE = f"{name}_beside"
        stores.DATABASE = name
    assert len(digests) == 1
    return [each[FIRST:] for each in spent]


def _start(where: str, tree: str, reports: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", __file__, "--serve", where, "--reports", str(reports)]
    env = {**os.environ, "PYTHONPATH": os.path.realpath(tree)}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=tree, env=env, stdin=pipe, stdout=pipe, text=True)


def _ask(work: subprocess.Popen[str]) -> str:
    assert work.stdin is not None and work.stdout is not None  # noqa: PT018
    work.stdin.write("\n")
    work.stdin.flush()
    return work.stdout.readline().strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", nargs="?")
    parser.add_argument("trees", nargs="*")
    parser.add_argument("--reports", type=int, nargs="+", default=[1, 50])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--serve")
    args = parser.parse_args()
    if args.serve:
        serve(args.serve, *args.reports)
        return
    for reports in args.reports:
        turns = [turn(args.store, args.trees, reports, at) for at in range(args.turns)]
        before, now = ([cost for one in turns for cost in one[who]] for who in (0, 1))
        ratios = [median(a / b for a, b in zip(*one, strict=True)) for one in turns]
        pairs = median(a / b for a, b in zip(before, now, strict=True))
        each = ", ".join(f"{one:.2f}" for one in ratios)
        medians = f"{median(before):.1f} -> {median(now):.1f} µs a frame"
        least = f"least {min(before):.1f} -> {min(now):.1f}"
        print(f"{reports} a frame: {medians}, {least}; {pairs:.2f} times the rate ({each})")  # noqa: T201


if __name__ == "__main__":
    main()
