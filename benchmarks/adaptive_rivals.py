"""What no rule can do, beside what ours does: the limits of docs/adaptive-theta.md.

    python -m benchmarks.adaptive_rivals rows.csv … [--data DIR] [--picture FILE.png]
    python -m benchmarks.adaptive_rivals --run pos:0.2:8,two:1:1.1 --out rivals.csv [--data DIR]
    python -m benchmarks.adaptive_rivals --bound uci:1:1.1:3 [--data DIR]

The first: from rows of `benchmarks.adaptive_theta`, the ratio of cost to least cost, median and
worst seed, beside the ratios below which no rule can stay (`aggregator.adaptive.rivals`): so that
half of its runs, or one in twenty, are above them on average over the law and its rivals. The
second: our rule on the law and on each of its rivals (law:ε:factor), and how often it is above the
factor beside how often any rule must be; started again, it goes on where it stopped. The third:
how often any rule must be above a factor after so many surveys (law:ε:factor:surveys).
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from aggregator.adaptive import Setting
from aggregator.adaptive.nearest import LESS, MORE
from aggregator.adaptive.rivals import Ground, Limits, every_survey, limits_of, unmet
from benchmarks.adaptive_tables import AIM, EPSILONS, TARGETS, by_run, fine
from benchmarks.adaptive_theta import EPOCHS, FIELDS, REPORTS, run
from benchmarks.adaptive_truth import truth
from studies.theta.laws import HELD, MADE, OTHER, REAL, known

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

WORDS = {
    "itself": "itself",
    MORE: "θ above {0.at}, {0.share:.2g} of it elsewhere",
    LESS: "θ below {0.at}, {0.share:.2g} of it elsewhere",
}


class Cell(NamedTuple):
    """One law and ε: every seed's ratio, and the factors that no rule keeps below."""

    law: str
    epsilon: float
    ratios: list[float]
    limits: Limits


def setting_of(law: Floats, epsilon: float) -> Setting:
    """Return the setting of the main experiment."""
    return Setting(0, len(law) - 1, epsilon, AIM, REPORTS, 256)


def ground_of(law: Floats, epsilon: float) -> Ground:
    """Return what surveys tell of a law and its rivals in the main experiment."""
    edges, masses = fine(law)
    return Ground.of(masses, edges, AIM, every_survey(setting_of(law, epsilon)))


def cells_of(rows: list[dict[str, str]], laws: dict[str, Floats]) -> Iterator[Cell]:
    """Yield what the main experiment measured, and the limits."""
    runs = by_run(rows)
    for name in (name for name in REAL + OTHER + MADE + HELD if name in laws):
        for epsilon in EPSILONS:
            ratios = [float(one[-1]["ratio"]) for one in runs["main", name, epsilon].values()]
            if not ratios:
                continue
            ground = ground_of(laws[name], epsilon)
            yield Cell(name, epsilon, ratios, limits_of(ground, EPOCHS * REPORTS))


def table(cells: list[Cell]) -> Iterator[str]:
    """Yield the table: median / its limit, about · worst / its limit."""
    yield "| law | " + " | ".join(f"{e:g}" for e in EPSILONS) + " |"
    yield "| --- " * (1 + len(EPSILONS)) + "|"
    by_law: dict[str, dict[float, Cell]] = defaultdict(dict)
    for cell in cells:
        by_law[cell.law][cell.epsilon] = cell
    for law, found in by_law.items():
        shown = [
            f"{np.median(c.ratios):.2f} / {c.limits.half:.2f}, {c.limits.about:.2f}"
            f" · {max(c.ratios):.1f} / {c.limits.one_in_20:.1f}"
            if (c := found.get(epsilon))
            else "–"
            for epsilon in EPSILONS
        ]
        yield f"| {law} | " + " | ".join(shown) + " |"


