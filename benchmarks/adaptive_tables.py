"""The tables of docs/adaptive-theta.md, from rows of `benchmarks.adaptive_theta` and by themselves.

    python -m benchmarks.adaptive_tables rows.csv … [--data DIR] [--limits] [--tuned pos,uci]
    python -m benchmarks.adaptive_tables rows.csv … --further
    python -m benchmarks.adaptive_tables --alarms N [--seed S] [--data DIR]

Of the rows: each part's median ratio, the worst seed in brackets. `--limits`: the mean excess
beside the least that information allows (`aggregator.adaptive.limit`), of the surveys asked.
`--further`: of the cells with more than 20 seeds, the median of the first 20, of the others, and of
all, with the interval that holds a law's own median in 95 % of such samples.
`--alarms N`: false alarms of the drift test in N looks at reports of an unchanged law. `--tuned`:
mechanism and θ chosen together, for some laws.
"""

from __future__ import annotations

import argparse
import csv
import sys
import zlib
from collections import Counter, defaultdict
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import binom

from aggregator.adaptive import Aim, Setting, State, first_survey, observe
from aggregator.adaptive.drift import surprise
from aggregator.adaptive.limit import excess
from aggregator.adaptive.mechanism import aim_of, choose_mechanism, tuned_for
from aggregator.adaptive.regret import costs_on
from aggregator.estimate.joint import cells, refined
from benchmarks.adaptive_theta import HORIZON, REPORTS, SEEDS, UNIT_VARIANCE
from benchmarks.adaptive_truth import truth
from edge_ldp import Hybrid, Tuned
from studies.theta.laws import HELD, MADE, OTHER, REAL, known

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

AIM = Aim(UNIT_VARIANCE, HORIZON)
EPSILONS = (0.2, 0.4, 0.6, 1.0, 1.6, 2.0)
TARGETS = dict(zip(EPSILONS, (4.0, 2.0, 1.3, 1.1, 1.1, 1.1), strict=True))
WHOLE = ("main", "streams")  # parts with a table of all laws
FACTORS = (2.0, 4.0)
SEEDS_OF_LIMITS = 2
Row = dict[str, str]


def by_run(rows: list[Row]) -> dict[tuple[str, str, float], dict[str, list[Row]]]:
    """Return each seed's rows of each part, law and ε, in order of epochs."""
    found: dict[tuple[str, str, float], dict[str, list[Row]]] = defaultdict(dict)
    for row in rows:
        key = (row["part"], row["law"], float(row["epsilon"]))
        found[key].setdefault(row["seed"], []).append(row)
    return found


def whole_table(rows: list[Row], part: str) -> Iterator[str]:
    """Yield a part's table of laws × ε after the last epoch; what misses is set in bold."""
    runs = by_run(rows)
    yield "| law | seeds | " + " | ".join(f"{e:g}" for e in EPSILONS) + " |"
    yield "| --- " * (2 + len(EPSILONS)) + "|"
    for law in REAL + OTHER + MADE + HELD:
        shown, seeds = [], set()
        for epsilon in EPSILONS:
            ratios = [float(run[-1]["ratio"]) for run in runs[part, law, epsilon].values()]
            if not ratios:
                shown.append("–")
                continue
            seeds.add(len(ratios))
            worst, target = max(ratios), TARGETS[epsilon]
            one = _middle(ratios, target)
            shown.append(one + (f" (**{worst:.2f}**)" if worst > 2 * target else f" ({worst:.2f})"))
        if seeds:
            number = f"{min(seeds)}–{max(seeds)}" if len(seeds) > 1 else f"{min(seeds)}"
            yield f"| {law} | {number} | " + " | ".join(shown) + " |"


def further_table(rows: list[Row]) -> Iterator[str]:
    """Yield a line for each cell of the main part that has more than SEEDS seeds."""
    shares = "within T, % | above 2·T, %"
    yield f"| law | ε | T | first {SEEDS} seeds | the others | all (95 %) | {shares} |"
    yield "| --- " * 8 + "|"
    for (part, law, epsilon), seeds in sorted(by_run(rows).items()):
        if part != "main" or len(seeds) <= SEEDS:
            continue
        found = {int(seed): float(run[-1]["ratio"]) for seed, run in seeds.items()}
        ratios, target = np.sort(list(found.values())), TARGETS[epsilon]
        first = [ratio for seed, ratio in found.items() if seed < SEEDS]
        others = [ratio for seed, ratio in found.items() if seed >= SEEDS]
        below = int(binom.ppf(0.025, len(ratios), 0.5)) - 1  # that many on either side, or more
        yield (
            f"| {law} | {epsilon:g} | {target:g} "
            f"| {_middle(first, target)} | {_middle(others, target)} "
            f"| {_middle(ratios, target)} ({ratios[below]:.2f} to {ratios[-1 - below]:.2f}) "
            f"| {100 * np.mean(ratios <= target):.0f} | {100 * np.mean(ratios > 2 * target):.0f} |"
        )


