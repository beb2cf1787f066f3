"""What fifty readers cost the intake: frames into SQLite with and without them (AGG-21).

`python -m benchmarks.readers [--readers 50] [--every 1]` commits flushes of 200 frames of 50
reports from 400 devices; meanwhile so many readers, in a process of their own, each ask every so
many seconds for everything that `status` and `query` ask for. By the clock the readers' CPU shows,
where it is taken from the same cores; by the writer's own CPU only what they keep it from doing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

from aggregator.intake.intake import commit
from aggregator.store.sqlite.reader import SqliteReader
from aggregator.store.sqlite.store import SqliteStore
from benchmarks.intake_traffic import (
    FLEET,
    REPORTS,
    codes_of,
    flushes,
    messages_of,
    plan_of,
    rules_of,
)

ROUNDS = 24


def read(path: Path, every_s: float, told: threading.Lock) -> None:
    """Ask again and again; one dot a question."""
    reader = SqliteReader.open(path)
    while True:
        begun = time.monotonic()
        list(reader.records())
        reader.counts(1, 0, 1 << 32)
        reader.presence(1)
        reader.refused()
        with told:
            sys.stdout.write(".")
            sys.stdout.flush()
        time.sleep(max(0.0, begun + every_s - time.monotonic()))


def reading(path: Path, readers: int, every_s: float) -> None:
    told = threading.Lock()
    for _ in range(readers):
        threading.Thread(target=read, args=(path, every_s, told), daemon=True).start()
        time.sleep(every_s / readers)
    time.sleep(3600)


def ingest(place: Path, readers: int, every_s: float) -> tuple[float, float, int]:
    """Return reports a second, by the clock and by CPU, and the questions answered meanwhile."""
    plan = plan_of("hybrid")
    rules = rules_of(codes_of(plan, watched=True), ROUNDS, REPORTS)
    given = [messages_of(flush) for flush in flushes(plan, ROUNDS)]
    path = place / f"{readers}.db"
    store = SqliteStore.open(path)
    command = [sys.executable, "-m", "benchmarks.readers", "--read", str(path)]
    command += ["--readers", str(readers), "--every", str(every_s)]
    beside = subprocess.Popen(command, stdout=subprocess.PIPE)
    time.sleep(1.5 + every_s)
    begun, begun_cpu = time.monotonic(), time.process_time()
    for flush in given:
        commit(store, fleet=FLEET, messages=flush, rules=rules)
    spent, spent_cpu = time.monotonic() - begun, time.process_time() - begun_cpu
    beside.kill()
    answered = len(beside.communicate()[0])
    store.close()
    reports = sum(map(len, given)) * REPORTS
    return reports / spent, reports / spent_cpu, answered


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--every", type=float, default=1.0)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--read", type=Path)
    args = parser.parse_args()
    if args.read is not None:
        reading(args.read, args.readers, args.every)
    found: list[list[tuple[float, float, int]]] = [[], []]
    for _ in range(args.turns):
        for readers, rates in zip((0, args.readers), found, strict=True):
            with tempfile.TemporaryDirectory() as place:
                rates.append(ingest(Path(place), readers, args.every))
    questions = sum(one[2] for one in found[1]) / args.turns
    sys.stdout.write(
        f"{args.readers} readers, {questions:.0f} questions a turn; reports a second:\n"
    )
    for at, name in enumerate(("by the clock", "by CPU")):
        alone, beside = (median(one[at] for one in rates) for rates in found)
        sys.stdout.write(f"{name}: {alone:,.0f} alone, {beside:,.0f}: ratio {beside / alone:.2f}\n")


if __name__ == "__main__":
    main()