def picture(cells: list[Cell], path: Path) -> None:
    """Draw every run's ratio with targets and limits: a panel for each ε."""
    from matplotlib import pyplot as plt  # noqa: PLC0415 (the tables do without it)

    figure, panels = plt.subplots(len(EPSILONS), 1, figsize=(8, 13), sharex=True)
    names = list(dict.fromkeys(cell.law for cell in cells))
    for panel, epsilon in zip(panels, EPSILONS, strict=True):
        target = TARGETS[epsilon]
        panel.axhline(target, color="tab:green", lw=1, label="target: median")
        panel.axhline(2 * target, color="tab:green", lw=1, ls="--", label="target: worst seed")
        for at, cell in enumerate(cell for cell in cells if cell.epsilon == epsilon):
            own = sorted(cell.ratios)
            spread = at + np.linspace(-0.25, 0.25, len(own))
            ends = {"xmin": at - 0.35, "xmax": at + 0.35}
            told = (lambda text: text) if at == 0 else (lambda _: None)
            panel.scatter(spread, own, s=8, color="tab:blue", alpha=0.6, label=told("runs"))
            panel.hlines(np.median(own), **ends, color="tab:blue", label=told("their median"))
            panel.hlines(cell.limits.half, **ends, color="tab:red", label=told("any rule: median"))
            rare = told("any rule: 1 run in 20 above")
            panel.hlines(cell.limits.one_in_20, **ends, color="tab:red", ls=":", label=rare)
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter("{x:g}")
        panel.yaxis.set_minor_formatter("")
        panel.set_ylabel(f"ε = {epsilon:g}")
    panels[0].legend(ncols=3, fontsize=8, loc="lower left", bbox_to_anchor=(0, 1.02))
    panels[0].set_title("cost of θ / least cost, five surveys of 65,536 reports", pad=48)
    panels[-1].set_xticks(range(len(names)), names, rotation=30)
    figure.tight_layout()
    figure.savefig(path, dpi=90)


def evened(masses: Floats, edges: Ints) -> Floats:
    """Return a law over integers from the masses of its cells."""
    widths = np.diff(edges).astype(int)
    return np.repeat(masses / widths, widths)


def run_cases(cases: str, laws: dict[str, Floats], out: Path, seeds: int) -> Iterator[str]:
    """Run our rule on each case's laws; yield the table of bad choices, ours and any rule's."""
    yield "| law | ε | factor | laws | any rule: at least, % | ours, % | on each, in order |"
    yield "| --- " * 7 + "|"
    for name, epsilon, factor in (case.split(":") for case in cases.split(",")):
        law = laws[name]
        found = unmet(ground_of(law, float(epsilon)), EPOCHS * REPORTS, float(factor))
        bad, shares = list[str](), list[float]()
        for k, other in enumerate(found.laws):
            masses, label = evened(other.masses, fine(law)[0]), f"{name} {factor} {k}"
            ratios = ratios_on(masses, label, float(epsilon), seeds, out)
            shares.append(100 * float(np.mean(ratios > float(factor))))
            bad.append(f"{WORDS[other.kind].format(other)}: {shares[-1]:.0f}")
        limit = f"{100 * found.sure:.0f} (about {100 * found.likely:.0f})"
        mean, told = f"{np.mean(shares):.0f}", "; ".join(bad)
        yield f"| {name} | {epsilon} | {factor} | {len(shares)} | {limit} | {mean} | {told} |"


def bounds(cases: str, laws: dict[str, Floats]) -> Iterator[str]:
    """Yield what no rule can do after so many surveys."""
    for case in cases.split(","):
        name, epsilon, factor, surveys = case.split(":")
        found = unmet(ground_of(laws[name], float(epsilon)), int(surveys) * REPORTS, float(factor))
        shares = f"{100 * found.sure:.1f} % (about {100 * found.likely:.1f} %)"
        yield f"{name}, ε {epsilon}, {surveys} surveys: above {factor} in at least {shares} of runs"


def ratios_on(law: Floats, label: str, epsilon: float, seeds: int, out: Path) -> Floats:
    """Return each seed's ratio of our rule on a law; what `out` does not have yet is run first."""
    now, done = truth(law, AIM), by_run(_rows(out))["rivals", label, epsilon]
    for seed in (seed for seed in range(seeds) if str(seed) not in done):
        key: dict[str, object] = {"part": "rivals", "law": label, "epsilon": epsilon, "seed": seed}
        _append(out, list(run(setting_of(law, epsilon), [now] * EPOCHS, key)))
    found = by_run(_rows(out))["rivals", label, epsilon]
    return np.array([float(found[str(seed)][-1]["ratio"]) for seed in range(seeds)])


def _append(out: Path, rows: list[dict[str, object]]) -> None:
    with out.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not file.tell():
            writer.writeheader()
        writer.writerows(rows)


def _rows(out: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(out.open())) if out.exists() else []


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path, nargs="*")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--run", default="", help="law:ε:factor, with commas between")
    parser.add_argument("--bound", default="", help="law:ε:factor:surveys, with commas between")
    parser.add_argument("--out", type=Path, default=Path("rivals.csv"))
    parser.add_argument("--seeds", type=int, default=10, help="of --run")
    given = parser.parse_args()
    laws = known(given.data)
    rows = [row for path in given.rows for row in csv.DictReader(path.open())]
    cells = list(cells_of(rows, laws)) if rows else []
    if given.picture:
        picture(cells, given.picture)
    lines = list(table(cells)) if cells else []
    lines += run_cases(given.run, laws, given.out, given.seeds) if given.run else []
    lines += bounds(given.bound, laws) if given.bound else []
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