def _middle(ratios: Sequence[float] | Floats, target: float) -> str:
    """Return the median, bold if it misses."""
    middle = float(np.median(ratios))
    return f"**{middle:.2f}**" if middle > target else f"{middle:.2f}"


def part_tables(rows: list[Row]) -> Iterator[str]:
    """Yield a line for each part but WHOLE: the median, and the worst seed, after each epoch."""
    for (part, law, epsilon), seeds in sorted(by_run(rows).items()):
        if part in WHOLE or not seeds:
            continue
        by_epoch: dict[int, list[float]] = defaultdict(list)
        for row in (row for run in seeds.values() for row in run):
            if row["ratio"] != "nan":
                by_epoch[int(row["epoch"])].append(float(row["ratio"]))
        shown = (f"{np.median(x):.2f} ({max(x):.2f})" for _, x in sorted(by_epoch.items()))
        yield f"| {part} | {law} | {epsilon:g} | {len(seeds)} | " + " | ".join(shown) + " |"


def alarms_in(rows: list[Row]) -> str:
    """Return how often the alarm rang in all looks of the main part, where nothing changes."""
    looks = [row for row in rows if row["part"] == "main" and row["epoch"] != "1"]
    return f"main part: {sum(row['shifted'] == '1' for row in looks)} alarms in {len(looks)} looks"


def fine(law: Floats) -> tuple[Ints, Floats]:
    """Return cells fit for a law, and its masses in them."""
    edges = cells(0, len(law) - 1)
    while True:
        masses = np.add.reduceat(law, edges[:-1])
        finer = refined(edges, masses)
        if len(finer) == len(edges):
            return edges, masses
        edges = finer


def limit_table(rows: list[Row], laws: dict[str, Floats]) -> Iterator[str]:
    """Yield for each law and ε the mean excess measured and the bounds for two doubts, in %."""
    runs = by_run(rows)
    yield "| law | " + " | ".join(f"{e:g}" for e in EPSILONS) + " |"
    yield "| --- " * (1 + len(EPSILONS)) + "|"
    for name in (name for name in REAL + OTHER + MADE + HELD if name in laws):
        if not any(runs["main", name, epsilon] for epsilon in EPSILONS):
            continue
        shown = []
        edges, masses = fine(laws[name])
        for epsilon in EPSILONS:
            found = runs["main", name, epsilon]
            setting = Setting(0, len(laws[name]) - 1, epsilon, AIM, REPORTS, 256)
            bounds = np.zeros(len(FACTORS))
            asked = list(found.values())[:SEEDS_OF_LIMITS]
            for run, (k, factor) in product(asked, enumerate(FACTORS)):
                surveys = [
                    (setting.survey(int(row["low"]), int(row["high"])), REPORTS) for row in run
                ]
                rng, doubt = np.random.default_rng(0), float(np.log(factor))
                least = excess(masses, edges, AIM, surveys, rng=rng, doubt=doubt)
                bounds[k] += 100 * least / len(asked)
            mean = 100 * np.mean([float(run[-1]["ratio"]) - 1 for run in found.values()] or [0.0])
            shown.append(f"{mean:.0f} · " + ", ".join(f"{bound:.1f}" for bound in bounds))
        yield f"| {name} | " + " | ".join(shown) + " |"


def false_alarms(laws: dict[str, Floats], looks: int, seed: int) -> str:
    """Return the drift test's alarms at several levels in sequences of five surveys each."""
    chances: list[float] = []
    rng = np.random.default_rng(seed)
    names = sorted(laws)
    while len(chances) < looks:
        name = names[int(rng.integers(len(names)))]
        law, epsilon = laws[name], float(rng.choice(EPSILONS))
        top, now = len(law) - 1, truth(law, AIM)
        best = int(now.costs.argmin()) + 1
        setting = Setting(0, top, epsilon, AIM, REPORTS, 256)
        edges, _ = fine(law)
        old = [now.counts(first_survey(setting), REPORTS, rng)]
        for _ in range(4):
            high = min(top, max(8, int(best * 2 ** rng.uniform(-1, 2))))
            low = high // 8 * int(rng.choice((0, 1, 2, 4)))
            new = [now.counts(setting.survey(low, high), REPORTS, rng)]
            chances.append(surprise(old, new, edges))
            old += new
    found = np.array(chances)
    levels = ", ".join(f"{(found < p).sum()} below {p:g}" for p in (1e-4, 1e-3, 1e-2, 0.05))
    return f"random surveys: {len(found)} looks, {levels}"


