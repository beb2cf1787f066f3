"""What each part of the old adaptive θ earns, and whether it prevents a failure of the new rule.

    python -m studies.theta.ablation --data DIR --out rows.csv [--part still|shift|tables]

The old rule is `aggregator.adaptive`: run it at a commit that still has it (HASH).
`still`: the decision at the third survey of 65,536 reports, beside as many stream reports or none,
by the old rule whole and with one part switched off, by the papers' rule and by
`edge_ldp.threshold.choice`. Of the old rule's posterior the θ for plain sums is taken, that for
corrected ones, and (`new objective`) the one that the new rule would take by its density.
`tables`: a stream
mechanism made for the density. `shift`: readings three times as large, or a third, after the third
survey; the decisions after it, with the drift test and without. Surveys span the whole range.
Every run is seeded and its rows are appended when it is done.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

import numpy as np

from edge_ldp.estimate import ems
from edge_ldp.estimate.density import density
from edge_ldp.estimate.joint import Evidence, cells
from edge_ldp.threshold import choice
from edge_ldp.threshold.published import bias, choose_threshold, mean_square, prune
from studies.theta.laws import known
from studies.theta.rows import append, read, table
from studies.theta.world import LONGEST, World, profile, stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from edge_ldp import Mechanism

    Floats = NDArray[np.float64]
    Counts = dict[Mechanism, Floats]
    Row = dict[str, object]

LAWS = "pos,swiss,uci,ukdale,sgsc,gains,ideal,duration"
TIMES = (1, 30)
REPORTS, EPOCHS = 65_536, 3
EPSILON = 1.0
WHOLE = "old rule"
PARTS = ("atoms", "bends", "heaps", "HMC", "drift")
SLACK = 0.02  # of `choice`, as decided since
WIDE, DEAR = 1.5, 10.0  # failures: of the least half-width, of the least papers' cost
EARNS = 0.03


def old(module: str) -> Any:
    """Return a module of the old rule."""
    return import_module(f"aggregator.adaptive.{module}")


def without(part: str) -> ExitStack:
    """Return a context in which one part of the old rule is off; surveys are never designed."""
    posterior, decide = old("posterior"), old("decide")
    whole_range = old("design").Design(0, 1, 1.0)
    off: dict[str, tuple[Any, str, Any]] = {
        "atoms": (posterior, "atoms_in", lambda *_: None),
        "bends": (posterior, "_bent", list),
        "heaps": (posterior, "heap_in", lambda *_: None),
        "HMC": (posterior, "walk", _standing),
        "drift": (decide, "surprise", lambda *_: 1.0),
    }
    stack = ExitStack()
    stack.enter_context(patch.object(decide, "next_survey", lambda *_, **__: whole_range))
    if part in off:
        module, name, instead = off[part]
        stack.enter_context(patch.object(module, name, instead))
    return stack


def _standing(target: Any, psi: Floats, _lower: Floats, chains: int, _rng: object) -> Floats:
    """Return the masses of the most likely point for every draw: no posterior but its mode."""
    masses: Floats = target.masses(psi)
    return np.repeat(masses[:, None], old("walk").KEPT * chains, axis=1)


class Chosen(NamedTuple):
    """θ of one way to choose; `added`: what sums by it are corrected by."""

    way: str
    theta: int
    added: float = 0.0


class OldRule:
    """The old rule with a part off: a state, and what it says of θ."""

    def __init__(self, world: World, part: str, seed: list[int]) -> None:
        aim = old("regret").Aim(world.unit_variance, LONGEST)
        self.setting = old("decide").Setting(0, world.ceiling, world.epsilon, aim, REPORTS)
        self.state, self.world, self.part = old("decide").State(), world, part
        self.rng = np.random.default_rng([*seed, 1])

    def look(self, new: Counts) -> list[Chosen]:
        """Take an epoch's reports; return the θ of plain sums first."""
        reports = [Evidence(mechanism, counts) for mechanism, counts in new.items()]
        with without(self.part):
            self.state, found = old("decide").observe(
                self.setting, self.state, reports, rng=self.rng
            )
        kept = old("correction").corrected(self.setting, self.state)
        return [
            Chosen("plain sums", found.theta),
            Chosen("corrected sums", kept.theta, kept.bias),
            Chosen("new objective", self._by_new_objective()),
        ]

    def _by_new_objective(self) -> int:
        """Return θ as the new rule chooses it, but by the posterior's mean density."""
        posterior = self.state.posterior
        found = density(posterior.mean, posterior.edges, n=1)

        def shown(_aim: object, thetas: Any, *_: object) -> tuple[Floats, Floats]:
            tails = bias(found, thetas)
            return tails, mean_square(found, thetas) - (found.mean() - tails) ** 2

        with patch.object(choice, "_shown", shown):
            return choice.outlook(self.world.aim, {}, self.rng).best().theta


