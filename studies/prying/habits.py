"""What a home's habits leave in its reports, and in noisy sums: what a cautious owner compares.

    python -m studies.prying.habits [--homes 40] [--draws 24] [--others 6] [--only WORDS]

A habit is added to the real readings of a home, or not; the attacker says which. He knows every
law: the plan's, the habit's, and the home's usual readings by hour of day (*knows the home*), or
those of all others (*knows the others*). Readings are 28 days of the bundled Swiss homes. Printed
is how often each tells a month with the habit from one without, shown both: a guess is 0.50.

*Reports*: the shipped window, which slots report drawn as its ledger does, the tuned table at the θ
that is chosen for these homes, surveys as chosen. *Sums*: S and Laplace noise of the scale that
devices take, S by days of the home itself drawn anew. *Both*: the window's ε shared, and what both
ways tell added up. The likelihood ratio is exact for what he knows; readings of a night belong
together, so a night with a charger is judged as a whole. Seeded.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edge_ldp import SquareWave, Tuned
from edge_ldp.period_sums import PeriodLayout, most_in_window
from edge_ldp.protocol.ledger import scheduled
from edge_ldp.sums import SHIPPED
from firmware_stubs.data import load_swiss
from studies.prying.pair import law

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

DAYS, A_DAY, HOURS, DAY_S = 28, 96, 24, 86_400
WATTS = 50  # readings are rounded to it: no report and no sum here tells less apart
FUSES = (43_470, 17_250)
THETA, SHARE = 18_277 / 43_470, 5 / 16  # as chosen for Swiss homes (README, studies.prying.cost)
LATE = 88  # the slot of 22:00
EVENING = np.arange(80, 116)  # slots from 20:00 to 5:00 of the next day
LONG, LATEST = 8, len(EVENING) - 8  # slots that a charger is on, and where it begins at the latest
MODELS = 60  # days of the home, drawn anew, by which an attacker knows the law of a sum


class Habit(NamedTuple):
    """What is added in the slots that `on` draws; a whole week away replaces readings instead."""

    name: str
    watts: int
    kind: str  # known, night, random, always, away; of gas setback, workdays


HABITS = (
    Habit("a week away", 0, "away"),
    Habit("a charger at known times, 7.4 kW", 7_400, "known"),
    Habit("a charger, some nights, 7.4 kW", 7_400, "night"),
    Habit("a heat pump, now and then, 1.8 kW", 1_800, "random"),
    Habit("900 W more, always", 900, "always"),
)
CHANCE = {"known": 1.0, "night": 0.5, "random": 0.4, "always": 1.0}


@dataclass(frozen=True, slots=True)
class Sums:
    """A layout of period sums: days, cells, ε in any 97 slots, cells that share a noise."""

    days: int
    cells: int
    epsilon: float
    block: int = 1

    @property
    def name(self) -> str:
        """How the table calls it."""
        cells = "" if self.cells == 1 else f", {self.cells} cells"
        cells += f" in blocks of {self.block}" * (self.block > 1)
        return f"sums of {self.days} day{'s' * (self.days > 1)}{cells}, ε {self.epsilon:g}"

    def scale(self, span: int) -> float:
        """Return the noise's scale b."""
        layout = PeriodLayout(DAY_S // A_DAY, self.days, self.cells, block=self.block)
        return most_in_window(layout, SHIPPED.slots) * span / self.epsilon

    def noise(self, shape: tuple[int, ...], scale: float, rng: np.random.Generator) -> Floats:
        """Return noise of so many periods × cells."""
        if self.block == 1:
            return rng.laplace(0, scale, shape)
        within = (*shape[:-1], shape[-1] // self.block, self.block)
        radius = rng.gamma(self.block + 1, scale, within[:-1])[..., None]
        return (radius * rng.uniform(-1, 1, within)).reshape(shape)


class Hourly(Sums):
    """Sums over hours, as of gas: each stands as four quarters of as much an hour."""

    __slots__ = ()

    def scale(self, span: int) -> float:
        """Return the noise's scale, of quarter hours: 4 of what devices take."""
        hours = most_in_window(PeriodLayout(3600, self.days, self.cells), SHIPPED.slots, 4)
        return 4 * hours * span / self.epsilon


@dataclass(frozen=True, slots=True)
class Way:
    """What leaves: so many reports of ε 1 in any 97 slots, sums, or both."""

    reports: int
    sums: Sums | None = None

    @property
    def name(self) -> str:
        """How the table calls it."""
        told = [self.sums.name] if self.sums else []
        return "; ".join([*told, *([f"{self.reports} reports of ε 1"] if self.reports else [])])


WAYS = (
    Way(8),
    Way(2, Sums(1, 1, 6)),  # as shipped
    Way(0, Sums(1, 1, 8)),
    *(Way(0, Sums(7, 1, epsilon)) for epsilon in (8, 5, 4, 3)),
    *(Way(0, Sums(28, 1, epsilon)) for epsilon in (8, 4, 2)),
    *(Way(0, Sums(1, cells, 8)) for cells in (4, 6, 24)),
    *(Way(0, Sums(7, cells, epsilon)) for cells in (4, 6) for epsilon in (8, 5)),
    Way(0, Sums(7, 24, 8)),
    *(Way(0, Sums(7, 24, epsilon, 4)) for epsilon in (8, 6)),
    *(Way(0, Sums(28, 4, epsilon)) for epsilon in (8, 4, 2)),
    *(Way(0, Sums(28, 6, epsilon)) for epsilon in (8, 5, 3)),
    *(Way(0, Sums(28, 24, epsilon)) for epsilon in (8, 5)),
    *(Way(0, Sums(28, 24, epsilon, 4)) for epsilon in (8, 6, 2)),
)


def on(habit: Habit, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return in which slots of the days × slots the habit shows: one draw."""
    found = np.zeros(DAYS * A_DAY, np.bool_)
    if habit.kind == "known":
        found.reshape(DAYS, A_DAY)[:, LATE:] = True
    elif habit.kind == "night":
        for day in np.flatnonzero(rng.random(DAYS) < CHANCE["night"]):
            begin = day * A_DAY + EVENING[0] + rng.integers(LATEST + 1)
            found[begin : begin + LONG] = True
    elif habit.kind == "random":
        found[:] = rng.random(len(found)) < CHANCE["random"]
    elif habit.kind == "workdays":
        found.reshape(-1, 7, A_DAY)[:, :5, 32:64] = True
    elif habit.kind in ("always", "setback"):
        found[:] = True
    else:
        found[: 7 * A_DAY] = True
    return found


def quiet(home: Ints) -> int:
    """Return what a home draws while nobody is there: its tenth percentile."""
    return int(np.quantile(home, 0.1))


def lived(home: Ints, habit: Habit, rng: np.random.Generator) -> Ints:
    """Return a month's readings with the habit."""
    shows = on(habit, rng)
    if habit.kind in ("away", "workdays"):
        return np.where(shows, quiet(home), home)
    return set_back(home) if habit.kind == "setback" else np.where(shows, home + habit.watts, home)


def set_back(home: Ints) -> Ints:
    """Return readings of who heats by a quarter from 22 to 6, and half of that more till 9."""
    days = home.reshape(-1, A_DAY).copy()
    night, morning = [*range(24), *range(LATE, A_DAY)], range(24, 36)
    saved = days[:, night] * 3 // 4
    days[:, night] -= saved
    days[:, morning] += saved.sum(axis=1, keepdims=True) // 2 // len(morning)
    return days.ravel()


class Plan:
    """The law of the codes of one plan, by value in steps of WATTS up to the ceiling."""

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        parts = [
            (1 - SHARE, Tuned(epsilon=1, low=0, high=int(THETA * ceiling))),
            (SHARE, SquareWave(epsilon=1, low=0, high=ceiling, size=256)),
        ]
        rows = [
            np.concatenate([share * law(made, value) for share, made in parts])
            for value in range(0, ceiling + 1, WATTS)
        ]
        self.law: Floats = np.array(rows)
        self.law /= self.law.sum(axis=1)[:, None]
        self.steps: Floats = self.law.cumsum(axis=1)

    def index(self, values: Ints) -> Ints:
        """Return the row of each value."""
        clipped = np.clip(values, 0, self.ceiling) // WATTS
        return np.minimum(clipped, len(self.law) - 1)

    def codes(self, values: Ints, rng: np.random.Generator) -> Ints:
        """Return one code for each value."""
        steps = self.steps[self.index(values)]
        drawn = rng.random(len(values))[:, None] * steps[:, -1:]
        codes: Ints = np.minimum((steps < drawn).sum(axis=1), self.law.shape[1] - 1)
        return codes


def reporting(rng: np.random.Generator, reports: int) -> Ints:
    """Return the slots of a month in which a home whose window has so many reports makes one."""
    window = scheduled(reports, SHIPPED.slots, 1, 900)
    cells = rng.choice(window.period, window.reports, replace=False)
    slots = np.arange(DAYS * A_DAY)
    return slots[np.isin(slots % window.period, cells)]


class Knowledge(NamedTuple):
    """The probability of a code by hour of day, home by home: usual, and with the habit on."""

    usual: Floats  # homes × hours × codes
    shown: Floats


def known(plan: Plan, homes: Ints, habit: Habit) -> Knowledge:
    """Return what an attacker knows of each home's reports."""
    by_hour = homes.reshape(len(homes), -1, HOURS, A_DAY // HOURS)
    usual, shown = [], []
    for home in by_hour.transpose(0, 2, 1, 3).reshape(len(homes), HOURS, -1):
        usual.append([plan.law[plan.index(hour)].mean(axis=0) for hour in home])
        if habit.kind == "away":
            row = plan.law[plan.index(np.array([quiet(home.ravel())]))][0]
            shown.append([row] * HOURS)
        else:
            shown.append([plan.law[plan.index(hour + habit.watts)].mean(axis=0) for hour in home])
    return Knowledge(np.array(usual), np.array(shown))


def ratio_of_reports(
    of: Knowledge, habit: Habit, slots: Ints, codes: Ints
) -> tuple[Floats, Floats]:
    """Return ln of the likelihood with the habit over without, and without, by home known."""
    hours = slots % A_DAY * HOURS // A_DAY
    usual = np.log(of.usual[:, hours, codes])
    gain = np.log(of.shown[:, hours, codes]) - usual
    if habit.kind == "known":
        gain = np.where(slots % A_DAY >= LATE, gain, 0)
    elif habit.kind == "away":
        gain = np.where(slots < 7 * A_DAY, gain, 0)
    elif habit.kind == "random":
        gain = np.log1p(CHANCE["random"] * np.expm1(gain))
    elif habit.kind == "night":
        return _by_nights(gain, slots), usual.sum(axis=1)
    return gain.sum(axis=1), usual.sum(axis=1)


def _by_nights(gain: Floats, slots: Ints) -> Floats:
    """Return ln of the ratio where each night has a charger or none, and when is not known."""
    total = np.zeros(len(gain))
    for day in range(DAYS):
        at = slots - day * A_DAY - EVENING[0]
        within = (at >= 0) & (at < len(EVENING))
        begins = np.arange(LATEST + 1)[:, None]
        is_on = (at[within] >= begins) & (at[within] < begins + LONG)
        ratios = gain[:, None, within] * is_on
        of_night = logsumexp(ratios.sum(axis=2), axis=1) - np.log(LATEST + 1)
        total += np.logaddexp(np.log(1 - CHANCE["night"]), np.log(CHANCE["night"]) + of_night)
    return total


def sums_of(values: Ints, layout: Sums) -> Floats:
    """Return periods × cells: what a month adds up to, kept below the ceiling beforehand."""
    shape = (DAYS // layout.days, layout.days, layout.cells, A_DAY // layout.cells)
    found: Floats = values.reshape(shape).sum(axis=(1, 3)).astype(np.float64)
    return found


def modelled(
    home: Ints, habit: Habit | None, layout: Sums, ceiling: int, rng: np.random.Generator
) -> Floats:
    """Return MODELS months of a home's days drawn anew, with or without the habit: their sums."""
    days = home.reshape(-1, A_DAY)
    found = []
    for _ in range(MODELS):
        month = days[rng.integers(len(days), size=DAYS)].ravel()
        lives = month if habit is None else lived(month, habit, rng)
        found.append(sums_of(np.minimum(lives, ceiling), layout))
    return np.array(found)


def likelihoods_of_sums(models: Floats, y: Floats, scale: float, block: int = 1) -> Floats:
    """Return ln of a release's likelihood by home: periods apart, the cells of one together."""
    off = np.abs(y - models)
    if block > 1:
        off = off.reshape(*off.shape[:-1], -1, block).max(axis=-1)
    of_models = -off.sum(axis=-1) / scale  # homes × models × periods
    found: Floats = (logsumexp(of_models, axis=1) - np.log(models.shape[1])).sum(axis=-1)
    return found


def logsumexp(terms: Floats, axis: int = 0) -> Floats:
    """Return ln of the sum of exponentials; SciPy's takes five times as long for so few."""
    most = terms.max(axis=axis, keepdims=True)
    found: Floats = np.log(np.exp(terms - most).sum(axis=axis)) + most.squeeze(axis)
    return found


def auc(with_habit: list[float], without: list[float]) -> float:
    """Return how often a score with the habit is above one without; ties count half."""
    first, second = np.array(with_habit)[:, None], np.array(without)
    return float((first > second).mean() + (first == second).mean() / 2)


class Attacker:
    """What is known of each home's reports and sums with a habit and without, at one ceiling."""

    def __init__(self, homes: Ints, habit: Habit, plan: Plan, way: Way) -> None:
        self.habit, self.plan, self.way = habit, plan, way
        self.of = known(plan, homes, habit) if way.reports else None
        self.scale = 0.0
        self.models: list[Floats] = []
        if (layout := way.sums) is not None:
            rng = np.random.default_rng([2, plan.ceiling, layout.days, layout.cells])
            self.scale = layout.scale(plan.ceiling)
            self.models = [
                np.array([modelled(home, one, layout, plan.ceiling, rng) for home in homes])
                for one in (habit, None)
            ]

    def told(self, values: Ints, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return ln of the likelihood of what a month lets out, by home: with habit, without."""
        shown, usual = np.zeros(()), np.zeros(())
        if self.of is not None:
            slots = reporting(rng, self.way.reports)
            codes = self.plan.codes(values[slots], rng)
            gain, usual = ratio_of_reports(self.of, self.habit, slots, codes)
            shown = usual + gain
        if self.way.sums is not None:
            y = sums_of(np.minimum(values, self.plan.ceiling), self.way.sums)
            y = y + self.way.sums.noise(y.shape, self.scale, rng)
            with_habit, without = (
                likelihoods_of_sums(one, y, self.scale, self.way.sums.block) for one in self.models
            )
            shown, usual = shown + with_habit, usual + without
        return shown, usual


def alone(homes: Ints, habit: Habit, plan: Plan, way: Way, draws: int) -> float:
    """Return the AUC of who knows the home, home by home."""
    rng, each = np.random.default_rng([4, plan.ceiling]), list[float]()
    for home in homes:
        attacker, month = Attacker(home[None], habit, plan, way), home[: DAYS * A_DAY]
        pair: tuple[list[float], list[float]] = ([], [])
        for which, is_on in enumerate((True, False)):
            for _ in range(draws):
                shown, usual = attacker.told(lived(month, habit, rng) if is_on else month, rng)
                pair[which].append(float(shown[0] - usual[0]))
        each.append(auc(*pair))
    return float(np.mean(each))


def by_others(homes: Ints, habit: Habit, plan: Plan, way: Way, draws: int) -> float:
    """Return the AUC of who knows all homes but the one looked at, over all of them together."""
    rng, attacker = np.random.default_rng([1, plan.ceiling]), Attacker(homes, habit, plan, way)
    over: tuple[list[float], list[float]] = ([], [])
    for at, home in enumerate(homes[:, : DAYS * A_DAY]):
        others = np.arange(len(homes)) != at
        for which, is_on in enumerate((True, False)):
            for _ in range(draws):
                shown, usual = attacker.told(lived(home, habit, rng) if is_on else home, rng)
                over[which].append(float(logsumexp(shown[others]) - logsumexp(usual[others])))
    return auc(*over)


def rows(homes: Ints, ways: Sequence[Way], draws: int, others: int) -> Iterator[str]:
    """Yield the table, so many draws of each home; an attacker's second number needs fewer."""
    yield "| what leaves | fuse | " + " | ".join(habit.name for habit in HABITS) + " |"
    yield "| --- | ---: |" + " ---: |" * len(HABITS)
    for ceiling in FUSES:
        plan, capped = Plan(ceiling), np.clip(homes, 0, ceiling)
        for way in ways:
            cells = [f"{alone(capped, habit, plan, way, draws):.2f}" for habit in HABITS]
            if others:
                told = [by_others(capped, habit, plan, way, others) for habit in HABITS]
                cells = [f"{one}, {two:.2f}" for one, two in zip(cells, told, strict=True)]
            yield f"| {way.name} | {ceiling:,} W | {' | '.join(cells)} |"


def main() -> None:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--homes", type=int, default=40)
    parser.add_argument("--draws", type=int, default=24)
    parser.add_argument("--others", type=int, default=6, help="draws of each, knowing the others")
    parser.add_argument("--only", default="", help="rows whose name has these words")
    args = parser.parse_args()
    every = load_swiss().astype(np.int64)
    homes = every[:: len(every) // args.homes][: args.homes]
    ways = [way for way in WAYS if args.only in way.name]
    for row in rows(np.maximum(homes, 0), ways, args.draws, args.others):
        sys.stdout.write(row + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
