"""docs/first-hour-operator.md, played as it stands: from `setup` to kWh for 50 homes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import needs
from tests.integration.conftest import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "first-hour-operator.md"
INSTALLING = ("sudo ", "python3 -m venv")  # what is here already
DIRECTORY = "/tmp/rehearsal"  # noqa: S108 (the page names it)
TEN_MINUTES_S = 600
ENDED_S = 60


def commands_of(page: str, heading: str) -> list[str]:
    """Return the commands under a heading."""
    block = re.search(rf"## {heading}\n+```sh\n(.*?)```", page, re.DOTALL)
    assert block
    return block[1].splitlines()


@pytest.fixture
def place() -> Iterator[Path]:
    """Give a directory that a broker's user may enter; its processes are ended by their ids."""
    made = Path(tempfile.mkdtemp(prefix="hour-", dir="/tmp"))
    made.chmod(0o755)
    yield made
    for file in ("running", "it/broker/data/mosquitto.pid"):
        with suppress(OSError, ValueError):
            end(int((made / file).read_text()))
    shutil.rmtree(made)


def end(pid: int) -> None:
    """End a process that is nobody's child, and wait until it is gone."""
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + ENDED_S
    while Path(f"/proc/{pid}/cmdline").read_bytes():  # empty once it only waits to be reaped
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_page_has_at_most_eight_commands() -> None:
    page = PAGE.read_text()
    assert len(commands_of(page, "A rehearsal")) <= 8
    assert len(commands_of(page, "Real homes")) <= 8


def test_its_commands_lead_to_energy_with_an_interval_within_ten_minutes(place: Path) -> None:
    """Only the directory and the port are others than on the page."""
    needs.program("mosquitto")
    tools = place / "bin"
    tools.mkdir()
    run = tools / "edge-ldp"
    run.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m edge_ldp.cli "$@"\n')
    run.chmod(0o755)
    lines = [
        line
        for line in commands_of(PAGE.read_text(), "A rehearsal")
        if not line.startswith(INSTALLING)
    ]
    assert lines
    background = [
        f"{line}\necho $! > {place}/running" if line[-1] == "&" else line for line in lines
    ]
    script = "\n".join(["set -e", *background, f"{lines[-1]} --json > {place}/answer"])
    script = script.replace(DIRECTORY, f"{place}/it").replace("18831", str(free_port()))
    path = f"{tools}:{os.environ['PATH']}:/usr/sbin"
    begun = time.monotonic()
    with (place / "said").open("wb") as out:  # no pipe: what runs on would hold it open
        done = subprocess.run(
            ["bash", "-c", script],
            check=False,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
            stdout=out,
            stderr=subprocess.STDOUT,
            timeout=TEN_MINUTES_S,
        )
    spent_s = time.monotonic() - begun
    said = (place / "said").read_text()
    assert done.returncode == 0, said
    found = json.loads((place / "answer").read_text())
    whole = found["whole"]
    told = re.search(r"end: days (\d+), .*created (\d+), confirmed (\d+), pending 0", said)
    assert told
    created, confirmed = int(told[2]), int(told[3])
    assert int(told[1]) >= 27  # of the first day what ended before there was a plan is left out
    assert (found["counts"]["counted"], found["counts"]["rejected"]) == (created, 0)
    assert confirmed == created > 50 * 27 * 96
    assert (whole["devices"], whole["missing"]) == (50, 0)
    assert whole["energy_kwh_low"] < whole["energy_kwh"] < whole["energy_kwh_high"]
    assert "energy kWh" in said
    assert spent_s < TEN_MINUTES_S
