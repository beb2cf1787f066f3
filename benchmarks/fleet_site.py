"""A broker, a store and the services on it, in a directory: what `same_bits` disturbs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aggregator.config import load_config
from aggregator.plans.planner import first_plan
from aggregator.store.contract import PlanRow
from aggregator.store.opening import open_store
from tests.integration.conftest import RealBroker

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from pathlib import Path

    import numpy as np

    from tests.postgres import PostgresServer

START_S = 1_700_006_400
# what a kill loses of the broker's is sent again; saving after each message would be all it does
BROKER = """
listener {port} 127.0.0.1
allow_anonymous true
user root
persistence true
persistence_location {directory}/
autosave_interval 20
max_queued_messages 10000000
max_inflight_messages 1000
log_dest file {directory}/mosquitto.log
"""
PROGRAM = [sys.executable, "-m", "edge_ldp.cli"]
CONFIG = """
fleet = "demo"
[broker]
host = "127.0.0.1"
port = {port}
{share}
[store]
{store}
[archive]
path = "{place}/archive"
shards = 4
[clock]
origin_s = {origin}
started_s = {started}
rate = {rate}
[intake]
resend_window_s = 31622400
receipt_interval_s = 604800
receipts_per_s = 5000
[[streams]]
name = "power"
id = 1
unit = "W"
ceiling = 4095
epsilon = 4
size = 64
survey_size = 64
horizon = 1000000
min_survey_reports = 1000000000
revise_slots = 1000000000
"""


@dataclass
class Site:
    """A broker, and the workers of one store."""

    place: Path
    broker: RealBroker
    config: Path
    workers: int
    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    kills: dict[str, int] = field(default_factory=lambda: {"service": 0, "broker": 0})

    def start(self, at: int) -> None:
        """Start a worker; it may not be connected yet."""
        name = ["--worker", f"w{at}"] if self.workers > 1 else []
        command = [*PROGRAM, "aggregator", "run", "-c", str(self.config), *name]
        with (self.place / f"service-{at}.log").open("ab") as log:
            self.running[at] = subprocess.Popen(command, stderr=log)

    def end(self, at: int, number: int) -> None:
        """End a worker by a signal."""
        process = self.running.pop(at)
        process.send_signal(number)
        process.wait(30)

    def disturb(self, rng: np.random.Generator) -> None:
        """Kill the broker, or a worker, and start it again."""
        if rng.random() < 1 / 3:
            self.kills["broker"] += 1
            self.broker.restart()
            return
        self.kills["service"] += 1
        at = int(rng.integers(self.workers))
        self.end(at, signal.SIGKILL)
        self.start(at)


@contextmanager
def site_of(
    kind: str, place: Path, postgres: PostgresServer | None, args: argparse.Namespace
) -> Iterator[Site]:
    """Give everything that runs for one store: `sqlite`, or `postgres:WORKERS`."""
    workers = int(kind.partition(":")[2] or 1)
    place.mkdir(parents=True)
    broker = RealBroker(place, BROKER)
    store = f'path = "{place}/a.db"' if postgres is None else f'url = "{postgres.new_database()}"'
    config = place / "a.toml"
    config.write_text(
        CONFIG.format(
            place=place,
            port=broker.port,
            share='share = "aggregators"' if workers > 1 else "",
            store=store,
            origin=START_S,
            started=time.time(),
            rate=args.clock,
        )
    )
    issue_plan(config)
    site = Site(place, broker, config, workers)
    broker.start()
    try:
        for at in range(workers):
            site.start(at)
        yield site
        for at in [*site.running]:
            site.end(at, signal.SIGTERM)
    finally:
        for at in [*site.running]:
            site.end(at, signal.SIGKILL)
        broker.kill()


def issue_plan(path: Path) -> None:
    """Put the plan into the new store, so that it is the same everywhere."""
    config = load_config(path)
    store = open_store(config, str(path))
    try:
        for stream in config.streams:
            plan = first_plan(config.fleet, stream, epoch=1, now_s=START_S)
            store.add_plan(PlanRow(stream.id, plan.epoch, START_S, plan.to_json()))
    finally:
        store.close()


def command(site: Site, *words: str) -> Any:
    """Return the JSON that one of the program's commands prints."""
    done = subprocess.run(
        [*PROGRAM, *words, "-c", str(site.config), "--json"], capture_output=True, check=False
    )
    if not done.stdout:
        raise RuntimeError(done.stderr.decode())
    return json.loads(done.stdout)
