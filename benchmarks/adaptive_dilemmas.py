"""Where the targets of adaptive θ are out of reach together, beside what ours does.

    python -m benchmarks.adaptive_dilemmas rows.csv … [--data DIR] [--out runs.csv] [--seeds 20]
    python -m benchmarks.adaptive_dilemmas [--data DIR]

The targets ask on every law for a median of 20 seeds within `TARGETS`, and for no seed above twice
that. The first: of each law and ε in rows of `benchmarks.adaptive_theta` whose median misses, in
how many runs ours was within the target; in how many any rule can be that is above twice the target
in so few runs on a rival that 20 have an even chance of none (`aggregator.adaptive.dilemma`); and
how often ours is above it there. Started again, it goes on where it stopped. The second, for all
laws: that share of any rule, and the share of its runs on the law that must be above twice the
target where its median on a rival is within it.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from aggregator.adaptive.dilemma import Dilemma, dilemma, none_of
from benchmarks.adaptive_laws import HELD, MADE, OTHER, REAL, known
from benchmarks.adaptive_rivals import WORDS, evened, ground_of, ratios_on
from benchmarks.adaptive_tables import EPSILONS, TARGETS, by_run, fine
from benchmarks.adaptive_theta import EPOCHS, REPORTS, SEEDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SURVEYED = EPOCHS * REPORTS
HALF = 0.5
HEADS = (
    "law",
    "ε",
    "median; target",
    "within it: ours, %",
    "any rule, at most % (about)",
    "rival",
    "ours on it above twice the target, %",
)


def median(law: Floats, epsilon: float) -> Dilemma:
    """Return what keeps the median on a law from its target: no bad seed on a rival."""
    target = TARGETS[epsilon]
    return dilemma(ground_of(law, epsilon), SURVEYED, target, 2 * target, none_of(SEEDS))


def worst(law: Floats, epsilon: float) -> Dilemma:
    """Return what keeps the worst seed on a law from its target: a good median on a rival."""
    target = TARGETS[epsilon]
    return dilemma(ground_of(law, epsilon), SURVEYED, 2 * target, target, HALF)


def missed(
    rows: list[dict[str, str]], laws: dict[str, Floats], seeds: int, out: Path
) -> Iterator[str]:
    """Yield the table of the medians that miss."""
    yield "| " + " | ".join(HEADS) + " |"
    yield "| --- " * len(HEADS) + "|"
    runs = by_run(rows)
    for name in (name for name in REAL + MADE + HELD + OTHER if name in laws):
        for epsilon, target in TARGETS.items():
            own = [float(one[-1]["ratio"]) for one in runs["main", name, epsilon].values()]
            if not own or np.median(own) <= target:
                continue
            found, law = median(laws[name], epsilon), laws[name]
            rival = evened(found.rival.masses, fine(law)[0])
            there = ratios_on(rival, f"{name} rival", epsilon, seeds, out)
            cells = (
                name,
                f"{epsilon:g}",
                f"{np.median(own):.2f}; {target:g}",
                f"{100 * np.mean(np.array(own) <= target):.0f}",
                f"{100 * found.sure:.0f} ({100 * found.likely:.0f})",
                WORDS[found.rival.kind].format(found.rival),
                f"{100 * np.mean(there > 2 * target):.0f}",
            )
            yield "| " + " | ".join(cells) + " |"


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
    asked: Callable[[Floats, float], Dilemma],
    shown: Callable[[float], float],
    is_missed: Callable[[float], bool],
) -> Iterator[str]:
    yield "| law | " + " | ".join(f"{e:g}" for e in EPSILONS) + " |"
    yield "| --- " * (1 + len(EPSILONS)) + "|"
    out_of_reach = np.zeros((2, len(EPSILONS)), int)
    for name, law in laws.items():
        found = [asked(law, epsilon)[:2] for epsilon in EPSILONS]
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
    given = parser.parse_args()
    laws = known(given.data)
    rows = [row for path in given.rows for row in csv.DictReader(path.open())]
    for line in missed(rows, laws, given.seeds, given.out) if rows else everywhere(laws):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