class NewRule:
    """`edge_ldp.threshold.choice`; all reports are kept, or by the old drift test forgotten."""

    def __init__(self, world: World, part: str, seed: list[int]) -> None:
        self.world, self.forgets = world, part == "drift test"
        self.kept: Counts = {}
        self.rng = np.random.default_rng([*seed, 2])

    def look(self, new: Counts) -> list[Chosen]:
        """Take an epoch's reports; return θ."""
        if self.forgets and self._shifted(new):
            self.kept = {}
        for mechanism, counts in new.items():
            self.kept[mechanism] = self.kept.get(mechanism, 0) + counts
        found = choice.outlook(self.world.aim, self.kept, self.rng).best()
        return [Chosen("new rule", found.theta)]

    def _shifted(self, new: Counts) -> bool:
        before, now = ([Evidence(m, c) for m, c in part.items()] for part in (self.kept, new))
        chance = old("drift").surprise(before, now, cells(0, self.world.ceiling))
        return bool(chance < old("decide").FALSE_ALARMS)


class PapersRule:
    """EMS of all surveys, pruned above the mode, and the cost of the papers."""

    def __init__(self, world: World, _part: str, _seed: list[int]) -> None:
        self.world, self.kept = world, np.zeros(world.survey.code_count)

    def look(self, new: Counts) -> list[Chosen]:
        """Take an epoch's reports; return θ."""
        self.kept += new[self.world.survey]
        found = prune(ems(self.world.survey, self.kept), below=choice.PRUNE_BELOW)
        threshold = choose_threshold(found, self.world.unit_variance, LONGEST)
        return [Chosen("papers' rule", threshold.theta)]


RULES: dict[str, Callable[[World, str, list[int]], OldRule | NewRule | PapersRule]] = {
    "old": OldRule,
    "new": NewRule,
    "papers": PapersRule,
}
STILL = (("old", ""), *(("old", part) for part in PARTS), ("new", ""), ("papers", ""))
SHIFT = (("old", ""), ("old", "drift"), ("new", ""), ("new", "drift test"))


def run(
    worlds: list[World], rule: tuple[str, str], seed: list[int], *, streams: bool
) -> Iterator[tuple[Any, list[Chosen]]]:
    """Yield the rule and what it says after each epoch, one world an epoch."""
    kind, part = rule
    rng, theta = np.random.default_rng(seed), 0
    looking = RULES[kind](worlds[0], part, seed)
    for world in worlds:
        new: Counts = {world.survey: world.counts(world.survey, REPORTS, rng)}
        if streams and theta:
            mechanism = stream(world.epsilon, theta)
            new[mechanism] = world.counts(mechanism, REPORTS, rng)
        found = looking.look(new)
        theta = found[0].theta
        yield looking, found


def scored(world: World, found: Chosen) -> Row:
    """Return what a θ prints and costs, over the least of each."""
    return {
        "way": found.way,
        "theta": found.theta,
        "printed": round(world.printed(found.theta), 4),
        "papers": round(world.papers(found.theta, found.added), 4),
    }


