"""Estimate anew from the reports of recorded runs: what a change of the posterior does to θ.

    python -m benchmarks.adaptive_replay rows.csv … [--data DIR] [--seeds 0,1] [--bad]

A row of `benchmarks.adaptive_theta` names the survey that was asked, and the reports are seeded: so
the very reports of a run, whatever code made the rows, are drawn again, and θ after the last epoch
is chosen from them with the code as it is now. The later surveys are still those that the older
code asked for. `--bad`: only runs whose recorded ratio is above twice the target.
"""

from __future__ import annotations

import argparse
import csv
import sys
import zlib
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from aggregator.adaptive import Setting, State, observe
from benchmarks.adaptive_tables import AIM, TARGETS, Row, by_run
from benchmarks.adaptive_theta import REPORTS
from benchmarks.adaptive_truth import truth
from studies.theta.laws import known

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from aggregator.estimate.joint import Evidence

    Floats = NDArray[np.float64]


def again(law: Floats, name: str, epsilon: float, run: list[Row]) -> tuple[float, float]:
    """Return the ratio that a run ended with, and the one that its reports give now."""
    now, setting = truth(law, AIM), Setting(0, len(law) - 1, epsilon, AIM, REPORTS, 256)
    rng = np.random.default_rng([zlib.crc32(name.encode()), int(run[0]["seed"])])
    evidence: list[Evidence] = []
    for row in run:
        if row["shifted"] == "1":
            evidence = []
        mechanism = setting.survey(int(row["low"]), int(row["high"]))
        evidence.append(now.counts(mechanism, REPORTS, rng))
    _, decision = observe(setting, State(), evidence, rng=np.random.default_rng(0))
    return float(run[-1]["ratio"]), now.ratio(decision.theta)


def lines(rows: list[Row], laws: dict[str, Floats], seeds: set[str], *, bad: bool) -> Iterator[str]:
    """Yield a line a run, then law by law the mean ln ratio and the median, then and now."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for (part, law, epsilon), runs in sorted(by_run(rows).items()):
        for seed, run in runs.items():
            missed = float(run[-1]["ratio"]) > 2 * TARGETS.get(epsilon, np.inf)
            if part != "main" or law not in laws or (seeds and seed not in seeds):
                continue
            if bad and not missed:
                continue
            pair = again(laws[law], law, epsilon, run)
            found[law].append(pair)
            yield f"{law} {epsilon:g} seed {seed}: {pair[0]:.2f} then, {pair[1]:.2f} now"
    for law, pairs in found.items():
        (old, new), (was, after) = np.log(pairs).mean(axis=0), np.median(pairs, axis=0)
        yield (
            f"{law}: {len(pairs)} runs, mean ln {old:.3f} then, {new:.3f} now,"
            f" median {was:.2f} then, {after:.2f} now"
        )


def main() -> None:
    """Replay what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path, nargs="+")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", default="", help="with commas between; all unless given")
    parser.add_argument("--bad", action="store_true")
    given = parser.parse_args()
    laws = known(given.data)
    rows = [row for path in given.rows for row in csv.DictReader(path.open())]
    seeds = {seed for seed in given.seeds.split(",") if seed}
    for line in lines(rows, laws, seeds, bad=given.bad):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
