"""What a home's heating leaves in noisy sums of its gas by the hour.

    python -m studies.prying.gas [--homes 40] [--draws 24] [--only WORDS]

The attacker of `habits` who knows the home's usual days, the habit and the noise. No hourly gas of
homes is bundled, so homes are made up: a winter's month of 3 to 25 m³ a day, that varies by a third
with the weather; by the hour as a boiler's cycles make it, more from 6 to 9 and from 17 to 22, less
at night; and hot water. Hours stand as four equal quarters. Seeded.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import numpy as np

from studies.prying.habits import A_DAY, HOURS, Habit, Hourly, Plan, Way, alone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from studies.prying.habits import Ints

CEILING = 6_000  # dm³ in an hour: what a meter of a home passes at most (G4)
DAYS = 49
A_DAY_DM3 = 9_000  # the middle home's, 90 kWh
PROFILE = np.repeat([0.5, 2.2, 1.0, 1.5, 0.7], [6, 3, 8, 5, 2])  # of the hours of a day
HEATING = (
    Habit("a week away", 0, "away"),
    Habit("a night setback", 0, "setback"),
    Habit("nobody in on workdays", 0, "workdays"),
)
WAYS = tuple(
    Way(0, Hourly(days, cells, epsilon))
    for cells, each in ((1, (8, 4, 2, 1)), (12, (8, 2)))
    for days in (1, 7, 28)
    for epsilon in each
)


def heated(homes: int) -> Ints:
    """Return homes × quarter hours, in dm³ an hour: whole hours alike."""
    rng = np.random.default_rng(7)
    usual = np.clip(A_DAY_DM3 * rng.lognormal(0, 0.45, homes), 3_000, 25_000)
    weather = rng.lognormal(-0.05, 0.33, (1, DAYS)) * rng.lognormal(0, 0.1, (homes, DAYS))
    hourly = usual[:, None, None] * weather[..., None] * PROFILE / PROFILE.sum()
    burnt = hourly * rng.gamma(4, 1 / 4, hourly.shape)  # a boiler's cycles
    water = 250 * rng.poisson(4 * PROFILE / PROFILE.sum(), hourly.shape)
    return np.repeat(
        np.minimum(burnt + water, CEILING).astype(np.int64), A_DAY // HOURS, axis=2
    ).reshape(homes, -1)


def rows(homes: int, draws: int, only: str) -> Iterator[str]:
    """Yield the table."""
    yield "| what leaves | b, dm³ | " + " | ".join(habit.name for habit in HEATING) + " |"
    yield "| --- | ---: |" + " ---: |" * len(HEATING)
    plan, known = Plan(CEILING), heated(homes)
    for way in WAYS:
        if way.sums is None or only not in way.name:
            continue
        told = [f"{alone(known, habit, plan, way, draws):.2f}" for habit in HEATING]
        scale = way.sums.scale(CEILING) * HOURS / A_DAY
        yield f"| {way.name} | {scale:,.0f} | {' | '.join(told)} |"


def main() -> None:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--homes", type=int, default=40)
    parser.add_argument("--draws", type=int, default=24)
    parser.add_argument("--only", default="", help="rows whose name has these words")
    args = parser.parse_args()
    for row in rows(args.homes, args.draws, args.only):
        sys.stdout.write(row + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
