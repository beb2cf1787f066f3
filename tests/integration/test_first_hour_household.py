"""docs/first-hour-household.md, played literally: from pip to a counted report in ten minutes.

Two things are not as on the page. `$METER` is a simulated meter, and slots take a second, so that
the silence of 97 slots takes minutes and not a day; all of it runs at real speed. Where the
machine's clock is not synchronised (a container), setup is told `--clock assume`.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent.meters.protocols import PROTOCOLS
from agent.meters.reading import UNITS
from agent.running.kernel_clock import kernel_synchronised
from edge_ldp.protocol.invitation import Invitation, InvitedBroker, InvitedStream
from tests import needs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.integration.conftest import RealBroker

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "first-hour-household.md"
MOST_S = 600
MOST_COMMANDS = 8
FLEET, DEVICE, SECRET = "village", "home-0001", "right-horse"
POWERS = {"linky": "apparent_power"}
BROKER = """
listener {{port}} 127.0.0.1
user root
allow_anonymous false
password_file {0}/passwords
acl_file {1}/config/acl
"""
AGGREGATOR = """
fleet = "{fleet}"
[broker]
host = "127.0.0.1"
port = {port}
username = "aggregator"
password_file = "{directory}/aggregator.password"
[store]
path = "{directory}/aggregator.db"
[intake]
receipt_interval_s = 5
[[streams]]
name = "{name}"
id = 1
unit = "{unit}"
ceiling = 17250
epsilon = 1
slot_seconds = 1
"""


def blocks() -> list[list[str]]:
    """Return the commands of each block of the page."""
    found = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [block.splitlines() for block in found]


def test_the_page_has_few_commands() -> None:
    assert sum(map(len, blocks())) <= MOST_COMMANDS
    assert len(blocks()) == 2


@contextmanager
def process(*command: str | Path, log: Path) -> Iterator[None]:
    with log.open("ab") as out:
        running = subprocess.Popen(list(map(str, command)), stdout=out, stderr=out)
    try:
        yield
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(60)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a directory of what this tree installs; the index has the rest."""
    made = tmp_path_factory.mktemp("wheels")
    for place in (ROOT, ROOT / "agent", ROOT / "aggregator"):
        if (place / "pyproject.toml").exists():
            pip = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet")
            done = subprocess.run(
                [*pip, "-w", made, place], capture_output=True, check=False, text=True
            )
            if done.returncode:
                needs.missing(f"package index: {done.stderr[-300:]}")
    return made


@pytest.fixture
def broker(tmp_path: Path, make_broker: Callable[[str], RealBroker]) -> RealBroker:
    """Give a broker with the shipped access list, and a login for either side."""
    program = needs.program("mosquitto_passwd")
    for at, name in enumerate(("aggregator", DEVICE)):
        new = ["-c"] if at == 0 else []
        subprocess.run([program, "-b", *new, tmp_path / "passwords", name, SECRET], check=True)
    (tmp_path / "aggregator.password").write_text(SECRET)
    (tmp_path / "aggregator.password").chmod(0o600)
    return make_broker(BROKER.format(tmp_path, ROOT))


def invited(home: Path, port: int, quantity: str) -> None:
    """Put the invitation where the page expects it."""
    stream = InvitedStream(quantity, quantity, UNITS[quantity], 0, 17_250, 1)
    made = Invitation(
        FLEET, DEVICE, InvitedBroker("127.0.0.1", port, tls=False), DEVICE, SECRET, (), (stream,)
    )
    (home / "invitation.json").write_bytes(made.to_json())


def in_home(home: Path, wheels: Path, commands: list[str]) -> str:
    """Play commands in a shell whose home this is; fails with what they said."""
    environment = {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "METER": str(home / "meter"),
        "PIP_FIND_LINKS": str(wheels),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    lines = ['export PATH="$HOME/edge-ldp/bin:$PATH"', "set -e", *commands]
    done = subprocess.run(
        ["sh", "-c", "\n".join(lines)],
        cwd=home,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
        timeout=MOST_S,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.timeout(2 * MOST_S)
@pytest.mark.parametrize("protocol", ["dsmr", "sml", "linky", "iec62056-21"])
def test_the_page_leads_from_pip_to_a_counted_report_in_ten_minutes(
    tmp_path: Path, wheels: Path, broker: RealBroker, protocol: str
) -> None:
    assert protocol in PROTOCOLS
    home, quantity = tmp_path / "home", POWERS.get(protocol, "power")
    home.mkdir()
    invited(home, broker.port, quantity)
    (tmp_path / "aggregator.toml").write_text(
        AGGREGATOR.format(
            fleet=FLEET, port=broker.port, directory=tmp_path, name=quantity, unit=UNITS[quantity]
        )
    )
    cli = (sys.executable, "-m", "edge_ldp.cli")
    aggregator = (*cli, "aggregator", "run", "-c", tmp_path / "aggregator.toml")
    meter = (*cli, "simulate", "meter", "--link", home / "meter", "--protocol", protocol)
    first, later = blocks()
    if not kernel_synchronised():
        first = [line + " --clock assume" if " setup " in line else line for line in first]
    with (
        process(*aggregator, log=tmp_path / "aggregator.log"),
        process(*meter, "--data", "constant:378", "--step", "1", log=tmp_path / "meter.log"),
    ):
        begun_s = time.monotonic()
        run = f"{first[-1].removesuffix('&')} > run.log 2>&1 &"
        said = in_home(home, wheels, [*first[:-1], run, "echo $! > pid"])
        try:
            assert "fails" not in said, said
            assert "next: edge-ldp agent run -c agent.toml" in said
            shown = ""
            while not re.search(r"[1-9]\d* arrived", shown):
                assert time.monotonic() - begun_s < MOST_S, shown
                time.sleep(5)
                shown = in_home(home, wheels, later)
        finally:
            os.kill(int((home / "pid").read_text()), signal.SIGTERM)
    assert re.search(r"health +ok", shown), shown
    assert re.search(r"last telegram +\d s ago", shown), shown
    assert re.search(r"silent until \S+ \S+ UTC: .*no fault", (home / "run.log").read_text())
    shutil.rmtree(home)
