"""The load generator against an aggregator that runs, through a real broker, with an archive."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.aggregator_bench import Aggregator, until
from tests.integration.conftest import RealBroker
from tests.processes import run_told

LOAD = ["--devices", "40", "--rounds", "12", "--reports", "20", "--rate", "2000", "--wait", "20"]
BAD = ["--duplicates", "0.1", "--delayed", "0.2", "--liars", "0.3"]


@pytest.fixture
def aggregator(tmp_path: Path, broker: RealBroker) -> Iterator[Aggregator]:
    made = Aggregator(tmp_path, broker)
    text = made.config.read_text()
    made.config.write_text(text + f'\n[archive]\npath = "{tmp_path}/archive"\nshards = 2\n')
    made.start()
    yield made
    made.kill()


def command(aggregator: Aggregator, *words: str) -> list[str]:
    program = [sys.executable, "-m", "edge_ldp.cli", *words]
    return [*program, "-c", str(aggregator.config), "--json"]


def run(aggregator: Aggregator, *words: str) -> Any:
    done = run_told(command(aggregator, *words))
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)


def start(aggregator: Aggregator, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command(aggregator, *words), stdout=subprocess.PIPE)


async def test_bad_traffic_through_a_broker_is_counted_and_archived_as_sent(
    aggregator: Aggregator,
) -> None:
    await until(lambda: aggregator.log.exists() and "connected" in aggregator.log.read_text())
    view = run(aggregator, "simulate", "fleet", *LOAD, *BAD)
    assert view["wrong"] == 0
    assert view["counted"] == view["expected"] > 6000
    while_it_runs = run(aggregator, "replay")
    assert while_it_runs["reports"] == view["counted"]
    assert aggregator.end(signal.SIGTERM) == 0
    assert aggregator.refused()["duplicate"] > 20  # told up to a second after they came
    again = run(aggregator, "replay")
    assert again["compared"]["equal"] == again["compared"]["cells"]
    assert again["reports"] == view["counted"]
