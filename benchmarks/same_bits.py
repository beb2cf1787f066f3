"""The counts of one bad fleet: the same bits in every store and by every engine.

`python -m benchmarks.same_bits --devices 2000 --rounds 100` sends the same 10,000,000 reports (1 %
of frames twice, 2 % late, 1 % of sendings lost, 2 % of devices lying, 1 % losing their state) to an
aggregator on SQLite, on PostgreSQL, and to three workers on PostgreSQL, while services and brokers
are killed (SIGKILL) at random moments. Each archive is then counted by DuckDB and by Spark. Printed
are one JSON object a line; the exit code is 0 if every count of every store and engine is the truth
of the generator, all digests are equal, and every account adds up.

It takes what the tests take: mosquitto, and PostgreSQL's programs. `--place` must be on a disk for
figures of durable commits.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregator.config import load_config
from aggregator.replay.comparison import digest_of, tally_of_rows
from aggregator.store.opening import open_reader
from benchmarks.fleet_site import START_S, Site, command, site_of
from tests.postgres import running_postgres

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LAST_BUCKET = 1 << 32


def load(site: Site, args: argparse.Namespace) -> dict[str, Any]:
    """Send the fleet's reports while things are killed; return what became of them."""
    over = threading.Event()
    chaos = threading.Thread(target=_disturb, args=(site, args, over))
    chaos.start()
    spec = [f"--{name}={getattr(args, name)}" for name in ("devices", "rounds", "reports", "seed")]
    rate = ["--rate", str(args.frames), "--start", str(START_S), "--wait", "120"]
    try:
        found: dict[str, Any] = command(site, "simulate", "fleet", *spec, *rate)
    finally:
        over.set()
        chaos.join()
    return found


def _disturb(site: Site, args: argparse.Namespace, over: threading.Event) -> None:
    rng = np.random.default_rng(args.seed)
    over.wait(args.lead)  # until the fleet has its plan
    for _ in range(args.kills):
        if over.wait(args.every * rng.uniform(0.5, 1.5)):
            return
        if any(one.poll() is not None for one in site.running.values()):
            return  # a service that ends by itself is told by the counts
        site.disturb(rng)


def digest_of_store(site: Site) -> str:
    """Return the digest of every count in the store."""
    config = load_config(site.config)
    reader = open_reader(config, str(site.config))
    try:
        return digest_of(
            tally_of_rows({s.id: reader.counts(s.id, 0, LAST_BUCKET) for s in config.streams})
        )
    finally:
        reader.close()


def measure(kind: str, site: Site, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the row of a store, then one of each engine that counts its archive."""
    view = load(site, args)
    for at in [*site.running]:
        site.end(at, signal.SIGTERM)
    accounts = view["accounts"]
    settled = sum(accounts[name] for name in ("counted", "rejected", "expired", "pending"))
    made = args.devices * args.rounds * args.reports
    right = not view["wrong"] and not view["accounts_wrong"] and view["counted"] == view["expected"]
    yield {
        "what": kind,
        "right": right and accounts["created"] == settled == made - view["gone"],
        "digest": digest_of_store(site),
        "seconds": view["seconds"],
        "kills": site.kills,
        "expected": view["expected"],
        "wrong_cells": view["wrong"],
        "frames": view["messages"],
        "duplicates_refused": view["refused"].get("duplicate", 0),
        "gone": view["gone"],
        **accounts,
    }
    for engine in args.engines:
        began = time.monotonic()
        replayed = command(site, "replay", "--engine", engine)
        compared = replayed["compared"]
        yield {
            "what": f"{engine} of {kind}",
            "right": compared["equal"] == compared["cells"] > 0,
            "digest": replayed["digest"],
            "seconds": round(time.monotonic() - began, 3),
            "counting_s": replayed["seconds"]["count"],
            "counted": replayed["reports"],
            "cells": compared["cells"],
        }


def main(argv: Sequence[str]) -> int:
    """Run it; return 0 if everything is right and the same."""
    args = _parser().parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nothing is left running
    rows = []
    with ExitStack() as stack:
        place = args.place or Path(stack.enter_context(TemporaryDirectory(prefix="same-bits-")))
        for kind in args.stores:
            with ExitStack() as mine:
                is_sqlite = kind == "sqlite"
                server = None if is_sqlite else mine.enter_context(running_postgres(durable=True))
                home = place / kind.replace(":", "-")
                site = mine.enter_context(site_of(kind, home, server, args))
                for row in measure(kind, site, args):
                    rows.append(row)
                    sys.stdout.write(json.dumps(row) + "\n")
                    sys.stdout.flush()
    same = len({row["digest"] for row in rows}) == 1
    right = all(row["right"] for row in rows)
    sys.stdout.write(json.dumps({"same": same, "right": right}) + "\n")
    return 0 if same and right else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.same_bits", description=__doc__)
    add = parser.add_argument
    add("--devices", type=int, default=2000)
    add("--rounds", type=int, default=100)
    add("--reports", type=int, default=50)
    add("--seed", type=int, default=1)
    add("--frames", type=float, default=1e6, help="a second at most")
    add("--every", type=float, default=30.0, help="seconds between kills, about")
    add("--kills", type=int, default=1000, help="at most, for each store")
    add("--clock", type=float, default=20_000.0, help="seconds of the fleet's in a real one")
    add("--lead", type=float, default=5.0, help="seconds before anything is killed")
    add("--stores", nargs="+", default=["sqlite", "postgres:1", "postgres:3"])
    add("--engines", nargs="*", default=["duckdb", "spark"])
    add("--place", type=Path, help="an empty directory that stays")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
