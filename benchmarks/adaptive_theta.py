"""Adaptive θ against the best possible θ: the experiment behind docs/adaptive-theta.md.

    python -m benchmarks.adaptive_theta --data DIR --out rows.csv [--part main] [--quick]

Every run is seeded and its rows are appended when it is done: started again, it goes on where it
stopped. Counts are drawn from the exact law of the codes under a data set's histogram, as that is
what independent reports give. Without --data only the synthetic laws run. The last lines of output
are a JSON summary of all rows in the file.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import zlib
from dataclasses import dataclass
from math import ceil, log2
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from aggregator.adaptive import Aim, Setting, State, first_survey, observe
from aggregator.adaptive.cold import widened
from aggregator.adaptive.limit import excess
from aggregator.adaptive.shape import UNTILS, Prior, Shape
from aggregator.estimate.joint import Evidence, cells, view_of
from edge_ldp import Hybrid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike, NDArray

    from edge_ldp import Mechanism

    Floats = NDArray[np.float64]

HORIZON, REPORTS, EPOCHS = 2**20, 65_536, 5
UNIT_VARIANCE = Hybrid(epsilon=1, low=0, high=1000).unit_variance
EPSILONS = (1.0, 0.2, 2.0, 0.6, 0.4)
TARGETS = {0.2: 4.0, 0.4: 2.0, 0.6: 1.3, 1.0: 1.1, 2.0: 1.1}
REAL = ("pos", "retail", "webview", "taxi", "uci", "swiss")
MADE = ("lognormal", "weibull", "pareto", "two", "spiky", "narrow")
FIELDS = ["part", "law", "epsilon", "seed", "epoch", "low", "high", "theta", "ratio", "regret"]
FIELDS += ["surprise", "shifted", "left"]
Row = dict[str, object]


def real(folder: Path) -> dict[str, Floats]:
    """Return the histograms over 0..B of the bundled data sets."""
    taxi = np.load(folder / "papers/nyc_yellow_taxi_2018_2019.npz")["fare_cents"]
    watts = np.load(folder / "load/uci_household_1min_2006_2009.npz")["active_w"]
    homes = np.load(folder / "load/swiss_homes_15min.npz")["energy_milliwh"].astype(np.int64)
    return {
        "pos": _counted(np.load(folder / "papers/bms_pos_lengths.npz")["length"], 1657),
        "retail": _counted(np.load(folder / "papers/retail_be_lengths.npz")["length"], 16_470),
        "webview": _counted(np.load(folder / "papers/bms_webview2_lengths.npz")["length"], 1610),
        "taxi": _counted(taxi[(taxi > 0) & (taxi <= 50_000)], 50_000),  # no refunds, no $429,490
        "uci": _counted(watts[watts >= 0], 20_000),
        "swiss": _counted((homes.ravel() * 4 + 500) // 1000, 43_470),  # mWh a quarter hour to W
    }


def made() -> dict[str, Floats]:
    """Return histograms of laws that nothing was tuned to."""
    gauss, gamma = stats.norm(200, 60).sf, stats.gamma(9, scale=150).sf
    spiky = 0.1 * _cut(stats.expon(scale=400).sf, 6000)
    for value, mass in ((0, 30), (50, 30), (230, 20), (1000, 15), (2000, 4.9), (3200, 0.1)):
        spiky[value] += 0.9 * mass / 100
    return {
        "lognormal": _cut(stats.lognorm(0.8, scale=300).sf, 20_000),
        "weibull": _cut(stats.weibull_min(1.5, scale=120).sf, 4000),
        "pareto": _cut(lambda at: (1 + np.maximum(at, 0) / 100) ** -3.0, 30_000),
        "two": 0.9 * _cut(gauss, 10_000) + 0.1 * _cut(gamma, 10_000),
        "spiky": spiky,
        "narrow": _cut(stats.norm(900, 40).sf, 4000),
    }


def _counted(values: ArrayLike, ceiling: int) -> Floats:
    clamped = np.clip(np.asarray(values).astype(np.int64), 0, ceiling)
    counts = np.bincount(clamped, minlength=ceiling + 1).astype(np.float64)
    return np.asarray(counts / counts.sum())


def _cut(survival: Callable[[Floats], Floats], ceiling: int) -> Floats:
    above = np.array(survival(np.arange(ceiling + 2, dtype=np.float64) - 0.5), np.float64)
    above[0], above[-1] = 1, 0
    return np.asarray(-np.diff(above))


@dataclass(frozen=True)
class Truth:
    """A law over the integers low..low + len(law) − 1, and what every θ costs under it."""

    law: Floats
    low: int
    costs: Floats

    def ratio(self, theta: int) -> float:
        """Return the cost of θ over the least cost."""
        return float(self.costs[min(theta - self.low, len(self.costs)) - 1] / self.costs.min())

    def counts(self, mechanism: Mechanism, reports: int, rng: np.random.Generator) -> Evidence:
        """Return the counts of independent reports, drawn from the exact law of the codes."""
        edges = np.arange(self.low, self.low + len(self.law) + 1)
        law = view_of(mechanism, edges).apply(self.law)
        return Evidence(mechanism, rng.multinomial(reports, law / law.sum()))

    def scaled(self, factor: int, aim: Aim) -> Truth:
        """Return the truth with all values `factor` times as large, clamped to the ceiling."""
        law = np.zeros_like(self.law)
        np.add.at(law, np.minimum(np.arange(len(law)) * factor, len(law) - 1), self.law)
        return truth(law, aim, self.low)


def truth(law: Floats, aim: Aim, low: int = 0) -> Truth:
    """Return the costs of θ = low + 1, low + 2, …, exactly (DESIGN §7)."""
    at = np.arange(len(law)) + float(low)
    above = np.append(np.cumsum(law[::-1])[::-1][1:], 0)  # share of the values above each
    bias = np.cumsum(above[::-1])[::-1]
    square = np.cumsum(law * at * at) + above * at * at
    r, share = float(aim.horizon), aim.inclusion
    noise = aim.unit_variance * ((at - low) / 2) ** 2 / share + (1 - share) / share * square
    return Truth(law, low, (r / 3 * noise + r * r / 6 * bias**2)[1:])


def run(setting: Setting, truths: list[Truth], key: Row, streams: int = 0) -> Iterator[Row]:
    """Yield a row an epoch; `streams`: hybrid reports at ε = 1 beside each later survey."""
    seed = [zlib.crc32(str(key["law"]).encode()), int(str(key["seed"]))]
    rng, own = np.random.default_rng(seed), np.random.default_rng([*seed, 1])
    state, mechanism, theta = State(), first_survey(setting), 0
    for epoch, now in enumerate(truths, start=1):
        reports = [now.counts(mechanism, REPORTS, rng)]
        if streams and epoch > 1:
            hybrid = Hybrid(epsilon=1, low=setting.low, high=theta)
            reports.append(now.counts(hybrid, streams, rng))
        state, decision = observe(setting, state, reports, rng=own)
        theta = decision.theta
        yield key | {
            "epoch": epoch,
            "low": mechanism.low,
            "high": mechanism.high,
            "theta": theta,
            "ratio": round(now.ratio(theta), 4),
            "regret": round(decision.regret, 4),
            "surprise": f"{decision.surprise:.3g}",
            "shifted": int(decision.shifted),
            "left": round(decision.survey.left, 3),
        }
        mechanism = setting.survey(decision.survey.low, decision.survey.high)
        if key["part"] == "rule":
            mechanism = ruled(setting, theta)


def ruled(setting: Setting, theta: int) -> Mechanism:
    """Return the survey that the older rule would ask for: up to the power of two above 2.2·θ."""
    span = 1 << ceil(log2(2.2 * (theta - setting.low)))
    return setting.survey(setting.low, min(setting.low + span, setting.ceiling))


def runs(part: str, law: Floats, key: Row) -> Iterator[Row]:
    """Yield the rows of one seed of one part of the experiment."""
    aim = Aim(UNIT_VARIANCE, HORIZON, 0.5 if part == "half" else 1.0)
    low = -2000 if part == "low" else 0
    now = truth(law, aim, low)
    setting = Setting(low, low + len(law) - 1, float(str(key["epsilon"])), aim, REPORTS, 256)
    if part in ("up", "down"):
        truths = [now] * EPOCHS + [now.scaled(3, aim)] * 3
        if part == "down":
            truths = [now.scaled(3, aim)] * EPOCHS + [now] * 3
        yield from run(setting, truths, key)
    elif part == "cold":
        yield from cold(setting, now, key)
    else:
        yield from run(setting, [now] * EPOCHS, key, 15 * REPORTS if part == "streams" else 0)


def cold(setting: Setting, now: Truth, key: Row) -> Iterator[Row]:
    """Start with a ceiling of 4 units; then as in `run` with what was found."""
    rng, own = (np.random.default_rng([int(str(key["seed"])), k]) for k in (5, 6))
    setting = Setting(0, 4, setting.epsilon, setting.aim, setting.reports, setting.size)
    evidence, found, epoch, row = list[Evidence](), False, 0, Row()
    while not found:
        evidence.append(now.counts(first_survey(setting), REPORTS, rng))
        setting, found = widened(setting, evidence)
        epoch += 1
        row = {"epoch": epoch, "low": 0, "high": evidence[-1].mechanism.high, "theta": 0}
        if not found:
            yield key | row | {"ratio": "nan"}
    new, state = evidence, State()
    while epoch <= 2 * EPOCHS:
        state, decision = observe(setting, state, new, rng=own)
        mechanism = setting.survey(decision.survey.low, decision.survey.high)
        yield key | row | {"theta": decision.theta, "ratio": round(now.ratio(decision.theta), 4)}
        new, epoch = [now.counts(mechanism, REPORTS, rng)], epoch + 1
        row = {"epoch": epoch, "low": mechanism.low, "high": mechanism.high}


def limits(rows: list[Row], laws: dict[str, Floats]) -> dict[str, list[float]]:
    """Return per law and ε the relative excess that information allows (aggregator/adaptive/limit).

    Of the surveys of seed 0's run; with the shape known within half octaves, within octaves, and
    with the density only known to be smooth.
    """
    found: dict[str, list[float]] = {}
    aim = Aim(UNIT_VARIANCE, HORIZON)
    for name, law in laws.items():
        edges = cells(0, len(law) - 1)
        masses = np.add.reduceat(law, edges[:-1])
        for epsilon in EPSILONS:
            setting = Setting(0, len(law) - 1, epsilon, aim, REPORTS, 256)
            surveys = [
                (setting.survey(int(str(row["low"])), int(str(row["high"]))), float(REPORTS))
                for row in rows
                if [row["part"], row["law"], row["seed"]] == ["main", name, "0"]
                and float(str(row["epsilon"])) == epsilon
            ]
            if surveys:
                away = (edges[:-1] + edges[1:] - 1) / 2
                below = np.cumsum(masses)
                points = {u: float(away[np.searchsorted(below, u)]) for u in UNTILS}
                smooth = Prior(edges, float(masses @ away), points).of(Shape(0.5, 0.5, 15, 1, 0))
                known = [excess(masses, edges, aim, surveys, block=block) for block in (4, 8)]
                known.append(excess(masses, edges, aim, surveys, prior=smooth.precision))
                found[f"{name} {epsilon}"] = [round(x, 3) for x in known]
    return found


def summary(rows: list[Row]) -> dict[str, str]:
    """Return the median and the largest ratio of each part, law, ε after each epoch."""
    groups: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        group = groups.setdefault(f"{row['part']} {row['law']} {row['epsilon']}", {})
        group.setdefault(int(str(row["epoch"])), []).append(float(str(row["ratio"])))
    return {
        name: f"n={len(next(iter(g.values())))} median "
        + " ".join(f"{np.nanmedian(v):.2f}" for v in g.values())
        + f" max {max(g[max(g)]):.2f}"
        for name, g in groups.items()
    }


def main() -> None:
    """Run what is missing, then print the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--part", default="main")
    parser.add_argument("--laws", default=",".join(REAL + MADE))
    parser.add_argument("--epsilons", default=",".join(map(str, EPSILONS)))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--from-seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="3 seeds, ε = 1 and 0.2")
    parser.add_argument("--limits", action="store_true", help="add the information limits")
    given = parser.parse_args()
    laws = (real(given.data) if given.data else {}) | made()
    epsilons = [1.0, 0.2] if given.quick else [float(e) for e in given.epsilons.split(",")]
    rows = list(csv.DictReader(given.out.open())) if given.out.exists() else []
    done = {(r["part"], r["law"], float(r["epsilon"]), int(r["seed"])) for r in rows}
    for seed in range(given.from_seed, 3 if given.quick else given.seeds):
        for name in (name for name in given.laws.split(",") if name in laws):
            for epsilon in epsilons:
                if (given.part, name, epsilon, seed) in done:
                    continue
                key = {"part": given.part, "law": name, "epsilon": epsilon, "seed": seed}
                new = list(runs(given.part, laws[name], key))
                with given.out.open("a", newline="") as file:
                    writer = csv.DictWriter(file, FIELDS)
                    if not file.tell():
                        writer.writeheader()
                    writer.writerows(new)
    rows = list(csv.DictReader(given.out.open()))
    out: dict[str, object] = {"cost over the best": summary(rows)}
    if given.limits:
        out["limits"] = limits(rows, laws)
    sys.stdout.write(json.dumps(out, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
