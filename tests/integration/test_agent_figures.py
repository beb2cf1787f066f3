"""What the agent costs a board: memory, its share of a core at a telegram a second, its start.

EDGE_LDP_FIGURES_S says for how many seconds it is watched; pytest -s shows the figures.
"""

import asyncio
import os
import time
from pathlib import Path

import pytest

from edge_ldp.service.clock import Clock
from firmware_stubs.meters import Series, play
from tests.agent.samples import T0, make_plan
from tests.integration.agent_bench import (
    METER,
    PATIENT_AGENT,
    Agent,
    cpu_s,
    listening,
    memory_kib,
    until,
)
from tests.integration.conftest import RealBroker

SECONDS = int(os.environ.get("EDGE_LDP_FIGURES_S", "30"))
pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(SECONDS + 60)]


async def test_a_telegram_a_second_takes_a_hundredth_of_a_core_and_32_MiB(
    tmp_path: Path, broker: RealBroker
) -> None:
    clock = Clock(T0, time.time(), 1.0)
    agent = Agent(
        tmp_path / "a",
        broker,
        clock,
        slot_seconds=10,
        sending="jitter_s = 0",
        command=PATIENT_AGENT,
    )
    text = agent.config.read_text()
    agent.config.write_text(text.replace("clock_tolerance_s = 9000", "clock_tolerance_s = 5"))
    agent.port.plug()
    series = Series((100 * (k % 9) for k in range(10**6)), T0 + 1, 1, METER)
    playing = asyncio.create_task(play(agent.port, series, clock))
    try:
        async with listening(broker) as hub:
            await hub.publish(make_plan(slot_seconds=10))
            agent.start()
            assert agent.process is not None
            pid = agent.process.pid
            await until(lambda: "in force" in agent.log.read_text())
            await asyncio.sleep(2)
            start_s = cpu_s(pid)
            begun_s = time.monotonic()
            await asyncio.sleep(SECONDS)
            share = (cpu_s(pid) - start_s) / (time.monotonic() - begun_s)
            rss = memory_kib(pid, "VmRSS")
            assert await asyncio.to_thread(agent.end) == 0
            reports = len(hub.slots(agent.device))
    finally:
        agent.end(9)
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)
        agent.port.unplug()
    print(  # noqa: T201 (shown by pytest -s)
        f"start {start_s:.2f} s CPU, {100 * share:.2f} % of a core over {SECONDS} s, "
        f"{rss} KiB resident, {reports} reports"
    )
    assert reports >= SECONDS // 10 - 1
    assert start_s <= 1
    assert share <= 0.01
    assert rss <= 32 * 1024
