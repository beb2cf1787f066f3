"""What the aggregator takes in on this machine: reports a second, and where the time goes.

`python -m benchmarks.intake [--json FILE]` measures, for frames of 1 to 1,000 reports,
from received bytes to durable counts on SQLite, with and without the bound per device, and
through a broker (mosquitto on loopback): the service beside a client that only receives, both
draining a backlog of their own, in turn. It prints medians of `--turns`, seconds of this process's
CPU beside those of the clock, and which share of the CPU goes where. All frames are honest, of a
plan in full work, and count; `--devices` take turns; a flush has at most 500 frames.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.intake_broker import compare
from benchmarks.intake_store import STAGES, measure
from benchmarks.intake_traffic import AT_ONCE, DEVICES, plan_of

if TYPE_CHECKING:
    from benchmarks.intake_broker import Drained
    from benchmarks.intake_store import Cost
    from edge_ldp.protocol.plan import Plan

BATCHES = (1, 10, 50, 100, 1000)
FRAMES = 20_000
REPORTS = 4_000_000  # so many in one run, at most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, nargs="+", default=BATCHES)
    parser.add_argument("--devices", type=int, default=DEVICES)
    parser.add_argument("--frames", type=int, default=FRAMES)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--part", choices=["store", "broker", "both"], default="both")
    flush_help = "messages that the service settles at once, at most (part broker)"
    parser.add_argument("--flush", type=int, default=AT_ONCE, help=flush_help)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    plan = plan_of("hybrid")
    sizes = [(n, min(args.frames, REPORTS // n)) for n in args.batches]
    found: dict[str, list[dict[str, object]]] = {}
    if args.part != "broker":
        found["store"] = store_part(plan, sizes, args.devices, args.turns)
    if args.part != "store":
        found["broker"] = broker_part(plan, sizes, args.devices, args.turns, args.flush)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1))


def store_part(
    plan: Plan, sizes: list[tuple[int, int]], devices: int, turns: int
) -> list[dict[str, object]]:
    """Print a line for each size of frames; the shares are those of the watched runs."""
    say("reports a frame", "reports/s", "frames/s", "µs CPU a frame", "unwatched", *STAGES)
    rows: list[dict[str, object]] = []
    for reports, frames in sizes:
        runs: dict[bool, list[Cost]] = {True: [], False: []}
        for _ in range(turns):
            for watched, costs in runs.items():
                cost = measure(
                    plan, reports=reports, frames=frames, devices=devices, watched=watched
                )
                costs.append(cost)
                rows.append({"batch": reports, "watched": watched, **asdict(cost)})
        rate = median(one.reports / one.wall_s for one in runs[True])
        cpu, bare = (median(one.cpu_s / one.frames for one in runs[way]) for way in (True, False))
        shares = [median(one.shares[stage] for one in runs[True]) for stage in STAGES]
        figures = (
            f"{rate:,.0f}",
            f"{rate / reports:,.0f}",
            f"{cpu * 1e6:.0f}",
            f"{bare * 1e6:.0f}",
        )
        say(f"{reports}", *figures, *(f"{share:.0%}" for share in shares))
    return rows


def broker_part(
    plan: Plan, sizes: list[tuple[int, int]], devices: int, turns: int, flush: int
) -> list[dict[str, object]]:
    """Print a line for each size of frames."""
    say("reports a frame", "received/s", "counted/s", "ratio", "µs CPU received", "µs CPU counted")
    rows: list[dict[str, object]] = []
    for reports, frames in sizes:
        runs: list[tuple[Drained, Drained]] = []
        for _ in range(turns):
            runs.append(compare(plan, reports=reports, frames=frames, devices=devices, flush=flush))
            received, served = runs[-1]
            rows.append({"batch": reports, "received": asdict(received), "served": asdict(served)})
        rates = [tuple(reports * one.frames / one.wall_s for one in run) for run in runs]
        spent = [tuple(one.cpu_s / one.frames * 1e6 for one in run) for run in runs]
        say(
            f"{reports}",
            *(f"{median(rate[at] for rate in rates):,.0f}" for at in (0, 1)),
            f"{median(served / received for received, served in rates):.0%}",
            *(f"{median(cpu[at] for cpu in spent):.0f}" for at in (0, 1)),
        )
    return rows


def say(*cells: str) -> None:
    print("|", " | ".join(cells), "|", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
