"""Run the best attacker found against the default policy and against ε alone; tables and picture.

    python -m studies.prying.figures [docs/prying.png]

The table stands in docs/results/prying.md, parts of it in docs/privacy.md. Seeded: every run gives
the same. Some 12 minutes on one core.
"""

from __future__ import annotations

import sys
from math import pi
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from edge_ldp import Hybrid
from edge_ldp.protocol.plan_bounds import Shape
from studies.prying.attacker import (
    CEILING,
    RATIO,
    Load,
    Menu,
    admitted,
    attacked,
    named,
    thresholds,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edge_ldp import Mechanism

HOMES = 40
A_DAY = 8  # reports, of the default window
DAYS = (1, 7, 30, 120, 365, 1095)
LOADS = {
    "never changes": Load(),
    "varies by 150 W": Load(spread=150.0),
    "and moves 20 W a day": Load(spread=150.0, drift=20.0),
}
HONEST: Mechanism = Hybrid(epsilon=1, low=0, high=3000, size=16)
RED, BLUE, GREEN, GREY = "#b3261e", "#0b6bcb", "#2e7d32", "#555555"

Errors = dict[int, float]


def limit(reports: int, shape: Shape) -> float:
    """Return an error, W, that no attacker's is below, averaged over a bucket of the survey grid.

    The inequality of van Trees: reports add up to at most n/least² of information, also if each
    plan is chosen by all that came before; which bucket of the grid it is, he is given for nothing;
    the base load lies within it as cos² does, of which the information is (2π/width)². For a load
    that never changes: one that varies blurs the borders of buckets, and surveys tell of it again.
    """
    width = (CEILING + 1) / shape.survey_buckets
    told = reports / float(shape.least_square(CEILING, RATIO))
    found: float = (told + (2 * pi / width) ** 2) ** -0.5
    return found


def main(path: Path) -> None:
    """Run all, print the tables, write the picture."""
    found: dict[tuple[str, str], Errors] = {}
    plans = admitted(Shape())
    for name, load in LOADS.items():
        found["honest", name] = attacked(
            Menu([HONEST], load), DAYS, A_DAY, load, homes=HOMES, fixed=True
        )[0]
        errors, sent = attacked(Menu(plans, load), DAYS, A_DAY, load, homes=HOMES)
        found["default", name] = errors
        most = sorted(zip(sent, named(plans), strict=True), reverse=True)[:5]
        sys.stdout.write("\n  ".join([name, *(f"{n} × {plan}" for n, plan in most)]) + "\n")
    single = Load()
    steps = [day * A_DAY for day in DAYS if day <= 365]
    before = attacked(Menu(thresholds(), single), steps, 1, single, homes=HOMES)[0]
    found["before", "never changes"] = {step // A_DAY: error for step, error in before.items()}
    sys.stdout.write("\n".join(table(found)) + "\n")
    draw(found, path)


def table(found: dict[tuple[str, str], Errors]) -> Iterator[str]:
    """Yield the table of errors against days, W."""
    yield "| load | days | reports | ε alone | default | honest plan | of honest | limit |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for name, load in LOADS.items():
        for day in DAYS:
            default, honest = found["default", name][day], found["honest", name][day]
            before = found.get(("before", name), {}).get(day)
            shown = "—" if before is None else f"{before:,.1f} W"
            least = "—" if load.spread else f"{limit(day * A_DAY, Shape()):,.1f} W"
            yield (
                f"| {name} | {day:,} | {day * A_DAY:,} | {shown} | {default:,.1f} W |"
                f" {honest:,.1f} W | {default / honest:.2f} | {least} |"
            )


def draw(found: dict[tuple[str, str], Errors], path: Path) -> None:
    """Write the picture: error against days, before and now."""
    figure = Figure(figsize=(10, 5.6), dpi=150, facecolor="white", layout="constrained")
    axes = figure.subplots()
    lines = (
        (found["before", "never changes"], RED, "plans bounded by ε alone"),
        (found["default", "never changes"], BLUE, "plans within the default policy"),
        (found["honest", "never changes"], GREEN, "one honest plan, never changed"),
        ({d: limit(d * A_DAY, Shape()) for d in DAYS}, GREY, "limit of every attacker"),
    )
    for errors, color, label in lines:
        style = ":" if color == GREY else "-"
        days = list(errors)
        values = [max(error, 0.5) for error in errors.values()]
        axes.plot(days, values, style, color=color, marker="o", label=label, linewidth=2)
    axes.set(xscale="log", yscale="log", ylim=(0.4, 1500))
    axes.set_xticks(DAYS, ["1 day", "a week", "30 days", "120 days", "a year", "3 years"])
    axes.set_xticks([], minor=True)
    ticks = (0.5, 2, 10, 50, 200, 1000)
    axes.set_yticks(ticks, ["below 0.5 W", *(f"{tick:,} W" for tick in ticks[1:])])
    axes.set_yticks([], minor=True)
    axes.grid(color="#d9d9d9")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9.5)
    title = "How well the best attacker found knows a load that never changes\n"
    under = (
        f"8 reports of ε 1 a day, {HOMES} simulated homes, base loads 0 to 3,000 W, range 43,470 W"
    )
    axes.set_title(title + under, loc="left", fontsize=11)
    figure.savefig(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/prying.png"))
