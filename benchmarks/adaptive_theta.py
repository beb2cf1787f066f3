"""Adaptive θ against the best possible θ: the experiment behind docs/adaptive-theta.md.

    python -m benchmarks.adaptive_theta --data DIR --out rows.csv [--part main] [--quick]

Every run is seeded and its rows are appended when it is done: started again, it goes on where it
stopped. `benchmarks.adaptive_tables` makes the tables of the document from the rows.
Parts: main; up, down (readings times 3, or a third, after epoch 5); cold (no ceiling known); below
(low 2000 below the values); half (inclusion 1/2); clamped (0.3 % of the readings are the ceiling);
corrected (sums corrected for truncation); with "watched " before it, as in "watched down",
`Setting.watch` is on, and with " streams" behind it there are stream reports beside the surveys
(streams: as main). Counts are drawn from the exact law of the codes under a data set's histogram,
as that is what independent reports give. Laws: real, made, held or other
(`studies.theta.laws`); without --data only the made-up ones run. The last lines of output are
a JSON summary of all rows in the file.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from aggregator.adaptive import Aim, Setting, State, first_survey, observe
from aggregator.adaptive.cold import widened
from aggregator.adaptive.correction import corrected
from aggregator.estimate.joint import Evidence
from benchmarks.adaptive_truth import truth
from edge_ldp import Hybrid
from studies.theta.laws import SETS, known, named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from benchmarks.adaptive_truth import Truth

    Floats = NDArray[np.float64]

HORIZON, REPORTS, EPOCHS = 2**20, 65_536, 5
SEEDS = 20  # that the targets are stated for
UNIT_VARIANCE = Hybrid(epsilon=1, low=0, high=1000).unit_variance
BELOW = 2000
CLAMPED = 0.003
EPSILONS = (1.0, 0.2, 2.0, 0.6, 0.4, 1.6)
FIELDS = ["part", "law", "epsilon", "seed", "epoch", "low", "high", "theta", "ratio", "regret"]
FIELDS += ["surprise", "shifted", "left"]
Row = dict[str, object]


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
        theta, ratio = decision.theta, now.ratio(decision.theta)
        if str(key["part"]).startswith("corrected"):
            found = corrected(setting, state)
            theta, ratio = found.theta, now.ratio(found.theta, found.bias)
        yield key | {
            "epoch": epoch,
            "low": mechanism.low,
            "high": mechanism.high,
            "theta": theta,
            "ratio": round(ratio, 4),
            "regret": round(decision.regret, 4),
            "surprise": f"{decision.surprise:.3g}",
            "shifted": int(decision.shifted),
            "left": round(decision.survey.left, 3),
        }
        mechanism = setting.survey(decision.survey.low, decision.survey.high)


def runs(part: str, law: Floats, key: Row) -> Iterator[Row]:
    """Yield the rows of one seed of one part of the experiment."""
    aim = Aim(UNIT_VARIANCE, HORIZON, 0.5 if part == "half" else 1.0)
    low = -BELOW if part == "below" else 0
    law = np.append(np.zeros(-low), law)
    if part == "clamped":
        law = (1 - CLAMPED) * law
        law[-1] += CLAMPED
    now = truth(law, aim, low)
    setting = Setting(low, low + len(law) - 1, float(str(key["epsilon"])), aim, REPORTS, 256)
    setting = replace(setting, watch=part.startswith("watched"))
    streams = 15 * REPORTS if part.endswith("streams") else 0
    part = part.removeprefix("watched ").removesuffix(" streams")
    if part in ("up", "down"):
        truths = [now] * EPOCHS + [now.scaled(3, aim)] * 3
        if part == "down":
            truths = [now.scaled(3, aim)] * EPOCHS + [now] * 3
        yield from run(setting, truths, key, streams)
    elif part == "cold":
        yield from cold(setting, now, key)
    else:
        yield from run(setting, [now] * EPOCHS, key, streams)


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
    parser.add_argument("--laws", default="real,made,held", help="or other, or single laws")
    parser.add_argument("--epsilons", default=",".join(map(str, EPSILONS)))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--from-seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="3 seeds, ε = 1 and 0.2")
    given = parser.parse_args()
    laws, asked = known(given.data), named(given.laws)
    if missing := set(asked) - {*laws, *(law for names in SETS.values() for law in names)}:
        parser.error(
            f"--laws: no {', '.join(sorted(missing))}; there are {', '.join(SETS)} and theirs"
        )
    epsilons = [1.0, 0.2] if given.quick else [float(e) for e in given.epsilons.split(",")]
    rows = list(csv.DictReader(given.out.open())) if given.out.exists() else []
    done = {(r["part"], r["law"], float(r["epsilon"]), int(r["seed"])) for r in rows}
    for seed in range(given.from_seed, 3 if given.quick else given.seeds):
        for name in (name for name in asked if name in laws):
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
    out = {"cost over the best": summary(rows)}
    sys.stdout.write(json.dumps(out, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
