"""A real curator agent, killed at random: nothing lost that was released, nothing twice, no noise.

Real broker, meter on a pseudo-terminal, agent and aggregator, on a clock 2,400 times as fast. Each
value has its own noise here, so that noise that was used again would show.
"""

import io
import json
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edge_ldp import cli
from tests.forked import Forked
from tests.integration.conftest import RealBroker

SLOT_S = 60  # so that a restart lasts no day of the clock, after which a new series begins
T0 = 1_800_000_000
RATE = 2400.0
SLOTS_A_SECOND = RATE / SLOT_S
THETA = 4000
CHUNK = 64
WAIT_S = 240.0
RUN = 6  # noises in a row that are never met twice by chance: each is one of 100,000 and more
AGENT = f"""\
mode = "curator"
[device]
fleet = "street"
id = "home-1"
state = "{{place}}/agent/state.db"
[broker]
host = "127.0.0.1"
port = {{port}}
[meter]
port = "{{place}}/meter.port"
date_by = "meter"
clock_tolerance_s = 8640000
[clock]
origin_s = {T0}.0
started_s = {{started_s!r}}
rate = {RATE}
[curator]
epsilon = 0.1
method = "fixed"
theta = {THETA}
structure = "flat"
fanout = 64
pruned = 0
chunk = {CHUNK}
[[streams]]
name = "power"
quantity = "power"
unit = "W"
ceiling = {THETA}
slot_seconds = {SLOT_S}
[sending]
receipt_interval_s = 600.0
jitter_s = 0
"""
AGGREGATOR = f"""\
fleet = "street"
[broker]
host = "127.0.0.1"
port = {{port}}
[store]
path = "{{place}}/aggregator.db"
[clock]
origin_s = {T0}.0
started_s = {{started_s!r}}
rate = {RATE}
[intake]
receipt_interval_s = 600
tolerance_s = 86400
resend_window_s = 31622400
[[streams]]
name = "power"
id = 1
unit = "W"
ceiling = {THETA}
slot_seconds = {SLOT_S}
epsilon = 1
horizon = 96
"""


class Home:
    """Processes around one state file; `kill_and_restart` is SIGKILL, then a new agent."""

    def __init__(self, place: Path, broker: RealBroker, slots: int) -> None:
        self.place = place
        self.started_s = round(time.time() + 3.0, 3)
        self.values = np.random.default_rng(7).integers(0, THETA, slots)
        np.savez(place / "series.npz", power_w=self.values)
        facts: dict[str, Any] = {"place": place, "port": broker.port, "started_s": self.started_s}
        (place / "agent").mkdir()
        self.agent_config = place / "agent" / "agent.toml"
        self.agent_config.write_text(AGENT.format(**facts))
        self.aggregator_config = place / "aggregator.toml"
        self.aggregator_config.write_text(AGGREGATOR.format(**facts))
        self.processes: list[Forked] = []

    def begin(self) -> None:
        place = self.place
        self.start("aggregator", "run", "-c", str(self.aggregator_config))
        self.meter = self.start(
            *("simulate", "meter", "--link", str(place / "meter.port"), "--wait"),
            *("--data", f"{place / 'series.npz'}:power_w", "--step", str(SLOT_S)),
            *("--start", f"{time.strftime('%FT%TZ', time.gmtime(T0))}", "--origin", str(T0)),
            *("--started", repr(self.started_s), "--rate", str(RATE)),
        )
        self.wait((place / "meter.port").is_symlink)
        self.agent = self.start_agent()

    def start(self, *words: str) -> Forked:
        process = Forked(words, log=self.place / f"{words[0]}-{len(self.processes)}.log")
        self.processes.append(process)
        return process

    def start_agent(self) -> Forked:
        return self.start("agent", "run", "-c", str(self.agent_config))

    def kill_and_restart(self) -> None:
        self.agent.send_signal(signal.SIGKILL)
        self.agent.wait()
        self.agent = self.start_agent()

    def ask(self, part: str, verb: str, config: Path) -> Any:
        """Return what a command prints; asked often, so it begins no process of its own."""
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(io.StringIO()):
            cli.main([part, verb, "-c", str(config), "--json"])
        return json.loads(printed.getvalue() or "{}")

    def wait(self, condition: Any, timeout_s: float = WAIT_S) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, "not in time"
            time.sleep(0.05)

    def settled(self) -> bool:
        """Say whether every value that the device made is counted by the aggregator."""
        status = self.ask("agent", "status", self.agent_config)
        made = sum(row["created"] for row in status.get("streams", ()))
        rows = self.ask("aggregator", "status", self.aggregator_config).get("curated", [])
        return bool(rows) and made > 0 and rows[0]["counted"] == made and not rows[0]["gaps"]

    def released(self) -> list[tuple[int, int, int, int]]:
        """Return (slot, series, position, value) as the aggregator stored them."""
        path = f"file:{self.place}/aggregator.db?mode=ro"
        query = "SELECT slot, series, position, value FROM released_values ORDER BY slot"
        with closing(sqlite3.connect(path, uri=True)) as db:
            return db.execute(query).fetchall()

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        for process in self.processes:
            try:
                process.wait(300)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def kill_at_random(home: Home, kills: int) -> None:
    pauses = np.random.default_rng(5)  # when a test kills
    home.wait(lambda: time.time() > home.started_s + 0.5)
    for _ in range(kills):
        time.sleep(float(pauses.uniform(0.2, 1.3)))
        home.kill_and_restart()
    home.wait(lambda: home.meter.poll() is not None, WAIT_S + 2 * kills)
    home.wait(home.settled)


def check(home: Home) -> None:
    rows = home.released()
    status = home.ask("aggregator", "status", home.aggregator_config)
    (account,) = status["curated"]
    assert account["created"] == account["counted"] == len(rows)
    assert account["rejected"] == account["conflicts"] == account["expired"] == 0
    assert len({row[1] for row in rows}) == 1, "a restart began a new series"
    assert [row[2] for row in rows] == list(range(len(rows))), "noise was lost, or used twice"
    assert len({row[0] for row in rows}) == len(rows)
    first = T0 // SLOT_S
    noises = [value - int(home.values[slot - first]) for slot, _, _, value in rows]
    runs = Counter(tuple(noises[at : at + RUN]) for at in range(len(noises) - RUN + 1))
    assert max(runs.values()) == 1, "the same noise twice"
    ledger = home.ask("agent", "ledger", home.agent_config)["curated"]
    assert ledger["released"] == len(rows)
    assert ledger["series"][0]["chunks"] == -(-len(rows) // CHUNK)


@pytest.fixture
def home(tmp_path: Path, broker: RealBroker, request: pytest.FixtureRequest) -> Iterator[Home]:
    """Give a home whose agent will be killed as often as the test says."""
    place = tmp_path / "home"
    place.mkdir()
    made = Home(place, broker, int(SLOTS_A_SECOND * (4 + 1.6 * request.param)))
    try:
        made.begin()
        yield made
    finally:
        made.end()


@pytest.mark.parametrize("home", [3], indirect=True)
def test_a_curator_killed_a_few_times_loses_and_doubles_nothing_AGT_01_AGT_03(home: Home) -> None:
    kill_at_random(home, 3)
    assert len(home.released()) > 50
    check(home)


@pytest.mark.slow
@pytest.mark.parametrize("home", [60], indirect=True)
def test_a_curator_killed_sixty_times_loses_and_doubles_nothing_AGT_01_AGT_17(home: Home) -> None:
    kill_at_random(home, 60)
    assert len(home.released()) > 500
    check(home)
