"""An agent process that is told to end, against a real broker and a pseudo-terminal."""

import asyncio
import signal
from pathlib import Path

import pytest

from agent.errors import StorageError
from agent.link.uplink import FAREWELL_S
from agent.state.journal import Journal
from tests.agent.samples import make_plan
from tests.integration.agent_bench import (
    Agent,
    fast_clock,
    listening,
    playing,
    until,
)
from tests.integration.conftest import RealBroker


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
