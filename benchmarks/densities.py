"""What a density shown to operators errs by, and what its bands hold, on laws unlike each other.

    python -m benchmarks.densities errors --out rows.csv [--seeds 10] [--data FOLDER] [--quick]
    python -m benchmarks.densities bands --out rows.csv [--seeds 400] [--size 256] [--epsilon 1] …

Independent survey reports (square wave) of the laws of `tests.edge_ldp.sums.laws`; with `--data`,
a folder with bms_pos_lengths.npz, the basket sizes of BMS-POS too. Seeded. `errors` prints W1
(Wasserstein distance, per cent of the mean) and KS (largest error of a share below, per cent) of
EMS, of the chooser `auto` and of EM; `bands` what 95 % bands held, in per cent, and their width.
"""

from __future__ import annotations

import argparse
import csv
import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp import SquareWave
from edge_ldp.estimate import auto, em, ems
from edge_ldp.estimate.density import edges_of
from edge_ldp.estimate.operator import operator_of
from edge_ldp.sums import CodeCounts, cdf_band, quantile_band, range_band, surveys_of
from tests.edge_ldp.sums.densities import COUNTS, laws

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from edge_ldp.estimate import Density

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Row = dict[str, str]

EPSILONS, REPORTS = (0.5, 1.0, 2.0), (65_536, 1_000_000)
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
SIZE = 1024
ESTIMATORS: dict[str, Callable[[SquareWave, Ints, int], Density]] = {
    "EMS": lambda mechanism, counts, _: ems(mechanism, counts),
    "auto": lambda mechanism, counts, seed: (
        auto(mechanism, counts, rng=np.random.default_rng(seed)).density
    ),
    "EM": lambda mechanism, counts, _: em(mechanism, counts),
}


class Truth:
    """A law over 0..len − 1, what surveys of it send, and what is true of it."""

    def __init__(self, law: Floats, epsilon: float, size: int) -> None:
        """Prepare surveys of `size` buckets."""
        self.high = len(law) - 1
        self.survey = SquareWave(epsilon=epsilon, low=0, high=self.high, size=min(size, len(law)))
        self.below = np.concatenate([[0.0], np.cumsum(law)])
        self.mean = float(law @ np.arange(len(law)))
        edges = edges_of(self.survey).astype(np.int64)
        codes = np.maximum(operator_of(self.survey).apply(np.diff(self.below[edges])), 0)
        self.codes = codes / codes.sum()

    def counts(self, n: int, seed: int) -> Ints:
        """Return the codes of n independent reports, counted."""
        return np.random.default_rng(seed).multinomial(n, self.codes)

    def quantile(self, share: float) -> int:
        """Return the least value with so much at or below it."""
        return int(np.searchsorted(self.below[1:], share))

    def share(self, first: int, beyond: int) -> float:
        """Return the share of the values first ≤ v < beyond."""
        return float(self.below[beyond] - self.below[first])


def errors(seeds: int, epsilons: Sequence[float], data: Path | None) -> Iterator[Row]:
    """Yield each estimator's W1 and KS on each fleet."""
    known = dict(laws())
    if data:
        lengths = np.load(data / "bms_pos_lengths.npz")["length"]
        known["BMS-POS"] = np.bincount(np.clip(lengths, 0, COUNTS)) / len(lengths)
    for (name, law), epsilon, n in product(known.items(), epsilons, REPORTS):
        truth = Truth(law, epsilon, SIZE)
        for seed, (how, estimator) in product(range(seeds), ESTIMATORS.items()):
            found = estimator(truth.survey, truth.counts(n, seed), seed)
            off = np.abs(found.cdf(np.arange(truth.high + 2)) - truth.below)
            key = {"law": name, "epsilon": f"{epsilon:g}", "reports": str(n), "what": how}
            yield key | {"seed": str(seed), **_in_percent(off.sum() / truth.mean, off.max())}


def bands(seeds: int, epsilons: Sequence[float], size: int) -> Iterator[Row]:
    """Yield for each fleet and kind of band what share of them held, and their mean width."""
    for (name, law), epsilon, n in product(laws().items(), epsilons, REPORTS):
        truth = Truth(law, epsilon, size)
        true = [truth.quantile(share) for share in SHARES]
        points = [true[1], true[2], true[4], truth.high // 7, truth.high // 2]
        starts = [true[1], true[3], truth.high // 100, truth.high // 4]
        ends = [true[3] + 1, true[5] + 1, truth.high // 20, truth.high // 2]
        shares = [truth.share(a, b) for a, b in zip(starts, ends, strict=True)]
        edges = edges_of(truth.survey).astype(np.int64)
        for seed in range(seeds):
            asked = surveys_of([CodeCounts(truth.survey, truth.counts(n, seed))])
            found = {
                "quantiles": (quantile_band(asked, SHARES), np.array(true, np.float64)),
                "shares below": (cdf_band(asked, points), truth.below[points]),
                "ranges": (range_band(asked, starts, ends), np.array(shares)),
                "cells": (range_band(asked, edges[:-1], edges[1:]), np.diff(truth.below[edges])),
            }
            for kind, (band, at) in found.items():
                held = (band.low <= at + 1e-12) & (at - 1e-12 <= band.high)
                scale = truth.mean if kind == "quantiles" else 1.0
                wide = float((band.high - band.low).mean()) / scale
                key = {"law": name, "epsilon": f"{epsilon:g}", "reports": str(n), "what": kind}
                yield key | {"seed": str(seed), **_in_percent(held.mean(), wide)}


def table(found: list[Row]) -> str:
    """Return the means as Markdown: a line a law, ε and reports, two columns for each of what."""
    whats = list(dict.fromkeys(row["what"] for row in found))
    lines = [["law", "ε", "reports", *whats], ["---"] * 3 + ["---:"] * len(whats)]
    cells: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for row in found:
        key = row["law"], row["epsilon"], row["reports"], row["what"]
        cells.setdefault(key, []).append((float(row["first"]), float(row["second"])))
    for law, epsilon, n in dict.fromkeys(key[:3] for key in cells):
        means = (np.mean(cells[law, epsilon, n, what], axis=0) for what in whats)
        lines.append([law, epsilon, f"{int(n):,}", *(f"{a:.1f} / {b:.1f}" for a, b in means)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _in_percent(first: float, second: float) -> Row:
    return {"first": f"{100 * first:.3f}", "second": f"{100 * second:.3f}"}


def main() -> None:
    """Measure, write the rows, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("errors", "bands"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, help="10 of errors, 400 of bands, unless given")
    parser.add_argument("--epsilon", type=float, action="append", help="0.5, 1 and 2 unless given")
    parser.add_argument("--size", type=int, default=256, help="buckets, of bands")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--quick", action="store_true", help="a seed of errors, 20 of bands")
    given = parser.parse_args()
    quick, usual = ((1, 10), (20, 400))[given.what == "bands"]
    seeds = given.seeds or (quick if given.quick else usual)
    epsilons = given.epsilon or EPSILONS
    if given.what == "errors":
        found = list(errors(seeds, epsilons, given.data))
    else:
        found = list(bands(seeds, epsilons, given.size))
    with given.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]))
        writer.writeheader()
        writer.writerows(found)
    sys.stdout.write(table(found) + "\n")


if __name__ == "__main__":
    main()