def tuned_table(laws: dict[str, Floats], epsilon: float, seeds: int) -> Iterator[str]:
    """Yield the cost of mechanisms, each at its θ chosen after five surveys, over HM's best.

    The median of the seeds, and the worst.
    """
    kinds = ("hybrid", "table", "own table", "chosen one")
    yield f"| law | chosen, of {seeds} | " + " | ".join(kinds) + " |"
    yield "| --- " * (2 + len(kinds)) + "|"
    for name, law in laws.items():
        runs = [tuned(law, epsilon, [zlib.crc32(name.encode()), seed]) for seed in range(seeds)]
        named = Counter(chosen for chosen, _ in runs).most_common()
        costs = np.array([found for _, found in runs])
        shown = [f"{np.median(x):.2f} ({x.max():.2f})" for x in costs.T]
        told = ", ".join(f"{kind} {count}" for kind, count in named)
        yield f"| {name} | {told} | " + " | ".join(shown) + " |"


def tuned(law: Floats, epsilon: float, seed: list[int]) -> tuple[str, list[float]]:
    """Return the mechanism chosen, and the costs of each and of it, over the hybrid's best."""
    now, setting = truth(law, AIM), Setting(0, len(law) - 1, epsilon, AIM, REPORTS, 256)
    rng = np.random.default_rng(seed)
    first = [now.counts(first_survey(setting), REPORTS, rng)]
    state, decision = observe(setting, State(), first, rng=rng)
    for _ in range(4):
        survey = setting.survey(decision.survey.low, decision.survey.high)
        state, decision = observe(setting, state, [now.counts(survey, REPORTS, rng)], rng=rng)
    aims = {
        "hybrid": aim_of(Hybrid(epsilon=1, low=0, high=4096), HORIZON),
        "table": aim_of(Tuned(epsilon=1, low=0, high=4096), HORIZON),
        "own table": aim_of(scaled_up(tuned_for(state, decision.theta, 1)), HORIZON),
    }
    edges = cells(0, len(law) - 1, per_octave=24)
    masses = np.add.reduceat(law, edges[:-1])
    least = costs_on(edges, aims["hybrid"]).of(masses).min()

    def price(kind: str, theta: int) -> float:
        costs = costs_on(edges, aims[kind])
        return float(np.interp(theta, costs.thetas, costs.of(masses)) / least)

    alone = [price(kind, choose_mechanism(state, {kind: aims[kind]}).theta) for kind in aims]
    chosen = choose_mechanism(state, aims)
    return chosen.name, [*alone, price(chosen.name, chosen.theta)]


def scaled_up(mechanism: Tuned) -> Tuned:
    """Return the same table over a range wide enough for a profile."""
    return Tuned.of(mechanism.response, low=0, high=4096)


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path, nargs="*")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--limits", action="store_true")
    parser.add_argument("--further", action="store_true")
    parser.add_argument("--alarms", type=int, default=0)
    parser.add_argument("--seed", type=int, default=20, help="of --alarms")
    parser.add_argument("--tuned", default="", help="laws, with commas between")
    parser.add_argument("--seeds", type=int, default=5, help="of --tuned")
    given = parser.parse_args()
    laws = known(given.data)
    rows = [row for path in given.rows for row in csv.DictReader(path.open())]
    parts = [part for part in WHOLE if any(row["part"] == part for row in rows)]
    lines = [line for part in parts for line in (part, "", *whole_table(rows, part), "")]
    lines = [*lines, *part_tables(rows), "", alarms_in(rows)] if rows else []
    lines += further_table(rows) if given.further else []
    lines += limit_table(rows, laws) if given.limits else []
    lines += [false_alarms(laws, given.alarms, given.seed)] if given.alarms else []
    asked = {name: laws[name] for name in given.tuned.split(",") if name}
    lines += tuned_table(asked, 1.0, given.seeds) if asked else []
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
