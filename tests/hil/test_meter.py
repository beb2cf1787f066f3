"""What any meter must stand that is on the line now: a simulated one, or that at HIL_PORT.

With a real one it is found by `probe` first: about two minutes for a slow meter.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, closing, suppress
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
from firmware_stubs.meters.twin import PageTwin, TopicTwin
from tests.agent.ports.test_sources import twin_at
from tests.hil.wires import FAR, NEAR
from tests.integration.conftest import OPEN, RealBroker, make_broker

__all__ = ["make_broker"]  # a fixture
pytestmark = [pytest.mark.integration, pytest.mark.hil, pytest.mark.timeout(300)]

QUICK = ("homewizard-v1", "shelly-gen2")  # the rest with test-slow
SECONDS = 25.0 if NEAR else 4.0
FOUND: dict[str, Found] = {}


@pytest.fixture(
    params=["serial"]
    if NEAR
    else [
        "serial",
        *(one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in TWINS),
    ]
)
async def port(
    tmp_path: Path, request: pytest.FixtureRequest, make_broker: Callable[[str], RealBroker]
) -> AsyncIterator[tuple[str, ...]]:
    """Give the lines that name a port with a meter on it, and what lets us in: a line's, a twin's.

    A twin is a product in the network, on a page or a topic.
    """
    if NEAR:
        if FAR:
            pytest.skip("the far end is a second adapter, no meter")
        yield (f"port = {json.dumps(NEAR)}",)
        return
    async with AsyncExitStack() as stack:
        if request.param == "serial":
            pty = PtyPort(tmp_path / "meter")
            pty.plug()
            stack.callback(pty.unplug)
            speaking = asyncio.ensure_future(_speak(pty, p1_telegram))
            lines: tuple[str, ...] = (f"port = {json.dumps(str(pty.link))}",)
        else:
            broker_port = make_broker(OPEN).port if TWINS[request.param].topic else 0
            there = twin_at(request.param, broker_port, tmp_path)
            twin, access = await stack.enter_async_context(there)
            speaking = asyncio.ensure_future(_speak(twin, TWINS[request.param].show))
            lines = (f"port = {json.dumps(twin.name)}", *access)
        await asyncio.sleep(0)
        yield lines
        speaking.cancel()
        with suppress(asyncio.CancelledError):
            await speaking


async def _speak(meter: PtyPort | PageTwin | TopicTwin, show: Show) -> None:
    for k in count():
        await meter.write(show(meter_id="E0099", time_s=k, import_wh=k, power_w=k))
        await asyncio.sleep(0.1)


async def table_of(lines: tuple[str, ...]) -> MeterTable:
    asked = parse_meter("\n".join(lines), "probe")
    if asked.port not in FOUND:
        found, tried = await probe(asked.port, print, seconds=12.0, access=asked.access)
        assert found is not None, [one.text() for one in tried]
        assert found.quantities or found.keys["protocol"] == "lines"
        FOUND[asked.port] = found
    hurried = ["poll_ms = 500"] if asked.port.startswith("http") and not NEAR else []
    told = toml_lines(asked.port, FOUND[asked.port])[1:]
    return parse_meter("\n".join([*told, *lines[1:], *hurried]), "probe")


async def test_it_is_found_and_read(port: tuple[str, ...]) -> None:
    table = await table_of(port)
    meter, seen = make_meter(table), Counter[str]()
    with closing(await open_meter(table)) as opened:
        until_s = asyncio.get_running_loop().time() + SECONDS
        while asyncio.get_running_loop().time() < until_s:
            for event in (await hear(opened, meter))[1]:
                seen["telegram" if isinstance(event, Telegram) else event.reason] += 1
    assert seen["telegram"] >= 2
    assert seen.total() - seen["telegram"] <= 1 + seen["telegram"] // 100, seen  # a good line


async def test_what_is_recorded_gives_the_same_telegrams_again(
    port: tuple[str, ...], tmp_path: Path
) -> None:
    table, counts = await table_of(port), Counter[str]()
    await record(table, tmp_path / "tape", SECONDS, counts)
    again, passed = read_recording(tmp_path / "tape")
    found = list(replayed(make_meter(again), passed))
    assert sum(isinstance(event, Telegram) for event in found) == counts["telegrams"] >= 2
