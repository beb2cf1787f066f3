"""What a frame that came before costs an aggregator: `python -m benchmarks.duplicates`.

Microseconds of CPU a frame, on SQLite, medians of five turns: frames that count, the same again
decoded and settled, and the same again as the intake sheds them, told once for every device. The
last column is how many times as much the second takes as the third.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median

from aggregator.intake.intake import commit
from aggregator.intake.shed import Shed
from aggregator.store.sqlite.store import SqliteStore
from benchmarks.intake_traffic import FLEET, codes_of, flushes, messages_of, plan_of, rules_of

SIZES, DEVICES, ROUNDS, TURNS = (10, 50), 1000, 6, 5
WAYS = ("counted", "settled again", "shed")


def main() -> None:
    """Print a line for each size of frames."""
    print("|", " | ".join(("reports a frame", *WAYS, "ratio")), "|")  # noqa: T201
    for reports in SIZES:
        turns = [costs(reports) for _ in range(TURNS)]
        found = [median(turn[way] for turn in turns) for way in WAYS]
        figures = " | ".join(f"{one:.0f}" for one in found)
        print(f"| {reports} | {figures} | {found[1] / found[2]:.1f} |", flush=True)  # noqa: T201


def costs(reports: int) -> dict[str, float]:
    """Return microseconds a frame, by way."""
    plan, found = plan_of("hybrid"), {}
    given = [messages_of(one) for one in flushes(plan, ROUNDS, devices=DEVICES, reports=reports)]
    rules = rules_of(codes_of(plan, watched=True), ROUNDS, reports, DEVICES)
    shed = Shed(FLEET)
    with tempfile.TemporaryDirectory() as place:
        store = SqliteStore.open(Path(place) / "a.db")
        for way in WAYS:
            begun = time.process_time()
            for messages in given:
                fresh = messages if way == "settled again" else shed.parted(messages, 0.0)[0]
                if fresh:
                    changes = commit(store, fleet=FLEET, messages=fresh, rules=rules)
                    shed.learn(fresh, changes)
            if again := shed.take():
                assert way == "shed"
                commit(store, fleet=FLEET, messages=[], rules=rules, again=again)
            found[way] = (time.process_time() - begun) / (DEVICES * ROUNDS) * 1e6
        store.close()
    return found


if __name__ == "__main__":
    main()
