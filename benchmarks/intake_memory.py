"""Whether memory stays flat: simulated reports settled into SQLite, resident memory on the way.

`nice -n 15 python -m benchmarks.intake_memory --reports 100000000` prints ten points. Frames are of
50 reports, in flushes of 500, from `--devices` that take turns; they are made while it runs, which
takes more time than settling them.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

from aggregator.intake.intake import commit
from aggregator.store.sqlite.store import SqliteStore
from benchmarks.intake_traffic import (
    AT_ONCE,
    FLEET,
    REPORTS,
    codes_of,
    flushes,
    messages_of,
    plan_of,
    rules_of,
)

POINTS = 10
PAGE_KIB = resource.getpagesize() / 1024


def resident_mib() -> float:
    """Return the resident memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * PAGE_KIB / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=10_000_000)
    parser.add_argument("--devices", type=int, default=20_000)
    args = parser.parse_args()
    plan = plan_of("hybrid")
    rounds = -(-args.reports // (args.devices * REPORTS))
    rules = rules_of(codes_of(plan, watched=True), rounds, REPORTS, args.devices)
    every = max(1, rounds * args.devices // AT_ONCE // POINTS)
    spent_s = 0.0
    print("reports | resident, MiB | store, MiB | settled, reports/s of CPU")  # noqa: T201
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "a.db"
        store = SqliteStore.open(path)
        for done, flush in enumerate(flushes(plan, rounds, devices=args.devices), start=1):
            messages = messages_of(flush)
            begun = time.process_time()
            commit(store, fleet=FLEET, messages=messages, rules=rules)
            spent_s += time.process_time() - begun
            if done % every == 0:
                settled = done * AT_ONCE * REPORTS
                size = path.stat().st_size / (1 << 20)
                rate = settled / spent_s
                print(f"{settled:,} | {resident_mib():.1f} | {size:.0f} | {rate:,.0f}", flush=True)  # noqa: T201
        counted = int(store.totals(1).count.sum())
        store.close()
    assert counted == rounds * args.devices * REPORTS


if __name__ == "__main__":
    main()
