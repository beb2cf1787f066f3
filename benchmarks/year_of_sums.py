"""A year of homes' own sums: how long `query` takes, and what they take on the disk.

`python -m benchmarks.year_of_sums sqlite URL [--devices 100000] [--days 28] [--cells 1]` and so on
fills stores with a year of releases of one stream, as flushes keep them, and prints the median of
ten answers of the whole year, what that takes of a CPU, and the time of the whole command. An
answer reads totals alone, so its time is the same for any devices. URL as in benchmarks.stores.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from datetime import UTC
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from aggregator.answers.sums_answer import read_sums_answer
from aggregator.config import parse_config
from aggregator.counting.records import Changes, KeptSums
from aggregator.counting.tally import Tally
from benchmarks.stores import open_store, place
from edge_ldp.device.sums_frame import SumsFrame, encode_sums

if TYPE_CHECKING:
    from aggregator.config import StreamTable
    from aggregator.counting.records import Known
    from aggregator.store.contract import Store

YEAR = 365
SPAN, SCALE = 43_470, 527_074
ASKED = 10
CONFIG = """
fleet = "year"
[broker]
host = "127.0.0.1"
[store]
{store}
[[streams]]
name = "power"
id = 1
unit = "W"
ceiling = 43470
epsilon = 1
"""


def main() -> None:
    """Fill, ask and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stores", nargs="+", metavar="sqlite|URL")
    parser.add_argument("--devices", type=int, default=100_000)
    parser.add_argument("--days", type=int, default=28)
    parser.add_argument("--cells", type=int, default=1)
    parser.add_argument("--groups", type=int, default=1)
    args = parser.parse_args()
    for name in args.stores:
        with place(name) as where:
            measure(where, args)


def measure(where: str, args: argparse.Namespace) -> None:
    """Fill one store, ask it, and print."""
    text = CONFIG.format(store=f'{"url" if "://" in where else "path"} = "{where}"')
    config = parse_config(text, "year.toml")
    store = open_store(where, alone=True)
    begun = time.perf_counter()
    periods = range(20_000 // args.days, 20_000 // args.days + YEAR // args.days)
    for period in periods:
        made = changes(tuple(release(at, period, args) for at in range(args.devices)))
        store.update(frozenset(), frozenset(), 0, partial(given, made))
    filled = time.perf_counter() - begun
    took = [asked(store, config.streams[0], args.devices) for _ in range(ASKED)]
    store.close()
    wall, cpu = (1000 * median(column) for column in zip(*took, strict=True))
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        words = [sys.executable, "-m", "edge_ldp.cli", "aggregator", "query", "--mode", "sums"]
        words += ["--no-density", "-c", file.name]
        begun = time.perf_counter()
        subprocess.run(words, check=True, capture_output=True)
        whole = time.perf_counter() - begun
    releases = args.devices * len(periods)
    size = f", {Path(where).stat().st_size / 1e6:,.0f} MB" if "://" not in where else ""
    sys.stdout.write(f"{releases:,} releases kept in {filled:.0f} s{size}\n")
    told = f"the year's answer {wall:.1f} ms ({cpu:.1f} of a CPU), the command {whole:.2f} s\n"
    sys.stdout.write(told)


def asked(store: Store, stream: StreamTable, devices: int) -> tuple[float, float]:
    """Return how long the whole year's answer takes, and its CPU, seconds."""
    begun = time.perf_counter(), time.process_time()
    found = read_sums_answer(store, stream, (None, None), UTC, least=10)
    if found is None or found.whole.homes != devices:
        raise SystemExit("not the homes that were kept")
    return time.perf_counter() - begun[0], time.process_time() - begun[1]


def given(made: Changes, _: Known) -> Changes:
    """Return what is decided whatever is known."""
    return made


def release(device: int, period: int, args: argparse.Namespace) -> KeptSums:
    """Return a home's release of a period."""
    days, cells, group = args.days, args.cells, device % args.groups
    slots = days * 96 // cells
    y = slots * 2000 + (device * 7919 + period * 104_729) % SCALE
    sums = "W", "power", (slots,) * cells, (y,) * cells
    frame = SumsFrame(*(0, 7, period, period, 900, days, cells, 1, 0, 0, SPAN, SCALE, *sums))
    first_s = period * days * 86_400
    end_s = first_s + days * 86_400
    payload = encode_sums(frame)
    name = f"home-{device:07}"
    return KeptSums(name, "power", first_s, end_s, group, held=False, payload=payload)


def changes(kept: tuple[KeptSums, ...]) -> Changes:
    """Return a flush of these alone."""
    none = frozenset[str]()
    return Changes({}, {}, Tally(), {}, {}, none, none, none, summed=kept)


if __name__ == "__main__":
    main()