def still(world: World, seed: list[int], *, streams: bool) -> Iterator[Row]:
    """Yield the decisions of every rule at the last of the surveys."""
    for rule in STILL:
        *_, (_, found) = run([world] * EPOCHS, rule, seed, streams=streams)
        for one in found:
            yield {"rule": rule[0], "off": rule[1]} | scored(world, one)


def tables(world: World, seed: list[int], *, streams: bool) -> Iterator[Row]:
    """Yield the old rule's choice among tables, and the new rule's θ with a table for it.

    The half-widths are with the variance that each table has at the law's values.
    """
    made = old("mechanism")
    *_, (looking, found) = run([world] * EPOCHS, ("old", ""), seed, streams=streams)
    *_, (_, (chosen,)) = run([world] * EPOCHS, ("new", ""), seed, streams=streams)
    ready = made.aim_of(stream(world.epsilon, 1 << 14), LONGEST)
    for way, theta in (("old rule's θ", found[0].theta), ("new rule's θ", chosen.theta)):
        own = made.tuned_for(looking.state, theta, world.epsilon)
        shape = type(own).of(own.response, low=0, high=1 << 14)
        aims = {"ready": ready, "own": made.aim_of(shape, LONGEST)}
        best = made.choose_mechanism(looking.state, aims)
        for kind, table_of in (("ready", None), ("own", profile(shape))):
            yield {
                "rule": way,
                "off": kind,
                "way": best.name,
                "theta": theta,
                "printed": round(world.printed(theta, table=table_of), 4),
                "papers": "",
            }


def shift(world: World, seed: list[int], *, streams: bool) -> Iterator[Row]:
    """Yield the decisions after each survey since the readings grew, or shrank, threefold."""
    larger = World(_scaled(world, 3), world.ceiling, world.epsilon)
    for way, worlds in (("up", [world, larger]), ("down", [larger, world])):
        everything = [worlds[0]] * EPOCHS + [worlds[1]] * EPOCHS
        for rule in SHIFT:
            for epoch, (_, found) in enumerate(run(everything, rule, seed, streams=streams), 1):
                if epoch > EPOCHS:
                    row = scored(worlds[1], found[0])
                    name = f"{way} {epoch - EPOCHS}"
                    yield {"rule": rule[0], "off": rule[1]} | row | {"way": name}


def _scaled(world: World, factor: int) -> Floats:
    law = np.zeros(world.ceiling + 1)
    np.add.at(law, np.minimum(world.values * factor, world.ceiling), world.masses)
    return law


PARTS_OF_STUDY = {"still": still, "tables": tables, "shift": shift}


def study(laws: dict[str, Floats], out: Path, part: str, seeds: int) -> None:
    """Run what is missing in the file."""
    keys = ("part", "law", "times", "streams", "seed")
    done = {tuple(row[key] for key in keys) for row in read(out)}
    for name, law in laws.items():
        for times in TIMES:
            world = World(law, (len(law) - 1) * times, EPSILON)
            for streams in (True, False) if part == "still" else (True,):
                for seed in range(seeds):
                    case = (part, name, str(times), str(int(streams)), str(seed))
                    if case in done:
                        continue
                    start = [zlib.crc32(name.encode()), times, seed]
                    rows = PARTS_OF_STUDY[part](world, start, streams=streams)
                    key = dict(zip(keys, case, strict=True))
                    append(out, [key | row for row in rows])


def _label(row: dict[str, str]) -> str:
    if row["rule"] != "old":
        return row["way"]
    return f"{WHOLE} without {row['off']}, {row['way']}" if row["off"] else f"{WHOLE}, {row['way']}"


