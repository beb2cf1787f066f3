"""θ never jumps: what `edge_ldp.threshold.choice` costs over the least, survey by survey.

    python -m studies.theta.jumps --data DIR --out rows.csv

Real sets below their ceiling, and below ceilings 10 and 100 times as high; 131,072 reports an
epoch, divided into surveys and stream reports by the choice before (the first epoch, and every one
where there are no stream reports: 65,536 surveys). Cost: the square of the half-width that θ and
share really print, over the least of all; beside it, for information, the papers' cost of a range
sum of 2^20 values. Every run is seeded and its rows are appended
when it is done.
"""

from __future__ import annotations

import argparse
import csv
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.threshold.choice import Choice, outlook
from studies.evaluate.report import markdown_table
from studies.theta.laws import known, named
from studies.theta.world import World, stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from edge_ldp import Mechanism

    Floats = NDArray[np.float64]
    Row = dict[str, object]
    Cell = tuple[str, int, bool]

TIMES = (1, 10, 100)
REPORTS, EPOCHS, FROM = 131_072, 5, 3


def run(world: World, seed: list[int], *, streams: bool) -> Iterator[tuple[int, Choice]]:
    """Yield the choices from the third survey on."""
    rng, own = np.random.default_rng(seed), np.random.default_rng([*seed, 1])
    counts: dict[Mechanism, Floats] = {}
    chosen: Choice | None = None
    for epoch in range(1, EPOCHS + 1):
        share = chosen.share if chosen and streams else 0.5
        _add(counts, world, world.survey, round(REPORTS * share), rng)
        if chosen and streams:
            sums = stream(world.epsilon, chosen.theta)
            _add(counts, world, sums, round(REPORTS * (1 - share)), rng)
        if streams or epoch >= FROM:
            chosen = outlook(world.aim, counts, own).best()
        if chosen and epoch >= FROM:
            yield epoch, chosen


def _add(
    counts: dict[Mechanism, Floats],
    world: World,
    mechanism: Mechanism,
    reports: int,
    rng: np.random.Generator,
) -> None:
    counts[mechanism] = counts.get(mechanism, 0) + world.counts(mechanism, reports, rng)


def study(world: World, cell: Cell, seeds: list[int]) -> Iterator[list[Row]]:
    """Yield the rows of each seed."""
    name, times, streams = cell
    for seed in seeds:
        start = [zlib.crc32(name.encode()), times, seed]
        yield [
            {
                "law": name,
                "times": times,
                "streams": int(streams),
                "epsilon": world.epsilon,
                "seed": seed,
                "epoch": epoch,
                "theta": chosen.theta,
                "share": chosen.share,
                "cost": round(world.printed(chosen.theta, chosen.share) ** 2, 3),
                "papers": round(world.papers(chosen.theta), 2),
            }
            for epoch, chosen in run(world, start, streams=streams)
        ]


def cell_of(row: dict[str, str]) -> Cell:
    return row["law"], int(row["times"]), row["streams"] == "1"


def by_cell(rows: list[dict[str, str]]) -> Iterator[Row]:
    """Yield each cell's worst and median cost over seeds and epochs, for each ε."""
    found: dict[tuple[float, Cell], list[dict[str, str]]] = {}
    for row in rows:
        found.setdefault((float(row["epsilon"]), cell_of(row)), []).append(row)
    for (epsilon, (name, times, streams)), own in found.items():
        cost, papers = ([float(row[kind]) for row in own] for kind in ("cost", "papers"))
        yield {
            "data": name,
            "ceiling": f"×{times}",
            "surveyed": "with stream reports" if streams else "surveys alone",
            "epsilon": f"{epsilon:g}",
            "runs": len({row["seed"] for row in own}),
            "cost_worst": f"{max(cost):.2f}",
            "cost_median": f"{np.median(cost):.2f}",
            "papers_cost_median": f"{np.median(papers):.1f}",
            "papers_cost_worst": f"{max(papers):.0f}",
        }


def verdict(rows: list[dict[str, str]]) -> str:
    """Return how many runs there are of each ε, and the worst of them."""
    lines = []
    for epsilon in sorted({float(row["epsilon"]) for row in rows}):
        own = [row for row in rows if float(row["epsilon"]) == epsilon]
        worst = max(own, key=lambda row: float(row["cost"]))
        told = f"{worst['law']} ×{worst['times']}, " + ("with" if worst["streams"] == "1" else "no")
        cost, papers = ([float(row[kind]) for row in own] for kind in ("cost", "papers"))
        lines.append(
            (
                f"{epsilon:g}",
                str(len({cell_of(row) for row in own})),
                str(len({(*cell_of(row), row["seed"]) for row in own})),
                f"{np.median(cost):.2f}",
                f"{max(cost):.2f}",
                f"{told} streams, survey {worst['epoch']}, θ = {worst['theta']}",
                f"{np.median(papers):.1f}",
                f"{max(papers):.0f}",
            )
        )
    head = ("ε", "cells", "runs", "median", "worst", "where")
    return markdown_table((*head, "papers' median", "worst"), lines)


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows there are."""
    return list(csv.DictReader(path.open())) if path.exists() else []


def append(path: Path, found: list[Row]) -> None:
    """Append the rows of a run, all of the same fields."""
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
        if not file.tell():
            writer.writeheader()
        writer.writerows(found)


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--laws", default="real,other", help="sets of laws, or single ones")
    parser.add_argument("--epsilons", default="1")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--cells", type=Path, help="a new table of the cells, in CSV")
    given = parser.parse_args()
    laws = known(given.data)
    done = {(*cell_of(row), float(row["epsilon"]), int(row["seed"])) for row in read(given.out)}
    for name in [name for name in named(given.laws) if name in laws]:
        for times in TIMES:
            cells = [(name, times, streams) for streams in (True, False)]
            for epsilon in (float(e) for e in given.epsilons.split(",")):
                world = World(laws[name], (len(laws[name]) - 1) * times, epsilon)
                for cell in cells:
                    seeds = [s for s in range(given.seeds) if (*cell, epsilon, s) not in done]
                    for found in study(world, cell, seeds):
                        append(given.out, found)
    rows = read(given.out)
    if given.cells:
        append(given.cells, list(by_cell(rows)))
    sys.stdout.write(verdict(rows) if rows else "nothing to run\n")


if __name__ == "__main__":
    main()
