"""Heavy homes that report half as often: what the mean of all is off, and whether its 95 % hold.

    python -m studies.schedule.heavy [--homes 4000] [--runs 40] [--epsilon 1] [--asleep 12]

A fifth of the homes uses four times as much power and has a second stream, which shares its
window: its ledger spends half as many reports on the first one. Homes join on any day of the first
week. Every report goes the product's own way: a ledger of `open_ledger`, a batch, a status with the
home's window, a store, `query`'s answer. A line: the error of the mean, with its standard error,
how often the interval holds, and the same as if every report stood for as much time. The truth is
of the homes that report at all: half of those with a second stream do not, at one report a window.
With `--asleep`, meters of heavy homes give nothing in so many hours after midnight; the truth is of
what was measured, and two lines more are about the hours in which all are awake.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import numpy as np

from aggregator.answers.local_time import Grouping
from aggregator.answers.lookup import read_counted, read_facts
from aggregator.answers.query import answer
from aggregator.config import parse_config
from aggregator.counting.classes import unweighted
from aggregator.counting.refusals import Rules, StreamRules, allowed_codes
from aggregator.intake.intake import commit
from aggregator.plans import planner
from aggregator.store.contract import PlanRow
from aggregator.store.sqlite.store import SqliteStore
from edge_ldp.device.frame import encode
from edge_ldp.protocol.ledger import open_ledger, scheduled
from edge_ldp.protocol.messages import Status, topic
from edge_ldp.service.mqtt import Message
from edge_ldp.sums import SHIPPED
from edge_ldp.vectorized import perturb_many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from aggregator.config import AggregatorConfig
    from aggregator.store.contract import Store
    from edge_ldp.protocol.ledger import Window
    from edge_ldp.protocol.plan import Plan

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

SLOT_S, A_DAY, DAYS = 900, 96, 28
FIRST = 1_700_006_400 // SLOT_S  # 00:00 UTC
LEVEL, HEAVY, CEILING, THETA = 500, 4, 6000, 4000
SHARE = (1, 4)
AT_ONCE = 200  # homes of one flush
HOURS = Grouping("hour-of-day", UTC)
CONFIG = """
fleet = "study"
[broker]
host = "127.0.0.1"
[store]
path = "{path}"
[[streams]]
name = "power"
id = 1
unit = "W"
ceiling = {ceiling}
epsilon = {epsilon}
"""


class Run(NamedTuple):
    """Errors of means by the truth, of all and of hours, and whose intervals hold.

    A row for weighted reports and one for others; a column for all, and one an hour all are awake.
    """

    errors: Floats
    holds: Floats
    half: float


def profile(times: int) -> Ints:
    """Return a day of a home that uses so many times LEVEL, W: most of it in the evening."""
    hours = np.arange(A_DAY) / 4
    shape = 0.5 + 1.5 * np.exp(-(((hours - 19) / 3) ** 2))
    return (LEVEL * times * shape).round().astype(np.int64)


def window_of(streams: int, epsilon: int) -> Window:
    """Return the shipped window's ε, for homes with so many streams."""
    return scheduled(round(SHIPPED.reports / epsilon), SHIPPED.slots, streams, SLOT_S)


def slots_of(window: Window, joins: int, rng: np.random.Generator) -> Ints:
    """Return the slots in which a home's ledger lets its first stream report."""
    ledger = open_ledger(window, FIRST + joins - window.slots, lambda n: int(rng.integers(n)))
    cells = np.array(ledger.cells)
    mine = cells[cells % window.streams == 0] // window.streams
    slots = np.arange(FIRST + joins, FIRST + A_DAY * DAYS)
    return slots[np.isin(slots % window.period, mine)]


def told(window: Window) -> bytes:
    """Return the status of a home: its window and streams, as its manifest has them."""
    facts = {"reports": window.reports, "slots": window.slots, "period": window.period}
    manifest = {"window": facts, "measures": [{}] * window.streams}
    return Status("online", "study", manifest=manifest).to_json()


class Home(NamedTuple):
    """A home's window, the slots in which its first stream reports, and its readings in a day.

    `joins`: after how many slots; `wakes`: before that slot of a day its meter gives nothing.
    """

    name: str
    window: Window
    slots: Ints
    readings: Ints
    joins: int
    wakes: int

    @property
    def measured(self) -> Ints:
        """How often it measured in each slot of the day."""
        slots = np.arange(self.joins, A_DAY * DAYS) % A_DAY
        return np.bincount(slots[slots >= self.wakes], minlength=A_DAY)


def homes_of(homes: int, epsilon: int, asleep: int, rng: np.random.Generator) -> list[Home]:
    """Return the homes whose ledgers give their first stream a slot at all."""
    windows = [window_of(streams, epsilon) for streams in (1, 2)]
    days = [profile(times) for times in (1, HEAVY)]
    found = []
    for at in range(homes):
        heavy = at % 5 == 0
        wakes = A_DAY * asleep // 24 if heavy else 0
        joins = int(rng.integers(7 * A_DAY))
        slots = slots_of(windows[heavy], joins, rng)
        slots = slots[slots % A_DAY >= wakes]
        found.append(Home(f"home-{at}", windows[heavy], slots, days[heavy], joins, wakes))
    return [home for home in found if len(home.slots)]