def _mean(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def still_table(rows: list[dict[str, str]]) -> str:
    """Return what each rule prints and costs over all runs, and how often it fails."""
    by: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        by.setdefault(_label(row), []).append(row)
    lines = []
    for label, own in by.items():
        printed = [float(row["printed"]) for row in own]
        papers = [float(row["papers"]) for row in own]
        way = own[0]["way"]
        whole = by.get(f"{WHOLE}, {way}", own)
        earned = _mean(printed) / _mean([float(row["printed"]) for row in whole]) - 1
        lines.append(
            (
                label,
                f"{_mean(printed):.3f}",
                f"{max(printed):.2f}",
                f"{earned:+.1%}" if whole is not own else "",
                f"{np.median(papers):.2f}",
                f"{max(papers):.1f}",
                sum(p > WIDE for p in printed),
                sum(p > DEAR for p in papers),
            )
        )
    head = ("rule", "half-width", "worst", "part earns", "papers' cost", "worst", ">1.5", ">10")
    return f"{len(next(iter(by.values())))} runs of each\n\n" + table(head, lines)


def failures(rows: list[dict[str, str]]) -> str:
    """Return the failures: cells and how many of their runs."""
    found: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        if float(row["printed"]) > WIDE or float(row["papers"]) > DEAR:
            beside = "with streams" if row["streams"] == "1" else "surveys alone"
            found.setdefault((_label(row), row["law"], f"×{row['times']}", beside), []).append(row)
    lines = [
        (
            *cell,
            len(runs),
            f"{max(float(r['printed']) for r in runs):.2f}",
            f"{max(float(r['papers']) for r in runs):.1f}",
        )
        for cell, runs in sorted(found.items())
    ]
    head = ("rule", "law", "ceiling", "reports", "runs", "half-width", "papers' cost")
    return table(head, lines)


def tables_table(rows: list[dict[str, str]]) -> str:
    """Return what a table for the density prints over the ready one, by law and ceiling."""
    found: dict[tuple[str, str], dict[tuple[str, str], list[float]]] = {}
    for row in rows:
        cell = found.setdefault((row["law"], f"×{row['times']}"), {})
        cell.setdefault((row["rule"], row["off"]), []).append(float(row["printed"]))
    thetas = ("old rule's θ", "new rule's θ")
    lines = [
        (*at, *(f"{_mean(cell[way, 'own']) / _mean(cell[way, 'ready']):.3f}" for way in thetas))
        for at, cell in found.items()
    ]
    return table(("law", "ceiling", *thetas), lines)


def shift_table(rows: list[dict[str, str]]) -> str:
    """Return what each rule prints and costs after a shift."""
    by: dict[tuple[str, str], dict[str, list[dict[str, str]]]] = {}
    for row in rows:
        label = row["rule"] + {"": "", "drift": " without", "drift test": " with"}[row["off"]]
        by.setdefault((label, row["times"]), {}).setdefault(row["way"], []).append(row)
    ways = [f"{way} {epoch}" for way in ("up", "down") for epoch in range(1, EPOCHS + 1)]
    lines = [
        (
            rule,
            f"×{times}",
            *(
                f"{_mean([float(r['printed']) for r in own[way]]):.2f}"
                f" ({max(float(r['printed']) for r in own[way]):.2f}),"
                f" {np.median([float(r['papers']) for r in own[way]]):.1f}"
                f" ({max(float(r['papers']) for r in own[way]):.0f})"
                for way in ways
            ),
        )
        for (rule, times), own in by.items()
    ]
    return table(("rule and drift test", "ceiling", *ways), lines)


def main() -> None:
    """Run what is missing, then print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--part", choices=PARTS_OF_STUDY, action="append", default=[])
    parser.add_argument("--laws", default=LAWS)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    laws = known(given.data)
    asked = {name: laws[name] for name in given.laws.split(",") if name in laws}
    with patch.object(choice, "SLACK", SLACK):
        for part in given.part:
            study(asked, given.out, part, given.seeds)
    rows: dict[str, list[dict[str, str]]] = {}
    for row in read(given.out):
        rows.setdefault(row["part"], []).append(row)
    shown = []
    if "still" in rows:
        shown += [still_table(rows["still"]), failures(rows["still"])]
    shown += [tables_table(rows["tables"])] if "tables" in rows else []
    shown += [shift_table(rows["shift"])] if "shift" in rows else []
    sys.stdout.write("\n".join(shown))


if __name__ == "__main__":
    main()
