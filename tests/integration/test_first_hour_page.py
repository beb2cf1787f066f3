"""A household's first hour by its page alone: a HomeWizard P1, then a report.

`setup --page`, `run`, and from then on nothing but http://127.0.0.1: what is missing is said there,
and what was counted. Slow: a dongle is asked every ten seconds, so that slots are long ones.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from edge_ldp.service.clock import kernel_synchronised
from tests.integration import test_first_hour_household as household
from tests.integration.conftest import free_port
from tests.integration.test_agent_setup import command
from tests.integration.test_first_hour_household import MOST_S, Village, process

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.conftest import RealBroker

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(MOST_S)]
SLOT_S = 20
EVER = re.compile(r'<th scope="row">ever</th><td>(\d+)</td><td>(\d+)</td>')


def looked(port: int) -> str:
    try:
        with urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
            return str(answer.read().decode())
    except (URLError, ConnectionError):
        return ""


@pytest.mark.parametrize("product", ["homewizard-v1", "esphome"])
def test_a_first_hour_is_played_by_the_page_alone(
    tmp_path: Path,
    make_broker: Callable[[str], RealBroker],
    monkeypatch: pytest.MonkeyPatch,
    product: str,
) -> None:
    slots = household.STREAM.replace("slot_seconds = 1", f"slot_seconds = {SLOT_S}")
    monkeypatch.setattr(household, "STREAM", slots)
    village, page, at = Village(tmp_path, make_broker), free_port(), str(free_port())
    invitation, config = tmp_path / "home.invitation", tmp_path / "home" / "agent.toml"
    text = village.invitation("dsmr").replace('"slot_seconds":1', f'"slot_seconds":{SLOT_S}')
    invitation.write_text(text)
    words: list[str | Path] = ["setup", "-c", config, "--invitation", invitation, "--yes"]
    is_page = product != "esphome"
    address = f"http://127.0.0.1:{at}" if is_page else f"mqtt://127.0.0.1:{village.own}"
    words += ["--port", address, "--page", str(page)]
    words += ["--reports", "2", "--slots", "3", "--least-slot", "1", "--fuse", "17250"]
    words += [] if kernel_synchronised() else ["--clock", "assume"]
    meter = ["simulate", "meter", "--product", product]
    meter += ["--listen", at] if is_page else ["--broker", str(village.own)]
    meter += ["--data", "constant:378", "--step", "1"]
    said: list[str] = []
    with village.living(), process(*meter, log=tmp_path / "meter.log", first="meter"):
        done = command(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"then look: http://127.0.0.1:{page}" in done.stdout
        with process("agent", "run", "-c", config, log=tmp_path / "agent.log"):
            while not (found := EVER.search(said[-1] if said else "")) or found[2] == "0":
                time.sleep(1)  # the test's own limit ends it
                said.append(looked(page))
    assert any("silent until" in one for one in said), "why nothing leaves yet"
    assert "All is well." in said[-1]
    assert "last telegram" in said[-1]
    assert "/proof/power-1.json" in said[-1]
