"""How well a home's base load is known after a month, by reports, by noisy sums, or by both.

    python -m studies.prying.base_load [--homes 60] [--paths 6000]

The attacker of `attacker` who changes no plan: the load is a whole number of watts in 0..TOP, all
alike before (a guess without anything errs 866 W); he knows how readings vary about it and how it
moves, the plan's law and the noise's. Of many paths that a load may take in 28 days each weighs as
likely as it makes what came; he guesses their mean on the last day. Printed: the root mean square
error. Sums of readings that vary are taken as of readings that do not: a period's mean is the
load's within a few watts. Seeded.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp import Tuned
from edge_ldp.protocol.plan_bounds import PlanBounds
from studies.prying.attacker import TOP, Load, Menu, Mixed, whole
from studies.prying.figures import LOADS
from studies.prying.habits import A_DAY, DAYS, FUSES, SHARE, THETA, WAYS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from studies.prying.attacker import Floats
    from studies.prying.habits import Way


def walked(load: Load, many: int, rng: np.random.Generator) -> Floats:
    """Return paths × days: loads from all over the range, moved every night, kept within it."""
    found = np.empty((many, DAYS))
    found[:, 0] = np.linspace(0, TOP, many)
    for day in range(1, DAYS):
        found[:, day] = np.clip(found[:, day - 1] + rng.normal(0, load.drift, many), 0, TOP)
    return found


def law_of_reports(ceiling: int, load: Load) -> Floats:
    """Return the probability of each code (columns) at each load (rows) under the shipped plan."""
    sums = Tuned(epsilon=1, low=0, high=int(THETA * ceiling))
    law = Menu([Mixed(sums, whole(PlanBounds(), ceiling), SHARE)], load).law
    found: Floats = law / law.sum(axis=1)[:, None]
    return found


def error(  # noqa: PLR0913 (what a study varies)
    way: Way, ceiling: int, load: Load, law: Floats, *, homes: int, paths: int
) -> float:
    """Return the root mean square error after a month, over loads from all of the range."""
    rng = np.random.default_rng([3, ceiling, homes])
    prior, truth = walked(load, paths, rng), walked(load, homes, rng)
    at, logs = prior.round().astype(np.int64), np.log(np.maximum(law, 1e-300))
    errors = []
    for home in truth:
        likely = np.zeros(paths)
        for day in range(DAYS if way.reports else 0):
            counts = rng.multinomial(way.reports, law[int(home[day].round())])
            seen = np.flatnonzero(counts)
            likely += logs[at[:, day][:, None], seen] @ counts[seen]
        if (layout := way.sums) is not None:
            scale = layout.scale(ceiling)
            shape = (-1, DAYS // layout.days, layout.days)
            sums, own = (A_DAY * one.reshape(shape).sum(axis=2) for one in (prior, home[None]))
            if layout.cells > 1:
                sums, own = (
                    np.repeat(one / layout.cells, layout.cells, axis=1) for one in (sums, own)
                )
            y = own + layout.noise(own.shape, scale, rng)
            off = np.abs(sums - y).reshape(paths, -1, layout.block)
            likely -= off.max(axis=2).sum(axis=1) / scale
        weights = np.exp(likely - likely.max())
        errors.append(float(weights @ prior[:, -1] / weights.sum() - home[-1]))
    return float(np.sqrt(np.mean(np.square(errors))))


def rows(homes: int, paths: int) -> Iterator[str]:
    """Yield the table."""
    yield "| what leaves | fuse | " + " | ".join(LOADS) + " |"
    yield "| --- | ---: |" + " ---: |" * len(LOADS)
    for ceiling in FUSES:
        laws = {name: law_of_reports(ceiling, load) for name, load in LOADS.items()}
        for way in WAYS:
            told = [
                error(way, ceiling, load, laws[name], homes=homes, paths=paths)
                for name, load in LOADS.items()
            ]
            yield f"| {way.name} | {ceiling:,} W | {' | '.join(f'{one:,.0f} W' for one in told)} |"


def main() -> None:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--homes", type=int, default=60)
    parser.add_argument("--paths", type=int, default=6000)
    args = parser.parse_args()
    for row in rows(args.homes, args.paths):
        sys.stdout.write(row + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
