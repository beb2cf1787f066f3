"""What the overview's summary and the leading worker's minute cost a fleet, by store and history.

`python -m benchmarks.overview sqlite URL [--devices 100000] [--days 1 365] [--turns 20]` fills a
store (URL as of `benchmarks.stores`) with so many devices that were heard of, an eighth of them not
for a day and some refusing, and with so many days of a fleet's hourly counts. Then it prints, as
processor time, the server's included, what each takes: the chore that keeps by day how many homes
are silent or refuse, once a minute; and the summary that the console makes pages and metrics of, at
most once a commit.
"""

from __future__ import annotations

import argparse
import os
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from aggregator.answers.fleet.status import read_summary
from aggregator.intake.intake import commit
from aggregator.running.process import keep_fleet_day
from aggregator.store.opening import open_reader
from benchmarks.intake_traffic import AT_ONCE, FLEET, NOW_S, codes_of, plan_of, rules_of
from benchmarks.stores import DATABASE, open_store, place
from benchmarks.year import configured, fill
from edge_ldp.protocol.messages import Status, StreamStatus, topic
from edge_ldp.service.clock import Clock
from edge_ldp.service.mqtt import Message

if TYPE_CHECKING:
    from collections.abc import Callable

    from aggregator.store.contract import Store

DAY_S = 86_400


def hear(store: Store, devices: int) -> None:
    """Let devices say how they are, an eighth of them two days ago."""
    rules = rules_of(codes_of(plan_of("hybrid"), watched=False), 1, 1)
    for begin in range(0, devices, AT_ONCE):
        late = 2 * DAY_S * (begin // AT_ONCE % 8 == 0)
        given = [
            Message(topic(FLEET, "status", f"home-{at:07d}"), _status(at))
            for at in range(begin, min(devices, begin + AT_ONCE))
        ]
        commit(store, fleet=FLEET, messages=given, rules=replace(rules, now_s=NOW_S - late))


def _status(at: int) -> bytes:
    stream = StreamStatus(1, first=1, next=2, oldest=2, created=24, expired=0)
    refusals = ("theta",) if at % 5000 == 0 else ()
    return Status("online", "bench", (stream,), refusals=refusals).to_json()


def processor_s() -> float:
    """Return the processor time of this process and of the database's processes so far."""
    ticks = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if DATABASE.encode() in (process / "cmdline").read_bytes():
                used = (process / "stat").read_text().rpartition(")")[2].split()
                ticks += int(used[11]) + int(used[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def timed(turns: int, work: Callable[[], object]) -> str:
    """Return what one of so many turns takes, by the processor and by the clock."""
    spent, used = [], processor_s()
    for _ in range(turns):
        begun = time.perf_counter()
        work()
        spent.append(time.perf_counter() - begun)
    return f"{1e3 * (processor_s() - used) / turns:.0f} ms ({1e3 * median(spent):.0f} by the clock)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stores", nargs="+")
    parser.add_argument("--devices", type=int, default=100_000)
    parser.add_argument("--days", type=int, nargs="+", default=[1, 365])
    parser.add_argument("--turns", type=int, default=20)
    args = parser.parse_args()
    for name in args.stores:
        for days in args.days:
            with place(name) as where:
                store = open_store(where, alone=True)
                fill(store, days, args.devices)
                hear(store, args.devices)
                config = configured(where)
                clock = Clock(NOW_S, time.time(), 1e-9)
                minute = timed(args.turns, partial(keep_fleet_day, config, clock, store))
                reader = open_reader(config, "benchmark")
                looks = partial(read_summary, reader, config, NOW_S)
                summary = timed(args.turns, looks)
                reader.close()
                store.close()
            kind = name.partition(":")[0]
            print(f"{kind}, {days} days: a minute {minute}; summary {summary}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
