"""Whether what was forecast is what is printed, of homes whose ledgers say which slots report.

    python -m studies.schedule.forecasts [--data DIR] [--runs 20]

The Swiss homes, with `--data` months of others', and fleets that are on at the same time, for each
split of the shipped window's ε: CSV, a line a horizon, with the half-width that `forecast` has of
these readings and the mean one that is printed under its θ and share of surveys, and that mean's
standard error: how far strata differ is found from noise, so runs differ by a quarter.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import mean, stdev

import numpy as np

from edge_ldp import SquareWave
from edge_ldp.sums import Fleet, forecast, law_in_time, law_of
from studies.evaluate.files import built_in
from studies.evaluate.sources import MONTHS
from studies.evaluate.sums.fleet import Setting, StudiedHomes, coded
from studies.evaluate.sums.given import DAYS, HOUR, WEEKS, WHOLE, Stretch, answers_of
from studies.schedule.heaters import EPSILONS
from studies.theta.world import stream

SETS = ("homes", "storage-heaters", "wall-boxes", "workdays")
HORIZONS = {"whole": WHOLE, "week": WEEKS, "day": DAYS, "hour-of-day": HOUR}


def compared(fleet: StudiedHomes, runs: int) -> dict[str, tuple[float, float, float, float]]:
    """Return by horizon the half-widths forecast, the mean one printed and its standard error.

    The first forecast has these readings, the second also knows when they were. The fleet's `low`
    must be 0.
    """
    law = law_of(fleet.readings.ravel(), fleet.low, fleet.ceiling)
    timed = law_in_time(fleet.readings, fleet.low, fleet.ceiling, fleet.slots_per_day)
    homes, slots = fleet.readings.shape
    days = slots // fleet.slots_per_day
    asked = Fleet(homes, days, fleet.epsilon, fleet.window, fleet.slots_per_day)
    found, better = forecast(asked, law), forecast(asked, timed)
    survey = SquareWave(epsilon=str(fleet.epsilon), low=0, high=fleet.ceiling, size=1024)
    setting = Setting(stream(fleet.epsilon, found.theta), survey, found.share)
    rng = np.random.default_rng(21)
    printed: dict[str, list[float]] = {row.horizon: [] for row in found.rows}
    for _ in range(runs):
        reports = fleet.drawn(rng)
        codes = coded(setting, reports.value, rng)
        run = [Stretch(0, int(fleet.times[-1]) + 1, setting, reports, codes)]
        for name, halves in printed.items():
            answers = answers_of(HORIZONS[name], fleet, run, rng)
            halves.append(float(np.mean([one.found.high - one.found.low for one in answers])) / 2)
    return {
        row.horizon: (row.half, timed.half, mean(halves), stdev(halves) / runs**0.5)
        for row, timed, halves in zip(found.rows, better.rows, printed.values(), strict=True)
    }


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--runs", type=int, default=20)
    args = parser.parse_args()
    sys.stdout.write("values,reports,epsilon,horizon,forecast_w,in_time_w,printed_w,printed_se\n")
    for name in (*SETS, *([MONTHS] if args.data else [])):
        values = built_in(name, args.data)
        readings = values.values.reshape(values.homes, -1)
        facts = (readings, np.ones(readings.shape, np.bool_), values.low, values.ceiling)
        for epsilon in EPSILONS:
            fleet = StudiedHomes(*facts, values.slots_per_day, epsilon, copies=1)
            for horizon, widths in compared(fleet, args.runs).items():
                told = (name, str(fleet.window.reports), f"{epsilon:g}", horizon)
                cells = (*told, *(f"{width:.3g}" for width in widths))
                sys.stdout.write(",".join(cells) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