def messages(homes: Sequence[Home], plan: Plan, rng: np.random.Generator) -> list[Message]:
    """Return each home's status, and its reports."""
    values = np.concatenate([home.readings[home.slots % A_DAY] for home in homes])
    codes = perturb_many(plan.stream_mechanism, values, entropy=rng.bytes)
    surveys = perturb_many(plan.survey_mechanism, values, entropy=rng.bytes)
    surveys += plan.stream_mechanism.code_count
    codes = np.where(rng.random(len(values)) < SHARE[0] / SHARE[1], surveys, codes)
    ends = np.cumsum([len(home.slots) for home in homes])
    found = []
    for home, mine in zip(homes, np.split(codes, ends[:-1]), strict=True):
        frame = encode(1, 1, plan.epoch, home.slots.tolist(), mine.tolist())
        found.append(Message(topic("study", "status", home.name), told(home.window)))
        found.append(Message(topic("study", "report", home.name), frame))
    return found


def filled(
    config: AggregatorConfig, store: Store, homes: int, asleep: int, rng: np.random.Generator
) -> Floats:
    """Fill a store with a fleet's reports; return means of what was measured: all, and by hour."""
    stream = config.streams[0]
    epsilon = int(stream.epsilon)
    issued_s = FIRST * SLOT_S - SLOT_S
    first = planner.first_plan("study", stream, epoch=1, now_s=issued_s)
    plan = planner.following(first, stream, stream.sums(THETA), share=SHARE, now_s=issued_s)
    assert plan is not None
    for one in (first, plan):
        store.add_plan(PlanRow(1, one.epoch, one.issued_s, one.to_json()))
    now_s = float((FIRST + A_DAY * DAYS) * SLOT_S)
    rules = Rules(
        streams={1: StreamRules(SLOT_S, stream.bucket_slots, {2: allowed_codes(plan)})},
        devices=None, max_devices=homes, window_s=10**8, tolerance_s=300, now_s=now_s,
    )  # fmt: skip
    there = homes_of(homes, epsilon, asleep, rng)
    for at in range(0, len(there), AT_ONCE):
        some = messages(there[at : at + AT_ONCE], plan, rng)
        commit(store, fleet="study", messages=some, rules=rules, name=UUID(bytes=rng.bytes(16)))
    n = np.array([home.measured for home in there]).reshape(-1, 24, A_DAY // 24)
    used = n * np.array([home.readings for home in there]).reshape(n.shape)
    return np.append(used.sum() / n.sum(), used.sum((0, 2)) / n.sum((0, 2)))


def run(homes: int, epsilon: int, asleep: int, rng: np.random.Generator) -> Run:
    """Return how far off one fleet's answer is."""
    with TemporaryDirectory() as place:
        path = Path(place) / "a.db"
        text = CONFIG.format(path=path, ceiling=CEILING, epsilon=epsilon)
        config = parse_config(text, "study.toml")
        with closing(SqliteStore.open(path)) as store:
            truth = filled(config, store, homes, asleep, rng)
            stream = config.streams[0]
            counted = read_counted(store, stream, 0, 1 << 32, by=HOURS)
            facts = read_facts(store, config, stream, None, counted)
            several = [
                answer(stream, each, HOURS)
                for each in (facts, replace(facts, weights=unweighted()))
            ]
    columns = [0, *range(1 + asleep, 25)]
    found = np.array(
        [[(one.mean, one.low, one.high) for one in (each.whole, *each.groups)] for each in several],
        np.float64,
    )[:, columns]
    mean, low, high = np.moveaxis(found, 2, 0)
    truth = truth[columns]
    holds = (low <= truth) & (truth <= high)
    return Run(mean / truth - 1, holds, float(high[0, 0] - low[0, 0]) / 2 / float(truth[0]))


def main() -> None:
    """Print a line for how reports are weighed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--homes", type=int, default=4000)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--epsilon", type=int, default=1)
    parser.add_argument("--asleep", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    found = [run(args.homes, args.epsilon, args.asleep, rng) for _ in range(args.runs)]
    half = float(np.mean([one.half for one in found]))
    sys.stdout.write(f"{args.homes} homes, ε = {args.epsilon}, {args.runs} runs: ± {half:.1%}\n")
    errors, holds = (np.array([one[at] for one in found]) for at in (0, 1))
    for what, of in (("mean", slice(0, 1)), ("hours all are awake", slice(1, None))):
        for at, how in enumerate(("weighed by class", "every report alike")):
            mine, held = errors[:, at, of].mean(axis=1), holds[:, at, of]
            error = mine.std(ddof=1) / len(mine) ** 0.5 if len(mine) > 1 else float("nan")
            sys.stdout.write(f"{how}: {what} off by {mine.mean():+.2%} ± {error:.2%}")
            sys.stdout.write(f" (a run ± {mine.std():.2%}), {held.sum()} of {held.size} hold\n")


if __name__ == "__main__":
    main()
