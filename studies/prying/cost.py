"""What the default [policy.plans] costs in accuracy: half-widths printed, bounded over free.

    python -m studies.prying.cost --data DIR

For each real set, with its ceiling and one ten times as high: the narrowest half-width of hour of
day over 28 days of 400 homes (`studies.theta.world`), over all θ and shares with 256 lattice points
as before, and over those that devices admit by default. Exact laws, no draws.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from edge_ldp import Hybrid, Mechanism, Tuned
from edge_ldp.protocol.plan_bounds import Shape, least_theta
from edge_ldp.ratio import floor_ratio
from studies.theta.laws import known
from studies.theta.world import World, profile

SETS = ("swiss", "uci", "ukdale", "refit", "sgsc", "fontana", "pos", "taxi")
POINTS = 1 << 14


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    laws = known(parser.parse_args().data)
    say = sys.stdout.write
    say("| set | ceiling | least θ | mean of values | hybrid, 16 points | tuned, 16 codes |\n")
    say("| --- | ---: | ---: | ---: | ---: | ---: |\n")
    for name in (one for one in SETS if one in laws):
        for times in (1, 10):
            law = laws[name]
            world = World(law, (len(law) - 1) * times, 1.0)
            mean = float(world.values @ world.masses)
            hybrid = _over(world, Hybrid(epsilon=1, low=0, high=POINTS, size=16))
            tuned = _over(world, Tuned(epsilon=1, low=0, high=POINTS))
            say(
                f"| {name} | {world.ceiling:,} | {_least(world, hybrid[0]):,} | {mean:,.0f} |"
                f" {hybrid[1]:.3f} | {tuned[1]:.3f} |\n"
            )


def _over(world: World, made: Mechanism) -> tuple[Mechanism, float]:
    """Return the narrowest half-width within the default over that of the same kind, unbounded."""
    free = Hybrid(epsilon=1, low=0, high=POINTS) if isinstance(made, Hybrid) else made
    thetas = world.thetas
    before = world.halves(thetas, profile(free)).min()
    admitted = thetas[thetas >= _least(world, made)]
    return made, float(world.halves(admitted, profile(made)).min() / before)


def _least(world: World, made: Mechanism) -> int:
    least = least_theta(made, Shape(), low=0, ceiling=world.ceiling, ratio=floor_ratio(1))
    return int(np.minimum(least, world.ceiling))


if __name__ == "__main__":
    main()
