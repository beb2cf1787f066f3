"""Agent processes against a real broker and a pseudo-terminal: killed, cut off, unplugged, misled.

Time runs at a slot in 50 or 100 ms. After each fault: no slot twice (S2), nothing lost (S3).
"""

import asyncio
import logging
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from agent.errors import StorageError
from agent.link.uplink import FAREWELL_S
from agent.state.journal import Journal
from tests.agent.samples import bomb, make_plan
from tests.integration.agent_bench import (
    PATIENT,
    PATIENT_AGENT,
    Agent,
    cpu_s,
    fast_clock,
    listening,
    made,
    memory_kib,
    part,
    playing,
    until,
)
from tests.integration.conftest import OPEN, RealBroker

SLOTS_10 = "jitter_s = 0\nreceipt_interval_s = 9000"
FORGETFUL = OPEN.replace("persistence true", "persistence false")


async def test_what_a_killed_broker_acknowledged_and_lost_is_sent_again_NET_03(
    tmp_path: Path, make_broker: Callable[[str], RealBroker]
) -> None:
    """Nobody listens, the broker says PUBACK to all, and dies: no receipt, so all comes again."""
    broker = make_broker(FORGETFUL)
    agent = Agent(tmp_path / "a", broker, fast_clock(50), sending=SLOTS_10, meter=PATIENT)
    async with playing(agent):
        async with listening(broker) as first:
            await first.publish(make_plan())
            agent.start()
            await until(lambda: len(first.slots(agent.device)) >= 3)
        heard = len(first.slots(agent.device))
        await until(partial(has_made, agent, heard + 12))  # a dozen slots to nobody
        broker.restart()
        async with listening(broker) as second:
            await until(lambda: len(second.slots(agent.device)) > 12)
            assert agent.end() == 0
            agent.start()  # what came while nobody listened goes out again
            await agent.connected()
            await until(lambda: second.drained(agent.device))
            assert agent.end() == 0
            await until(lambda: second.is_offline(agent.device))
            second.take_kept(agent)
            for key, payloads in second.payloads[agent.device].items():
                first.payloads[agent.device][key] += payloads
            first.statuses = second.statuses
            first.check_complete(agent.device)


@pytest.mark.parametrize("plans", [12, pytest.param(120, marks=pytest.mark.slow)])
async def test_flooded_with_plans_of_dear_tables_the_agent_misses_no_slot_PLN_16(
    tmp_path: Path, broker: RealBroker, plans: int
) -> None:
    """Two a second, of 45 to 240 kB; 120 of them in a minute."""
    bombs = [bomb(3 + at, rows, codes) for at, (rows, codes) in enumerate([(160, 100), (300, 220)])]
    assert [len(one) > 45_000 for one in bombs] == [True, True]
    agent = Agent(
        tmp_path / "a",
        broker,
        fast_clock(200),
        sending=SLOTS_10,
        meter=PATIENT,
        command=PATIENT_AGENT,
    )
    async with listening(broker) as hub, playing(agent):
        await hub.publish(make_plan(2))
        agent.start()
        await until(lambda: len(hub.slots(agent.device)) >= 5)
        assert agent.process is not None
        before, spent_s = memory_kib(agent.process.pid, "VmRSS"), cpu_s(agent.process.pid)
        begun_s, seen = time.monotonic(), max(hub.slots(agent.device))
        for number in range(plans):
            await hub.publish(bombs[number % 2])
            await asyncio.sleep(0.5)
        await until(lambda: max(hub.slots(agent.device)) > seen + plans)
        grown = memory_kib(agent.process.pid, "VmRSS") - before
        share = (cpu_s(agent.process.pid) - spent_s) / (time.monotonic() - begun_s)
        await part(hub, agent)
    slots = sorted(hub.slots(agent.device))
    assert slots == list(range(slots[0], slots[-1] + 1))
    assert agent.log.read_text().count("plan refused: size") == 1
    told = f"{plans} plans: {len(slots)} slots, none missed; +{grown} KiB, {share:.1%} of a core"
    logging.getLogger("figures").info(told)
    assert grown < 4096


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_within_5_s_with_everything_sent_and_an_offline_status_AGT_04(
    tmp_path: Path, broker: RealBroker, number: int
) -> None:
    sending = "jitter_s = 86400\nbatch_interval_s = 86400\nreceipt_interval_s = 86400"
    agent = Agent(tmp_path / "a", broker, fast_clock(50), sending=sending)
    async with listening(broker) as hub, playing(agent):
        await hub.publish(make_plan())
        agent.start()
        await until(lambda: waiting(agent) >= 5)
        assert FAREWELL_S < 5  # after it the rest is kept, and not sent
        assert await asyncio.to_thread(agent.end, number) == 0
        await until(lambda: hub.is_offline(agent.device))
        hub.check_complete(agent.device)
        assert len(hub.slots(agent.device)) >= 5
    assert waiting(agent) == 0
    assert "Traceback" not in agent.log.read_text()


def has_made(agent: Agent, reports: int) -> bool:
    return made(agent) >= reports


def waiting(agent: Agent) -> int:
    """Return how many reports no batch carries yet."""
    try:
        journal = Journal(agent.state, create=False)
    except StorageError:  # not there yet
        return 0
    try:
        return len(journal.waiting())
    finally:
        journal.close()
