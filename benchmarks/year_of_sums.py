"""A year of homes' own sums: how long `query` takes, and what they take on the disk.

`python -m benchmarks.year_of_sums [--devices 100000] [--days 28]` fills a SQLite store with a year
of releases of one stream, as flushes keep them, and prints the median of ten answers of the whole
year, the time of the whole command, and the bytes of the file.
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
from aggregator.store.sqlite.store import SqliteStore
from edge_ldp.device.sums_frame import SumsFrame, encode_sums

if TYPE_CHECKING:
    from aggregator.config import StreamTable
    from aggregator.counting.records import Known

YEAR = 365
SPAN, SCALE = 43_470, 527_074
ASKED = 10
CONFIG = """
fleet = "year"
[broker]
host = "127.0.0.1"
[store]
path = "{path}"
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
    parser.add_argument("--devices", type=int, default=100_000)
    parser.add_argument("--days", type=int, default=28)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as where:
        path = Path(where) / "year.db"
        config = parse_config(CONFIG.format(path=path), "year.toml")
        file = Path(where) / "year.toml"
        file.write_text(CONFIG.format(path=path))
        store = SqliteStore.open(path)
        begun = time.perf_counter()
        periods = range(20_000 // args.days, 20_000 // args.days + YEAR // args.days)
        for period in periods:
            every = (release(at, period, args.days) for at in range(args.devices))
            made = changes(tuple(every))
            store.update(frozenset(), frozenset(), 0, partial(given, made))
        filled = time.perf_counter() - begun
        took = [asked(store, config.streams[0], args.devices) for _ in range(ASKED)]
        store.close()
        words = [sys.executable, "-m", "edge_ldp.cli", "aggregator", "query", "--mode", "sums"]
        begun = time.perf_counter()
        subprocess.run([*words, "--no-density", "-c", str(file)], check=True, capture_output=True)
        whole = time.perf_counter() - begun
        releases = args.devices * len(periods)
        size = path.stat().st_size / 1e6
        sys.stdout.write(f"{releases:,} releases kept in {filled:.0f} s, {size:,.0f} MB\n")
        told = f"the year's answer {1000 * median(took):.1f} ms, the command {whole:.2f} s\n"
        sys.stdout.write(told)


def asked(store: SqliteStore, stream: StreamTable, devices: int) -> float:
    """Return how long the whole year's answer takes, seconds."""
    begun = time.perf_counter()
    asked = {"since_s": None, "until_s": None, "group": None}
    found = read_sums_answer(store, stream, **asked, least=10, enrolled=devices, zone=UTC)
    if found is None or found.whole.homes != devices:
        raise SystemExit("not the homes that were kept")
    return time.perf_counter() - begun


def given(made: Changes, _: Known) -> Changes:
    """Return what is decided whatever is known."""
    return made


def release(device: int, period: int, days: int) -> KeptSums:
    """Return a home's release of a period."""
    slots = days * 96
    y = slots * 2000 + (device * 7919 + period * 104_729) % SCALE
    frame = SumsFrame(
        *(0, 7, period, period, 900, days, 1, 1, 0, 0, SPAN, SCALE, "W", "power", (slots,), (y,))
    )
    first_s = period * days * 86_400
    end_s = first_s + days * 86_400
    payload = encode_sums(frame)
    return KeptSums(f"home-{device:07}", "power", first_s, end_s, 0, held=False, payload=payload)


def changes(kept: tuple[KeptSums, ...]) -> Changes:
    """Return a flush of these alone."""
    none = frozenset[str]()
    return Changes({}, {}, Tally(), {}, {}, none, none, none, summed=kept)


if __name__ == "__main__":
    main()
