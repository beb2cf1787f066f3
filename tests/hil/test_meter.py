"""What any meter must stand that is on the line now: a simulated one, or that at HIL_PORT.

With a real one it is found by `probe` first: about two minutes for a slow meter.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path

import pytest

from agent.config import parse_meter
from agent.meters.reading import Telegram
from agent.meters.section import MeterTable
from agent.ports.findings import Found, toml_lines
from agent.ports.meters import hear, make_meter
from agent.ports.open_port import open_meter
from agent.ports.probe import probe
from agent.ports.recorder import read_recording, record
from agent.ports.recording import replayed
from firmware_stubs.meters import PtyPort
from firmware_stubs.meters.player import Show
from firmware_stubs.meters.products import TWINS
from firmware_stubs.meters.telegram import p1_telegram
from firmware_stubs.meters.twin import PageTwin
from tests.hil.wires import FAR, NEAR

pytestmark = [pytest.mark.integration, pytest.mark.hil, pytest.mark.timeout(300)]

SECONDS = 25.0 if NEAR else 4.0
FOUND: dict[str, Found] = {}


@pytest.fixture(params=["serial"] if NEAR else ["serial", "homewizard-v1", "shelly-gen2"])
async def port(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Give the name of a port with a meter on it: a line's, or a product's page."""
    if NEAR:
        if FAR:
            pytest.skip("the far end is a second adapter, no meter")
        yield NEAR
        return
    pty, twin = PtyPort(tmp_path / "meter"), TWINS.get(request.param)
    page = PageTwin(twin, "127.0.0.1", 0) if twin else None
    pty.plug()
    if page:
        await page.plug()
    speaking = asyncio.ensure_future(_speak(page or pty, twin.show if twin else p1_telegram))
    await asyncio.sleep(0)
    yield page.name if page else str(pty.link)
    speaking.cancel()
    with suppress(asyncio.CancelledError):
        await speaking
    pty.unplug()
    if page:
        page.unplug()


async def _speak(meter: PtyPort | PageTwin, show: Show) -> None:
    for k in count():
        await meter.write(show(meter_id="E0099", time_s=k, import_wh=k, power_w=k))
        await asyncio.sleep(0.1)


async def table_of(port: str) -> MeterTable:
    if port not in FOUND:
        found, tried = await probe(port, print, seconds=12.0)
        assert found is not None, [one.text() for one in tried]
        assert found.quantities or found.keys["protocol"] == "lines"
        FOUND[port] = found
    hurried = ["poll_ms = 500"] if port.startswith("http") and not NEAR else []
    return parse_meter("\n".join([*toml_lines(port, FOUND[port])[1:], *hurried]), "probe")


async def test_it_is_found_and_read(port: str) -> None:
    table = await table_of(port)
    meter, seen = make_meter(table), Counter[str]()
    with closing(await open_meter(table)) as opened:
        until_s = asyncio.get_running_loop().time() + SECONDS
        while asyncio.get_running_loop().time() < until_s:
            for event in (await hear(opened, meter))[1]:
                seen["telegram" if isinstance(event, Telegram) else event.reason] += 1
    assert seen["telegram"] >= 2
    assert seen.total() - seen["telegram"] <= 1 + seen["telegram"] // 100, seen  # a good line


async def test_what_is_recorded_gives_the_same_telegrams_again(port: str, tmp_path: Path) -> None:
    table, counts = await table_of(port), Counter[str]()
    await record(table, tmp_path / "tape", SECONDS, counts)
    again, passed = read_recording(tmp_path / "tape")
    found = list(replayed(make_meter(again), passed))
    assert sum(isinstance(event, Telegram) for event in found) == counts["telegrams"] >= 2
