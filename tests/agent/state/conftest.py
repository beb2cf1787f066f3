"""Devices for the tests of the state."""

from pathlib import Path

import pytest

from tests.agent.samples import make_plan
from tests.agent.state.device_bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path / "s.db")
    made.pass_slots(2)  # a new device's window is spent at first
    return made


@pytest.fixture
def running(bench: Bench) -> Bench:
    assert bench.device.accept_plan("power", make_plan().to_json()) is None
    return bench
