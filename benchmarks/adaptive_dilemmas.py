"""Where the targets of adaptive θ are out of reach together, beside what ours does.

    python -m benchmarks.adaptive_dilemmas rows.csv … [--data DIR] [--out runs.csv] [--seeds 20]
    python -m benchmarks.adaptive_dilemmas rows.csv … [--data DIR] --worst
    python -m benchmarks.adaptive_dilemmas [--data DIR]

The targets ask on every law for a median of 20 seeds within `TARGETS`, and for no seed above twice
that. The first: of each law and ε in rows of `benchmarks.adaptive_theta` whose median misses, in
how many runs ours was within the target; in how many any rule can be that is above twice the target
in so few runs on a rival that 20 have an even chance of none (`aggregator.adaptive.dilemma`); and
how often ours is above it there. Started again, it goes on where it stopped. The second: of each
law and ε with a seed above twice the target, how often ours is, how often any rule must be whose
median on a rival is within the target, and how far off one run in 20 of such a rule must be. In
both the last column asks nothing else of the rule: how often any is above, over the law and rivals
taken equally often (`aggregator.adaptive.rivals`). The third, for all laws: the share of the first
and that of the second.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from aggregator.adaptive.dilemma import Dilemma, dilemma, none_of
from aggregator.adaptive.rivals import unmet
from benchmarks.adaptive_rivals import WORDS, evened, ground_of, ratios_on
from benchmarks.adaptive_tables import EPSILONS, TARGETS, by_run, fine
from benchmarks.adaptive_theta import EPOCHS, REPORTS, SEEDS
from studies.theta.laws import HELD, MADE, OTHER, REAL, known

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from aggregator.adaptive.rivals import Ground

    Floats = NDArray[np.float64]

SURVEYED = EPOCHS * REPORTS
HALF = 0.5
ONE_IN_20 = 0.05
FARTHEST, CLOSE = 1000.0, 0.01  # factors of the least cost looked through, and how closely
AVERAGE = "any rule, on average over law and rivals: above it, at least % (about)"
HEADS = (
    "law",
    "ε",
    "median; target",
    "within it: ours, %",
    "any rule, at most % (about)",
    "rival",
    "ours on it above twice the target, %",
    AVERAGE,
)
WORST_HEADS = (
    "law",
    "ε",
    "worst; twice the target",
    "above it: ours, %",
    "any rule, at least % (about)",
    "rival",
    "one run in 20 of ours above",
    "of any rule, at least (about)",
    AVERAGE,
)


def median(ground: Ground, target: float) -> Dilemma:
    """Return what keeps the median on a law from its target: no bad seed on a rival."""
    return dilemma(ground, SURVEYED, target, 2 * target, none_of(SEEDS))


def worst(ground: Ground, target: float) -> Dilemma:
    """Return what keeps the worst seed on a law from its target: a good median on a rival."""
    return above(ground, 2 * target, target)


def above(ground: Ground, factor: float, target: float) -> Dilemma:
    """Return what puts runs on a law above a factor of the least cost: a good median on a rival."""
    return dilemma(ground, SURVEYED, factor, target, HALF)


def one_in_20(ground: Ground, target: float, *, sure: bool) -> float:
    """Return the factor that a twentieth of any rule's runs on a law must exceed, to 1 %.

    Of rules whose median on a rival is within the target; surely, or about. Twice the target where
    a twentieth need not even be above that.
    """
    low, high = 2 * target, FARTHEST
    while high / low > 1 + CLOSE:
        middle = (low * high) ** 0.5
        found = above(ground, middle, target)
        if 1 - (found.sure if sure else found.likely) >= ONE_IN_20:
            low = middle
        else:
            high = middle
    return low


def missed(
    rows: list[dict[str, str]], laws: dict[str, Floats], seeds: int, out: Path
) -> Iterator[str]:
    """Yield the table of the medians that miss."""
    yield "| " + " | ".join(HEADS) + " |"
    yield "| --- " * len(HEADS) + "|"
    for name, epsilon, own in _measured(rows, laws):
        target, law = TARGETS[epsilon], laws[name]
        if np.median(own) <= target:
            continue
        ground = ground_of(law, epsilon)
        found = median(ground, target)
        rival = evened(found.rival.masses, fine(law)[0])
        there = ratios_on(rival, f"{name} rival", epsilon, seeds, out)
        cells = (
            name,
            f"{epsilon:g}",
            f"{np.median(own):.2f}; {target:g}",
            f"{100 * np.mean(own <= target):.0f}",
            f"{100 * found.sure:.0f} ({100 * found.likely:.0f})",
            WORDS[found.rival.kind].format(found.rival),
            f"{100 * np.mean(there > 2 * target):.0f}",
            _on_average(ground, target),
        )
        yield "| " + " | ".join(cells) + " |"


def worsts(rows: list[dict[str, str]], laws: dict[str, Floats]) -> Iterator[str]:
    """Yield the table of the laws and ε with a seed above twice the target."""
    yield "| " + " | ".join(WORST_HEADS) + " |"
    yield "| --- " * len(WORST_HEADS) + "|"
    for name, epsilon, own in _measured(rows, laws):
        target = TARGETS[epsilon]
        if own.max() <= 2 * target:
            continue
        ground = ground_of(laws[name], epsilon)
        found = worst(ground, target)
        least, about = (one_in_20(ground, target, sure=sure) for sure in (True, False))
        cells = (
            name,
            f"{epsilon:g}",
            f"{own.max():.1f}; {2 * target:g}",
            f"{100 * np.mean(own > 2 * target):.0f}",
            f"{100 - 100 * found.sure:.0f} ({100 - 100 * found.likely:.0f})",
            WORDS[found.rival.kind].format(found.rival),
            f"{np.quantile(own, 1 - ONE_IN_20, method='inverted_cdf'):.1f}",
            f"{least:.1f} ({about:.1f})",
            _on_average(ground, 2 * target),
        )
        yield "| " + " | ".join(cells) + " |"


def _on_average(ground: Ground, factor: float) -> str:
    """Return how often any rule is above a factor, over the law and rivals taken equally often."""
    found = unmet(ground, SURVEYED, factor)
    return f"{100 * found.sure:.0f} ({100 * found.likely:.0f})"


def _measured(
    rows: list[dict[str, str]], laws: dict[str, Floats]
) -> Iterator[tuple[str, float, Floats]]:
    """Yield each law and ε that was measured, and the ratios of its runs."""
    runs = by_run(rows)
    for name in (name for name in REAL + MADE + HELD + OTHER if name in laws):
        for epsilon in TARGETS:
            own = [float(one[-1]["ratio"]) for one in runs["main", name, epsilon].values()]
            if own:
                yield name, epsilon, np.array(own)


def everywhere(laws: dict[str, Floats]) -> Iterator[str]:
    """Yield a table of all laws for each of the two, and in how many cells the target is missed."""
    yield "within the target: at most % (about)"
    yield from _table(laws, median, lambda share: share, lambda share: share < HALF)
    yield "above twice the target: at least % (about)"
    yield from _table(
        laws, worst, lambda share: 1 - share, lambda share: 1 - share > none_of(SEEDS)
    )


def _table(
    laws: dict[str, Floats],
    asked: Callable[[Ground, float], Dilemma],
    shown: Callable[[float], float],
    is_missed: Callable[[float], bool],
) -> Iterator[str]:
    yield "| law | " + " | ".join(f"{e:g}" for e in EPSILONS) + " |"
    yield "| --- " * (1 + len(EPSILONS)) + "|"
    out_of_reach = np.zeros((2, len(EPSILONS)), int)
    for name, law in laws.items():
        found = [asked(ground_of(law, e), TARGETS[e])[:2] for e in EPSILONS]
        out_of_reach += np.array([[is_missed(share) for share in pair] for pair in found]).T
        cells = [f"{100 * shown(sure):.0f} ({100 * shown(likely):.0f})" for sure, likely in found]
        yield f"| {name} | " + " | ".join(cells) + " |"
    counts = [f"{sure} ({likely}) of {len(laws)}" for sure, likely in out_of_reach.T]
    yield "| out of reach | " + " | ".join(counts) + " |"


def main() -> None:
    """Print what is asked for, line by line as it is found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path, nargs="*")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("dilemmas.csv"))
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of ours on each rival")
    parser.add_argument("--worst", action="store_true", help="the worst seeds, not the medians")
    given = parser.parse_args()
    if given.worst and not given.rows:
        parser.error("--worst: of which rows.csv?")
    laws = known(given.data)
    rows = [row for path in given.rows for row in csv.DictReader(path.open())]
    lines = worsts(rows, laws) if given.worst else missed(rows, laws, given.seeds, given.out)
    for line in lines if rows else everywhere(laws):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
