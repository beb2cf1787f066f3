"""A year of a fleet's hourly sums: how long `load-curve` and `query` take, and what they take.

`python -m benchmarks.year sqlite URL [--days 365] [--devices 100000] [--runs 5]` fills a store with
a year of hourly counts of one stream under four plans, as readings of homes give them, tends it
until nothing is left to do, and prints the medians of reading the whole year ten times: with the
sums of hours kept, and from the counts alone; then the same after days were made of what is older
than 60 days; bytes of counts and sums; what one step of tending took, at the median and at most;
and the whole of `query` and `status`, each a process of its own, with a record of each device: the
median of so many runs, and how many took a second at most. URL as in benchmarks.stores.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import psycopg

from aggregator.answers.load_lookup import read_load_curve
from aggregator.config import parse_config
from aggregator.counting.records import Changes, Record
from aggregator.counting.seen_batches import DeviceState
from aggregator.counting.tally import Sparse, Tally
from aggregator.store.contract import LAST_BUCKET, PlanRow
from aggregator.store.opening import open_reader, open_session
from aggregator.store.rollups import tend
from benchmarks.intake_traffic import plan_of
from benchmarks.stores import open_store, place
from edge_ldp.estimate.operator import model_of
from edge_ldp.protocol.messages import Status

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from aggregator.config import AggregatorConfig
    from aggregator.counting.records import Known
    from aggregator.store.contract import Store
    from edge_ldp.protocol.plan import Plan

FIRST = 400_000  # hours since 1970
MEAN_W = 1500
SECOND_MS = 1000
CONFIG = """
fleet = "demo"
[broker]
host = "127.0.0.1"
[store]
{store}
[retention]
{retention}
[[streams]]
name = "power"
id = 1
unit = "W"
ceiling = 43470
epsilon = 1
horizon = 1000000
"""


def text_of(where: str, retention: str = "") -> str:
    kind = "url" if where.startswith("postgres") else "path"
    return CONFIG.format(store=f'{kind} = "{where}"', retention=retention)


def configured(where: str, retention: str = "") -> AggregatorConfig:
    return parse_config(text_of(where, retention), "year")


def law_of_codes(plan: Plan) -> NDArray[np.float64]:
    """Return P(code) of readings that are exponential: an estimator works longer on what is none's.

    Stream codes first, then those of surveys, as reports have them.
    """
    laws = []
    share = plan.share[0] / plan.share[1]
    for mechanism, part in ((plan.stream_mechanism, 1 - share), (plan.survey_mechanism, share)):
        model = model_of(mechanism)
        below = 1 - np.exp(-model.edges / MEAN_W)
        below[-1] = 1  # what is above is truncated
        laws.append(part * model.operator.apply(np.diff(below)))
    return np.concatenate(laws)


def fill(store: Store, days: int, devices: int) -> None:
    plan = plan_of("hybrid")
    epochs = range(1, 5)
    for epoch in epochs:
        payload = replace(plan, epoch=epoch).to_json()
        store.add_plan(PlanRow(1, epoch, 0, payload))
    law = np.tile(law_of_codes(plan), 24)
    rng = np.random.default_rng(1)
    none: frozenset[str] = frozenset()
    for day in range(days):
        hours = FIRST + day * 24 + np.arange(24)
        cells = (hours[:, None] << 16 | np.arange(len(law) // 24)).ravel()
        counts = rng.poisson(devices * 4 * law)
        epoch = epochs[day * len(epochs) // days]
        tally = Tally({(1, epoch, 0, 0): Sparse(cells[counts > 0], counts[counts > 0])})
        presence = {(1, int(hour), 0, 0): devices * 4 for hour in hours}
        made = Changes({}, {}, tally, presence, {}, none, none, none)
        store.update(frozenset(), none, 1, partial(_give, made))


def _give(made: Changes, _: Known) -> Changes:
    return made


def read_ms(config: AggregatorConfig, times: int = 10) -> tuple[str, int]:
    spent: list[float] = []
    cpu: list[float] = []
    hours = 0
    with closing(open_reader(config, "year")) as reader:
        for _ in range(times):
            begun, ours = time.perf_counter(), time.process_time()
            curve = read_load_curve(reader, config.streams[0], 0, LAST_BUCKET)
            spent.append((time.perf_counter() - begun) * 1000)
            cpu.append((time.process_time() - ours) * 1000)
            hours = len(curve.bucket)
    return f"{median(spent):.0f} ms ({median(cpu):.0f} of our CPU)", hours


def enrol(store: Store, devices: int) -> None:
    """Give every device a row and an account, as after a year."""
    none: frozenset[str] = frozenset()
    for begin in range(0, devices, 5000):
        names = [f"home-{at:07d}" for at in range(begin, min(devices, begin + 5000))]
        last = (FIRST + 8760) * 4 - 1
        record = Record(DeviceState(365, last), FIRST * 4, counted=2920, created=2920, next=366)
        records = {(name, 1): record for name in names}
        told = {name: Status("online", "0.1.0") for name in names}
        made = Changes(records, told, Tally(), {}, {}, frozenset(names), none, none)
        store.update(frozenset(), none, (FIRST + 8760) * 3600, partial(_give, made))


def command_ms(config: Path, *command: str, times: int) -> str:
    """Return what a command takes, the start of Python included.

    Once more at first: what is installed is compiled, as this then is.
    """
    compiled = {key: at for key, at in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    line = [sys.executable, "-m", "edge_ldp.cli", "aggregator", *command, "-c", str(config)]
    spent, cpu = [], []
    for _ in range(times + 1):
        begun, before = time.perf_counter(), os.times()
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL, env=compiled)
        spent.append((time.perf_counter() - begun) * 1000)
        after = os.times()
        user, system = after.children_user, after.children_system
        cpu.append((user + system - before.children_user - before.children_system) * 1000)
    within = sum(one <= SECOND_MS for one in spent[1:])
    took = f"{median(spent[1:]):.0f} ms ({median(cpu[1:]):.0f} of its CPU)"
    return f"{took}, at most {max(spent[1:]):.0f}; {within} of {times} within a second"


def tend_ms(config: AggregatorConfig, now_s: float) -> list[float]:
    spent = []
    with closing(open_session(config, "year")) as session:
        more = True
        while more:
            begun = time.perf_counter()
            more = tend(session, config, now_s)
            spent.append((time.perf_counter() - begun) * 1000)
    return spent


def rest(where: str) -> None:
    """Have a PostgreSQL server do now what it owes for a year written in a minute."""
    if where.startswith("postgres"):
        with psycopg.connect(where, autocommit=True) as db:
            db.execute("VACUUM ANALYZE")
            db.execute("CHECKPOINT")


def sizes(where: str) -> str:
    if not where.startswith("postgres"):
        return f"file {Path(where).stat().st_size / 1e6:.1f} MB"
    with psycopg.connect(where, autocommit=True) as db:
        found = [
            f"{table} {size / 1e6:.1f} MB"
            for table in ("counts", "count_deltas", "sums", "presence")
            for (size,) in db.execute(f"SELECT pg_total_relation_size('{table}')".encode())
        ]
    return ", ".join(found)


def measure(name: str, days: int, devices: int, runs: int) -> None:
    with place(name) as where:
        config = configured(where)
        with closing(open_store(where, alone=True)) as store:
            fill(store, days, devices)
            enrol(store, devices)
            if hasattr(store, "merge"):
                store.merge()
        end_s = (FIRST + days * 24) * 3600.0
        engine = name.partition(":")[0]
        print(f"{engine}: {sizes(where)}")  # noqa: T201
        counts_ms, hours = read_ms(config, 3)
        steps = tend_ms(config, end_s)
        sums_ms, _ = read_ms(config)
        rest(where)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "aggregator.toml")
            file.write_text(text_of(where))
            for command in (("query",), ("query", "--no-density"), ("status", "--summary")):
                took = command_ms(file, *command, times=runs)
                print(f"  {' '.join(command)}: {took}")  # noqa: T201
        print(f"  {hours} hours: {sums_ms} with sums, {counts_ms} from counts")  # noqa: T201
        print(f"  a step: {median(steps):.1f} ms, at most {max(steps):.1f}; {len(steps)} steps")  # noqa: T201
        config = configured(where, "hour_days = 60")
        steps = tend_ms(config, end_s)
        rolled_ms, hours = read_ms(config)
        print(f"  {hours} hours: {rolled_ms} with days made of what is older")  # noqa: T201
        print(f"  a step: {median(steps):.1f} ms, at most {max(steps):.1f}; {len(steps)} steps")  # noqa: T201
        print(f"  {sizes(where)}")  # noqa: T201


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stores", nargs="+")
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--devices", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    for name in args.stores:
        measure(name, args.days, args.devices, args.runs)


if __name__ == "__main__":
    main()
