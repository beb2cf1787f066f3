"""Run the best attacker found against the default policy and against ε alone; tables and picture.

    python -m studies.prying.figures [--homes N] [--shapes SHAPE ...] [docs/prying.png]

The tables stand in docs/results/prying.md, parts of them in docs/privacy.md. Seeded: every run
gives the same. With --shapes (`default`, or keys of [policy.plans] as `sharpness=30`, several with
commas) only what each admits of a load that never changes is tried, without a picture. All takes
some 12 minutes on one core, a shape two.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from fractions import Fraction
from math import pi
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from edge_ldp import Hybrid, Tuned
from edge_ldp.protocol.plan_bounds import PlanBounds
from studies.prying.attacker import (
    CEILING,
    RATIO,
    Load,
    Menu,
    Mixed,
    admitted,
    attacked,
    named,
    thresholds,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from edge_ldp import Mechanism

HOMES = 40
A_DAY = 8  # reports, of the default window
DAYS = (1, 7, 30, 120, 365, 1095)
LOADS = {
    "never changes": Load(),
    "varies by 150 W": Load(spread=150.0),
    "and moves 20 W a day": Load(spread=150.0, drift=20.0),
}
HONEST: Mechanism = Hybrid(epsilon=1, low=0, high=4420, size=16)  # the least θ admitted
# θ and share of surveys that are chosen for laws of homes: `python -m studies.prying.cost`
CHOSEN = {
    "sgsc, 1.08 million": (4485, 9 / 16),
    "ideal, 1.08 million": (5773, 10 / 16),
    "uci, 27 million": (6830, 8 / 16),
    "swiss, 1.08 million": (18_743, 6 / 16),
}
YEAR = 365
RED, BLUE, GREEN, GREY = "#b3261e", "#0b6bcb", "#2e7d32", "#555555"

Errors = dict[int, float]


def limit(reports: int, shape: PlanBounds) -> float:
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


def main() -> None:
    """Run all, or a few shapes; print the tables, write the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--homes", type=int, default=HOMES)
    parser.add_argument("--shapes", nargs="+", type=shape_of)
    parser.add_argument("picture", nargs="?", type=Path, default=Path("docs/prying.png"))
    args = parser.parse_args()
    if args.shapes:
        _say(by_shape(args.shapes, args.homes))
        return
    found = everything(args.homes)
    _say(table(found))
    draw(found, args.picture, args.homes)
    _say(["", *chosen(found, args.homes)])


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def shape_of(words: str) -> PlanBounds:
    """Return the default with the keys of [policy.plans] that are given, as `sharpness=30`."""
    given = dict(word.split("=") for word in words.split(",") if word != "default")
    share = Fraction(given.pop("survey_share", "1"))
    numbers: dict[str, Any] = {key: int(number) for key, number in given.items()}
    return replace(PlanBounds(survey_share=share), **numbers)


def everything(homes: int) -> dict[tuple[str, str], Errors]:
    """Return the errors of the default, of ε alone and of the honest plan, by load."""
    found: dict[tuple[str, str], Errors] = {}
    plans = admitted(PlanBounds())
    for name, load in LOADS.items():
        found["honest", name] = attacked(
            Menu([HONEST], load), DAYS, A_DAY, load, homes=homes, fixed=True
        )[0]
        errors, sent = attacked(Menu(plans, load), DAYS, A_DAY, load, homes=homes)
        found["default", name] = errors
        most = sorted(zip(sent, named(plans), strict=True), reverse=True)[:5]
        sys.stdout.write("\n  ".join([name, *(f"{n} × {plan}" for n, plan in most)]) + "\n")
    single = Load()
    steps = [day * A_DAY for day in DAYS if day <= YEAR]
    before = attacked(Menu(thresholds(), single), steps, 1, single, homes=homes)[0]
    found["before", "never changes"] = {step // A_DAY: error for step, error in before.items()}
    return found


def by_shape(shapes: list[PlanBounds], homes: int) -> Iterator[str]:
    """Yield a table: what plans of each shape tell of a load that never changes."""
    yield "| shape | 30 days | a year |"
    yield "| --- | --- | --- |"
    load, days = Load(), (30, YEAR)
    errors = attacked(Menu([HONEST], load), days, A_DAY, load, homes=homes, fixed=True)[0]
    yield f"| the honest plan | {errors[30]:,.1f} W | {errors[YEAR]:,.1f} W |"
    for shape in shapes:
        errors = attacked(Menu(admitted(shape), load), days, A_DAY, load, homes=homes)[0]
        changed = (
            f"{key} = {value}"
            for key in PlanBounds.__slots__
            if (value := getattr(shape, key)) != getattr(PlanBounds(), key)
        )
        yield f"| {', '.join(changed) or 'default'} | {errors[30]:,.1f} W | {errors[YEAR]:,.1f} W |"


def chosen(found: dict[tuple[str, str], Errors], homes: int) -> Iterator[str]:
    """Yield a table: a year under the tuned table at each θ and share that is chosen, for ever."""
    yield f"| chosen for, reports | θ | surveys | {' | '.join(LOADS)} |"
    yield "| --- | --- | --- |" + " --- |" * len(LOADS)
    for name, (theta, share) in CHOSEN.items():
        told = []
        for of, load in LOADS.items():
            errors = honest(theta, share, load, homes)
            ratio = found["default", of][YEAR] / errors[YEAR]
            told.append(f"{errors[YEAR]:,.1f} W, {ratio:.2f}")
        yield f"| {name} | {theta:,} W | {share:.0%} | {' | '.join(told)} |"


def honest(theta: int, share: float, load: Load, homes: int, days: int = YEAR) -> Errors:
    """Return the error after so many days of the tuned table at θ, with a share of surveys."""
    plan = Mixed(Tuned(epsilon=1, low=0, high=theta), whole(PlanBounds()), share)
    return attacked(Menu([plan], load), (days,), A_DAY, load, homes=homes, fixed=True)[0]


def table(found: dict[tuple[str, str], Errors]) -> Iterator[str]:
    """Yield the table of errors against days, W."""
    yield "| load | days | reports | ε alone | default | honest plan | of honest | limit |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for name, load in LOADS.items():
        for day in DAYS:
            default, honest = found["default", name][day], found["honest", name][day]
            before = found.get(("before", name), {}).get(day)
            shown = "—" if before is None else f"{before:,.1f} W"
            least = "—" if load.spread else f"{limit(day * A_DAY, PlanBounds()):,.1f} W"
            yield (
                f"| {name} | {day:,} | {day * A_DAY:,} | {shown} | {default:,.1f} W |"
                f" {honest:,.1f} W | {default / honest:.2f} | {least} |"
            )


def draw(found: dict[tuple[str, str], Errors], path: Path, homes: int) -> None:
    """Write the picture: error against days, before and now."""
    figure = Figure(figsize=(10, 5.6), dpi=150, facecolor="white", layout="constrained")
    axes = figure.subplots()
    lines = (
        (found["before", "never changes"], RED, "plans bounded by ε alone"),
        (found["default", "never changes"], BLUE, "plans within the default policy"),
        (found["honest", "never changes"], GREEN, "one honest plan, never changed"),
        ({d: limit(d * A_DAY, PlanBounds()) for d in DAYS}, GREY, "limit of every attacker"),
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
        f"8 reports of ε 1 a day, {homes} simulated homes, base loads 0 to 3,000 W, range 43,470 W"
    )
    axes.set_title(title + under, loc="left", fontsize=11)
    figure.savefig(path)


if __name__ == "__main__":
    main()
