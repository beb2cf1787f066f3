"""Home Assistant itself beside a broker: what it shows, and what it has to say against messages."""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Any

from tests.integration.conftest import OPEN, RealBroker
from tests.needs import missing
from tests.processes import run_told

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "tools"
PATIENCE_S = 300


@dataclass(frozen=True)
class Shown:
    """What it shows by unique id, and what it says."""

    states: dict[str, str]
    attributes: dict[str, dict[str, Any]]
    faults: list[str]


class HomeAssistant:
    """One that runs, and its broker: it may read there what docs/console.md gives it."""

    def __init__(self, process: subprocess.Popen[str], broker: RealBroker) -> None:
        self._process = process
        self.broker = broker

    def asked(self) -> Shown:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        told = json.loads(self._process.stdout.readline() or '"it has ended"')
        entities = told["entities"]
        return Shown(
            {name: one["state"] for name, one in entities.items()},
            {name: one["attributes"] for name, one in entities.items()},
            told["refused"] + told["said"],
        )

    async def until(
        self, so: Callable[[Shown], bool], *, each: Callable[[], Awaitable[None]] | None = None
    ) -> Shown:
        """Return what it shows once that is so; `each` time it is not, do that."""
        shown, end = self.asked(), time.monotonic() + PATIENCE_S
        while not so(shown):
            assert time.monotonic() < end, shown
            await (asyncio.sleep(0.1) if each is None else each())
            shown = self.asked()
        return shown


@contextmanager
def home_assistant(place: Path, more: str = "") -> Iterator[HomeAssistant]:
    """Run a broker, and Home Assistant as its user of that name, with more rights if asked."""
    directory = place / "home-assistant"
    directory.mkdir()
    (place / "acl").write_text(f"topic readwrite #\n{_rights()}{more}\n")
    broker = RealBroker(place, OPEN + f"acl_file {place / 'acl'}\n")
    broker.start()
    command = [_python(), str(TOOLS / "home_assistant.py"), str(broker.port), str(directory)]
    process = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True)
    try:
        yield HomeAssistant(process, broker)
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()
        broker.kill()


def _rights() -> str:
    """Return what the guide puts into the broker's access list."""
    guide = (ROOT / "docs" / "console.md").read_text()
    (found,) = re.findall(r"^```\n(user home-assistant\n.*?)^```", guide, re.MULTILINE | re.DOTALL)
    return str(found)


def _python() -> str:
    """Return the Python that has Home Assistant; ends the test where it is not to be had."""
    done = run_told(
        ["sh", str(TOOLS / "home_assistant.sh")], env=os.environ | {"PYTHON": sys.executable}
    )
    if done.returncode:
        missing(f"Home Assistant ({done.stderr[-300:].strip()})", "sh tools/home_assistant.sh")
    return done.stdout.strip()
