"""What the default [policy.plans] costs in accuracy: half-widths printed, bounded over free.

    python -m studies.prying.cost --data DIR

For each real set, with its ceiling and one ten times as high: the narrowest half-width of hour of
day over 28 days of 400 homes (`studies.theta.world`), over all θ and shares with 256 lattice points
as before, and over those that devices admit by default. The same of the tuned table where θ may be
halved less often, with the set's ceiling and that of the shipped file. Then θ and share of surveys
that `edge_ldp.threshold.choice` takes of the tuned table, where it knows the law: the honest plans
of `studies.prying.figures`. Exact laws, no draws.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from edge_ldp import Hybrid, Mechanism, Tuned
from edge_ldp.protocol.plan_bounds import PlanBounds, least_theta
from edge_ldp.ratio import floor_ratio
from edge_ldp.threshold.choice import Choice, candidates, compared
from studies.theta.laws import known
from studies.theta.world import QUESTION, World, profile

SETS = ("swiss", "uci", "ukdale", "refit", "sgsc", "fontana", "pos", "taxi")
HOMES = ("swiss", "uci", "ukdale", "refit", "sgsc", "ideal")
POINTS = 1 << 14
DEFAULT = PlanBounds()
CEILING = 43_470  # W: of `studies.prying.attacker`


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
    say("\n| set | ceiling | 3 halvings | 2 halvings |\n| --- | ---: | ---: | ---: |\n")
    for name in (one for one in SETS if one in laws):
        for ceiling in sorted({len(laws[name]) - 1, CEILING}):
            if ceiling < len(laws[name]) - 1:
                continue
            world = World(laws[name], ceiling, 1.0)
            shapes = [PlanBounds(theta_halvings=times) for times in (3, 2)]
            fewer = [_over(world, Tuned(epsilon=1, low=0, high=POINTS), one)[1] for one in shapes]
            say(f"| {name} | {ceiling:,} | {fewer[0]:.3f} | {fewer[1]:.3f} |\n")
    say("\n| set | reports | chosen θ | surveys |\n| --- | ---: | ---: | ---: |\n")
    for name, times in product((one for one in HOMES if one in laws), (1, 25)):
        best = chosen(World(laws[name], CEILING, 1.0), times)
        say(f"| {name} | {times * QUESTION.reports:,.0f} | {best.theta:,} | {best.share:.4f} |\n")


def chosen(world: World, times: int) -> Choice:
    """Return θ and share for so many times QUESTION's reports, chosen by the law itself."""
    aim = replace(world.aim, question=QUESTION._replace(reports=times * QUESTION.reports))
    thetas = candidates(0, world.ceiling, _least(world, Tuned(epsilon=1, low=0, high=POINTS)))
    cut = np.minimum(world.values, thetas[:, None])
    tails = (world.values - cut) @ world.masses
    variances = cut**2 @ world.masses - (cut @ world.masses) ** 2
    return compared(aim, thetas, tails, variances).best()


def _over(world: World, made: Mechanism, shape: PlanBounds = DEFAULT) -> tuple[Mechanism, float]:
    """Return the narrowest half-width within a shape over that of the same kind, unbounded."""
    free = Hybrid(epsilon=1, low=0, high=POINTS) if isinstance(made, Hybrid) else made
    thetas = world.thetas
    before = world.halves(thetas, profile(free)).min()
    admitted = thetas[thetas >= _least(world, made, shape)]
    return made, float(world.halves(admitted, profile(made)).min() / before)


def _least(world: World, made: Mechanism, shape: PlanBounds = DEFAULT) -> int:
    least = least_theta(made, shape, low=0, ceiling=world.ceiling, ratio=floor_ratio(1))
    return int(np.minimum(least, world.ceiling))


if __name__ == "__main__":
    main()
