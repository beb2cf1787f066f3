"""A day of an operator: the console beside a running aggregator, a broker and devices."""

import asyncio
import csv
import io
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Page, async_playwright, expect

from aggregator.config import load_config
from edge_ldp.protocol.plan import Plan
from tests import needs
from tests.aggregator.console.small_fleet import Fleet, serving
from tests.integration.aggregator_bench import Aggregator, Wire, wires
from tests.integration.conftest import RealBroker

pytestmark = pytest.mark.timeout(600)
PATIENCE_MS = 120_000
HOMES, REPORTS = 8, 40
NAMES = [f"home-{at:04d}" for at in range(HOMES)]


async def test_a_day_of_an_operator(broker: RealBroker, tmp_path: Path) -> None:
    chromium = needs.chromium()
    few = 'enrolment = "store"\n[query]\nmin_devices = 1'
    aggregator = Aggregator(tmp_path, broker, intake=few)
    fleet = Fleet(aggregator.config, load_config(aggregator.config))
    aggregator.start()
    try:
        # what starts without awaiting comes first: the broker gives up a link that is silent
        with serving(fleet) as (address, _):
            async with wires(broker) as opened, async_playwright() as play:
                wire = await opened()
                plan = await wire.plan()
                browser = await play.chromium.launch(executable_path=chromium, timeout=PATIENCE_MS)
                page = await browser.new_page()
                page.set_default_timeout(PATIENCE_MS)
                said: list[str] = []
                page.on(
                    "console", lambda one: said.append(one.text) if one.type == "error" else None
                )
                await page.goto(address)
                link = page.locator("#link")
                await expect(link).to_contain_text("live", timeout=PATIENCE_MS)
                assert "ok, heartbeat" in await page.locator("#state").inner_text()
                verdict = await page.locator('[data-figure="verdict"]').inner_text()
                assert re.match(
                    r"It waits for the first report\. The service runs; 0 of \d+ devices", verdict
                )
                text = await _day(page, address, aggregator, wire, plan)
                await browser.close()
    finally:
        aggregator.end()
    assert said == []
    rows = {row["device"]: row for row in csv.DictReader(io.StringIO(text))}
    assert [rows[name]["counted"] for name in NAMES] == [
        str(REPORTS * (5 if name == NAMES[3] else 1)) for name in NAMES
    ]
    assert rows[NAMES[3]]["held"] == str(REPORTS)
    assert re.fullmatch(r"[a-z_,]+", text.splitlines()[0])


async def _day(page: Page, address: str, aggregator: Aggregator, wire: Wire, plan: Plan) -> str:
    """Do what an operator does, and see on the page what comes of it; return what is exported."""
    surveys = plan.stream_mechanism.code_count  # at first all slots survey
    codes = range(surveys, surveys + REPORTS)
    # enrolled by command; what they send is watched as it comes
    await _command(aggregator, "devices", "enrol", *NAMES)
    devices = wire.add(HOMES, plan)
    first = devices[0].make(codes)
    await wire.send([first])
    counted = page.locator('[data-figure="power.counted"]')
    await expect(counted).to_have_text(str(REPORTS), timeout=PATIENCE_MS)
    await wire.send(device.make(codes) for device in devices[1:])
    await expect(counted).to_have_text(str(HOMES * REPORTS), timeout=PATIENCE_MS)
    # one sends what no honest device does: the alarm says so, and what to do
    await wire.send([devices[3].make([surveys] * 3 * REPORTS)])
    alarm = page.locator(".alarm", has_text="DevicesMarked")
    shown = f"devices quarantine -c {aggregator.config.name} {NAMES[3]}"
    await expect(alarm).to_contain_text(shown, timeout=PATIENCE_MS)
    # quarantined by command: nothing is left to be done about it
    await _command(aggregator, "devices", "quarantine", NAMES[3])
    await expect(alarm).to_have_count(0, timeout=PATIENCE_MS)
    await wire.send([devices[3].make(codes)])
    held = page.locator('[data-figure="devices.held"]')
    await expect(held).to_have_text("1", timeout=PATIENCE_MS)
    await page.goto(f"{address}/devices?state=held")
    row = page.locator(f'[data-device="{NAMES[3]}"]')
    await expect(row).to_contain_text("in quarantine since", timeout=PATIENCE_MS)
    await expect(row).to_contain_text("marked in power", timeout=PATIENCE_MS)
    # a new plan by command
    await _command(aggregator, "plan", "publish", "--theta", "3000", "--share", "1/4")
    await page.goto(f"{address}/plans")
    newest = page.locator("#plan-table tbody tr:first-child")
    await expect(newest).to_contain_text("2 (in force)", timeout=PATIENCE_MS)
    await expect(newest).to_contain_text("3,000", timeout=PATIENCE_MS)
    # exported
    return str((await _get(f"{address}/api/v1/completeness?format=csv")).text)


async def _command(aggregator: Aggregator, *words: str) -> None:
    """Run a command of the operator."""
    line = aggregator.command(words[0])
    at = line.index(words[0]) + 1
    command = [*line[:at], words[1], *line[at:], *words[2:]]
    done = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
    assert await done.wait() == 0


async def _get(url: str) -> Any:
    async with httpx.AsyncClient() as client:
        return await client.get(url)
