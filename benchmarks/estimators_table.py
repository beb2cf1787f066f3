"""One table of all estimators: the error each leaves, and its CPU time.

    python -m benchmarks.estimators_table --out rows.csv [--seeds 10] [--quick]

Drawing the reports is not in the time. Seeded; prints the tables of docs/results.md.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING

from benchmarks.estimators import DENSITIES, ESTIMATORS, Fleet, truth
from studies.evaluate import ks, mean_error, range_error, w1

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from edge_ldp.estimate import Density
    from studies.evaluate import Masses

EPSILONS = (0.5, 1.0, 2.0)
SEEDS = 10
METRICS: dict[str, Callable[[Density, Density | Masses], float]] = {
    "W1": w1,
    "KS": ks,
    "range 0.1": partial(range_error, alpha=0.1),
    "mean": mean_error,
}
FIELDS = ["density", "epsilon", "estimator", "seed", *METRICS, "cpu_ms"]


def rows(seeds: int, epsilons: tuple[float, ...]) -> Iterator[dict[str, str]]:
    """Yield the errors and the time of each estimate; the first of each kind warms caches up."""
    for name, how in product(DENSITIES, ESTIMATORS):
        ESTIMATORS[how](Fleet(name))()
        for epsilon, seed in product(epsilons, range(seeds)):
            estimate = ESTIMATORS[how](Fleet(name, epsilon, seed))
            start = time.process_time()
            found = estimate()
            cpu_ms = (time.process_time() - start) * 1000
            errors = {label: f"{of(truth(name), found):.6f}" for label, of in METRICS.items()}
            key = {"density": name, "epsilon": f"{epsilon:g}", "estimator": how, "seed": str(seed)}
            yield key | errors | {"cpu_ms": f"{cpu_ms:.3f}"}


def table(found: list[dict[str, str]], name: str) -> str:
    """Return the Markdown table of one density: mean errors in 10⁻⁴, one figure an ε."""
    head = ["estimator", *METRICS, "CPU, ms"]
    lines = [head, ["---"] * len(head)]
    for how in ESTIMATORS:
        mine = [row for row in found if (row["density"], row["estimator"]) == (name, how)]
        errors = [
            " / ".join(f"{1e4 * fmean(of):.0f}" for of in by_epsilon(mine, metric))
            for metric in METRICS
        ]
        times = " / ".join(f"{median(of):.1f}" for of in by_epsilon(mine, "cpu_ms"))
        lines.append([how, *errors, times])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def standard_errors(found: list[dict[str, str]]) -> str:
    """Return how far the means of each metric may be off, relative: the median over all cells."""
    told = []
    for metric in METRICS:
        shares = []
        for name, how in product(DENSITIES, ESTIMATORS):
            mine = [row for row in found if (row["density"], row["estimator"]) == (name, how)]
            shares += [stdev(of) / len(of) ** 0.5 / fmean(of) for of in by_epsilon(mine, metric)]
        told.append(f"{metric} {median(shares):.0%}")
    return "standard errors of the means, median: " + ", ".join(told)


def by_epsilon(mine: list[dict[str, str]], field: str) -> list[list[float]]:
    """Return a field's figures over seeds, one list an ε, in the rows' order."""
    epsilons = dict.fromkeys(row["epsilon"] for row in mine)
    return [[float(row[field]) for row in mine if row["epsilon"] == each] for each in epsilons]


def main() -> None:
    """Measure everything, write the rows, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--quick", action="store_true", help="2 seeds, ε = 1")
    given = parser.parse_args()
    seeds, epsilons = (2, (1.0,)) if given.quick else (given.seeds, EPSILONS)
    found = list(rows(seeds, epsilons))
    with given.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(found)
    for name in DENSITIES:
        sys.stdout.write(f"\n{name}\n\n{table(found, name)}\n")
    sys.stdout.write(f"\n{standard_errors(found)}\n")


if __name__ == "__main__":
    main()
