"""400 homes whose loads are on at the same time: whether 95 % of 28 days hold.

    python -m studies.schedule.heaters [--load wall-boxes] [--period 97]

Storage heaters, on from 22 to 6 in two homes of three, or another fleet of `laws.IN_PHASE`.
For each split of the shipped window's ε: 60 runs for each of ten seeds, every home's ledger and
every report drawn anew. A line a split: how many of the 600 intervals of the whole run hold, how
often those of hours and of groups of 30 homes do, and what the forecast's half-width is over the
printed one. With `--period` all homes repeat after so many slots.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.sums import Fleet, forecast, law_of
from studies.evaluate.sums.fleet import StudiedHomes
from studies.evaluate.sums.given import HOUR, WHOLE, answers_of, run_given
from studies.evaluate.sums.laws import IN_PHASE, made_fleet

if TYPE_CHECKING:
    from edge_ldp.protocol.ledger import Window

EPSILONS = (1.0, 2.0, 4.0, 8.0)
SEEDS, RUNS = 10, 60
HORIZONS = (WHOLE, HOUR, "group of 30")
LOADS = tuple(IN_PHASE)


@dataclass(frozen=True, slots=True, eq=False)
class OtherPeriod(StudiedHomes):
    """The same homes, whose schedule repeats after other many slots."""

    period: int = 0

    @property
    def window(self) -> Window:
        """The window with that period."""
        return replace(super(OtherPeriod, self).window, period=self.period)


def homes(epsilon: float, period: int | None, load: str = LOADS[0]) -> StudiedHomes:
    """Return the fleet: 400 homes, always there."""
    made = made_fleet(load)
    readings = made.values.reshape(made.homes, -1)
    facts = (readings, np.ones(readings.shape, np.bool_), made.low, made.ceiling)
    if period is None:
        return StudiedHomes(*facts, made.slots_per_day, epsilon, copies=1)
    return OtherPeriod(*facts, made.slots_per_day, epsilon, copies=1, period=period)


def held(
    fleet: StudiedHomes, seeds: int = SEEDS, horizons: tuple[str, ...] = HORIZONS
) -> dict[str, list[float]]:
    """Return for each horizon the share that holds, run by run, and half the width over it."""
    found: dict[str, list[float]] = {name: [] for name in horizons}
    widths: list[float] = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        for _ in range(RUNS):
            run = run_given(fleet, rng)
            for name in horizons:
                asked = answers_of(name, fleet, run, rng)
                inside = [one.found.low <= one.truth <= one.found.high for one in asked]
                found[name].append(float(np.mean(inside)))
                if name == WHOLE:
                    widths.append((asked[0].found.high - asked[0].found.low) / 2)
    return {**found, "half-width": widths}


def forecast_half(fleet: StudiedHomes) -> float:
    """Return the half-width that the forecast has of the whole run."""
    law = law_of(fleet.readings.ravel(), fleet.low, fleet.ceiling)
    days = fleet.readings.shape[1] // fleet.slots_per_day
    asked = Fleet(len(fleet.readings), days, fleet.epsilon, fleet.window, fleet.slots_per_day)
    return next(row.half for row in forecast(asked, law).rows if row.horizon == "whole")


def main() -> None:
    """Print a line for each split."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--load", choices=LOADS, default=LOADS[0])
    parser.add_argument("--period", type=int)
    args = parser.parse_args()
    for epsilon in EPSILONS:
        fleet = homes(epsilon, args.period, args.load)
        found = held(fleet)
        window = fleet.window
        sys.stdout.write(
            f"{window.reports} × ε {epsilon:g}, period {window.period}: "
            f"{sum(found[WHOLE]):.0f} of {len(found[WHOLE])} whole runs hold, "
            f"{100 * np.mean(found[HOUR]):.1f} % of hours, "
            f"{100 * np.mean(found['group of 30']):.1f} % of groups; "
            f"forecast / printed {forecast_half(fleet) / np.mean(found['half-width']):.2f}\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
