"""What 95 % bands hold: mean, quantiles, shares below, ranges and single cells, in simulation.

    python -m benchmarks.coverage --out rows.csv [--seeds 200] [--size 256] [--quick]

65,536 square-wave reports of each of three densities (`benchmarks.estimators`, on `size` cells);
bands of 50 resamples each, as coverage needs fleets more than resamples. Seeded; prints the table
of docs/results.md: share of the runs whose band holds the truth, in per cent.
"""

from __future__ import annotations

import argparse
import csv
import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from aggregator.estimate import bands
from aggregator.estimate.density import density, edges_of
from aggregator.estimate.model import model_of
from benchmarks.estimators import DENSITIES, SIZE, TOP, N, values
from edge_ldp import SquareWave

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from aggregator.estimate import Density
    from aggregator.estimate.bands import Band, Bands

EPSILONS = (0.5, 1.0, 2.0)
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
RESAMPLES = 50
HEAVY = 1 / 4  # of an even share: no band of an empty cell can miss it, as none falls below 0


def held(found: Bands, true: Density) -> dict[str, float]:
    """Return the share of each kind's intervals that hold the truth, 0..1."""
    at = [true.quantile(share) for share in SHARES]
    ranges = [(at[0], at[2]), (at[2], at[4])]
    cells = _holds(found.density(), true.probabilities)
    return {
        "mean": _inside(found.mean(), true.mean()),
        **{
            f"quantile {share:.0%}": _inside(found.quantiles([share]), true.quantile(share))
            for share in SHARES
        },
        "shares below": _inside(found.cdf(at), true.cdf(at)),
        "ranges": float(np.mean([_inside(found.range(*r), true.range(*r)) for r in ranges])),
        "cells": float(cells.mean()),
        "cells with mass": float(cells[true.probabilities > HEAVY / len(cells)].mean()),
    }


def rows(seeds: int, epsilons: tuple[float, ...], size: int) -> Iterator[dict[str, str]]:
    """Yield what the bands of each fleet held."""
    for name, epsilon in product(DENSITIES, epsilons):
        survey = SquareWave(epsilon=epsilon, low=0, high=TOP - 1, size=size)
        counts = np.bincount(values(name) * size // SIZE, minlength=size)
        true, model = density(counts / N, edges_of(survey)), model_of(survey)
        law = model.operator.apply(true.probabilities)
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            drawn = rng.multinomial(N, law / law.sum())
            shares = held(bands(model, drawn, rng=rng, resamples=RESAMPLES), true)
            key = {"density": name, "epsilon": f"{epsilon:g}", "seed": str(seed)}
            yield key | {kind: f"{share:.4f}" for kind, share in shares.items()}


def table(found: list[dict[str, str]]) -> str:
    """Return the Markdown table: a line a density and ε, a column a kind of band."""
    kinds = list(found[0])[3:]
    lines = [["density", "ε", *kinds], ["---"] * (len(kinds) + 2)]
    for name, epsilon in dict.fromkeys((row["density"], row["epsilon"]) for row in found):
        mine = [r for r in found if (r["density"], r["epsilon"]) == (name, epsilon)]
        means = (100 * np.mean([float(row[kind]) for row in mine]) for kind in kinds)
        lines.append([name, epsilon, *(f"{mean:.1f}" for mean in means)])
    total = (100 * np.mean([float(row[kind]) for row in found]) for kind in kinds)
    lines.append(["all", "", *(f"{mean:.1f}" for mean in total)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _inside(band: Band, truth: ArrayLike) -> float:
    return float(_holds(band, truth).mean())


def _holds(band: Band, truth: ArrayLike) -> NDArray[np.bool_]:
    true = np.asarray(truth, dtype=np.float64)
    return (band.low <= true) & (true <= band.high)


def main() -> None:
    """Measure, write the rows, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--quick", action="store_true", help="20 seeds, ε = 1")
    given = parser.parse_args()
    seeds, epsilons = (20, (1.0,)) if given.quick else (given.seeds, EPSILONS)
    found = list(rows(seeds, epsilons, given.size))
    with given.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]))
        writer.writeheader()
        writer.writerows(found)
    sys.stdout.write(table(found) + "\n")


if __name__ == "__main__":
    main()
