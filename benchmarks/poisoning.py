"""What the alarm and the filter make of liars: seeded runs, a table, CSV and JSON.

    python -m benchmarks.poisoning [--seeds 10] [--csv FILE] [--json FILE] [--quick]

Means are on [−1, 1] (half a range is 1), against the same honest reports without the liars. `mean`
is of decoded reports, `density` the mean of the density by accelerated EMS.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linprog

from aggregator.counting.code_sets import watch_mechanism
from aggregator.counting.watching import observe_flush
from edge_ldp import Hybrid, Mechanism, SquareWave
from edge_ldp.estimate import ems
from edge_ldp.estimate.operator import operator_of
from edge_ldp.mechanisms import Tuned
from edge_ldp.poisoning.alarm import alarm
from edge_ldp.poisoning.filter import clean
from edge_ldp.vectorized import decode_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Row = dict[str, str | float]

N = 65_536
EPSILONS = ("0.5", "1", "2", "4")
SHARES = (0.01, 0.05, 0.1)
DEVICES, RATE = 10**6, 1e-6
FLEET_REPORTS = 100_000  # of one device at most, until it counts as never marked


def mechanisms() -> Iterator[tuple[str, str, Mechanism]]:
    """Yield (name, ε, mechanism) on a range of 0..1,048,575."""
    high = (1 << 20) - 1
    for epsilon in EPSILONS:
        yield "HM d=256", epsilon, Hybrid(epsilon=epsilon, low=0, high=high, size=256)
        yield "SW d=1024", epsilon, SquareWave(epsilon=epsilon, low=0, high=high, size=1024)
        yield "tuned, 16 codes", epsilon, Tuned(epsilon=epsilon, low=0, high=high)


def honest_law(mechanism: Mechanism) -> Floats:
    """Law of the codes of values from Beta(2, 5)."""
    operator = operator_of(mechanism)
    u = (np.arange(operator.inputs) + 0.5) / operator.inputs
    x = u * (1 - u) ** 4
    law = operator.apply(x / x.sum()).copy()
    return np.asarray(law / law.sum())


def attacks(mechanism: Mechanism) -> dict[str, Floats]:
    """Return each attack's law of codes, all of them to push the mean up.

    point: the highest code; spread: evenly over the highest sixteenth of the possible codes;
    imitation: evenly over the codes that the highest value makes likelier than the least likely;
    input: the protocol, with the highest value.
    """
    possible = np.flatnonzero(operator_of(mechanism).possible)
    rising = possible[np.argsort(decode_table(mechanism)[possible], kind="stable")]
    follows = np.array([float(p) for p in mechanism.probabilities(mechanism.high)])
    likely = possible[follows[possible] > 1.01 * follows[possible].min()]
    return {
        "point": _evenly(mechanism, rising[-1:]),
        "spread": _evenly(mechanism, rising[-max(1, len(rising) // 16) :]),
        "imitation": _evenly(mechanism, likely),
        "input": follows / follows.sum(),
    }


def run(mechanism: Mechanism, liars: Floats, share: float, seed: int) -> Row:
    """Return the figures of one crowd."""
    rng = np.random.default_rng(seed)
    count = round(share * N)
    honest = rng.multinomial(N - count, honest_law(mechanism)).astype(float)
    counts = honest + rng.multinomial(count, liars)
    start = time.process_time()
    verdict = alarm(mechanism, counts, rng=rng)
    found = clean(mechanism, counts, verdict)
    seconds = time.process_time() - start
    decoded, half = decode_table(mechanism), (mechanism.high - mechanism.low) / 2
    truth = honest @ decoded / honest.sum()
    density = ems(mechanism, honest, accelerate=True).mean()
    return {
        "rings": float(verdict.rings),
        "share": found.share,
        "mean_before": (counts @ decoded / N - truth) / half,
        "mean_after": (found.mean - truth) / half,
        "density_before": (ems(mechanism, counts, accelerate=True).mean() - density) / half,
        "density_after": (found.density.mean() - density) / half,
        "seconds": seconds,
    }


def measured(seeds: int, *, quick: bool) -> Iterator[Row]:
    """Yield one row for each mechanism, attack and share: medians and spread over the seeds."""
    for name, epsilon, mechanism in mechanisms():
        laws = attacks(mechanism)
        cases = [("none", 0.0), *((attack, share) for attack in laws for share in SHARES)]
        for attack, share in cases[:: 4 if quick else 1]:
            liars = laws.get(attack, laws["input"])
            runs = [run(mechanism, liars, share, seed) for seed in range(seeds)]
            row: Row = {"mechanism": name, "epsilon": epsilon, "attack": attack, "liars": share}
            for key in runs[0]:
                figures = np.array([one[key] for one in runs], dtype=float)
                row[key] = float(figures.mean() if key == "rings" else np.median(figures))
                row[f"{key}_sd"] = float(figures.std())
            yield row


def limits() -> Iterator[Row]:
    """Yield what one device can do: influence, its long-run mean unmarked, reports until marked."""
    for name, epsilon, mechanism in mechanisms():
        row: Row = {"mechanism": name, "epsilon": epsilon, "influence": mechanism.influence}
        row["unmarked_mean"] = _unmarked_mean(mechanism)
        for attack, law in attacks(mechanism).items():
            row[f"{attack}_reports"] = _until_marked(mechanism, law)
        yield row


def _evenly(mechanism: Mechanism, codes: NDArray[np.intp]) -> Floats:
    law = np.zeros(mechanism.code_count)
    law[codes] = 1 / len(codes)
    return law


def _unmarked_mean(mechanism: Mechanism) -> float:
    """Return the largest mean of decoded reports, on [−1, 1], within the bounds of all sets."""
    watch = watch_mechanism(mechanism)
    span = mechanism.high - mechanism.low
    decoded = 2 * (decode_table(mechanism) - mechanism.low) / span - 1
    inside = np.zeros((len(watch.tails), mechanism.code_count))
    for levels, (first, stop) in zip((watch.highest, watch.lowest), watch.rows, strict=True):
        for tail in range(first, stop):
            inside[tail] = levels <= tail
    best = linprog(
        -decoded,
        A_ub=inside,
        b_ub=watch.tails,
        A_eq=np.ones((1, len(decoded))),
        b_eq=[1],
        bounds=list(zip(np.zeros(len(decoded)), watch.codes, strict=True)),
    )
    return float(-best.fun)


def _until_marked(mechanism: Mechanism, law: Floats) -> float:
    """Return how many reports, in frames of 8, mark such a device among a million; inf: never."""
    rng, watch = np.random.default_rng(0), watch_mechanism(mechanism)
    kept: list[bytes | None] = [None]
    for reports in range(8, FLEET_REPORTS + 1, 8):
        codes = rng.choice(len(law), 8, p=law)
        found, marks = observe_flush(
            watch, kept, np.zeros(8, np.int64), codes, rate=RATE, devices=DEVICES
        )
        if marks:
            return float(reports)
        kept = [*found]
    return float("inf")


def _line(row: Row) -> str:
    cells = [one if isinstance(one, str) else f"{one:.4g}" for one in row.values()]
    return "| " + " | ".join(cells) + " |\n"


def _show(title: str, rows: Iterator[Row]) -> list[Row]:
    kept: list[Row] = []
    sys.stdout.write(f"\n{title}\n\n")
    for row in rows:
        if not kept:
            sys.stdout.write("| " + " | ".join(row) + " |\n" + "| --- " * len(row) + "|\n")
        kept.append(row)
        sys.stdout.write(_line(row))
        sys.stdout.flush()
    return kept


def main() -> None:
    """Run both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="every fourth case only")
    given = parser.parse_args()
    devices = _show("One device", limits())
    crowds = _show(f"Crowds of {N} reports", measured(given.seeds, quick=given.quick))
    if given.csv:
        with given.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(crowds[0]))
            writer.writeheader()
            writer.writerows(crowds)
    if given.json:
        finite = [{k: None if v == float("inf") else v for k, v in row.items()} for row in devices]
        made = {"reports": N, "seeds": given.seeds, "crowds": crowds, "devices": finite}
        given.json.write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
