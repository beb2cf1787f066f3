"""An aggregator that is away, through a real broker: NET-25."""

import asyncio
import signal
from pathlib import Path

from edge_ldp.protocol.messages import topic
from edge_ldp.protocol.presence import Presence, parse_presence
from edge_ldp.service.mqtt import Broker, Link, open_link
from tests.agent.samples import FLEET
from tests.integration.agent_bench import Agent, fast_clock, listening, made, playing, until
from tests.integration.conftest import RealBroker, broker, make_broker
from tests.integration.home_bench import Utility

__all__ = ["broker", "make_broker"]  # fixtures
SLOT_MS, AWAY_SLOTS = 200, 150


async def test_an_aggregator_killed_and_back_counts_all_with_few_duplicates_NET_25(
    tmp_path: Path, broker: RealBroker
) -> None:
    """Agent, broker and aggregator, each a process; a day and a half without one."""
    clock = fast_clock(SLOT_MS)
    pace = f"jitter_s = 0\nreceipt_interval_s = {int(clock.rate)}"
    agent = Agent(tmp_path / "home", broker, clock, sending=pace)
    utility = Utility(tmp_path / "utility", broker, clock)
    link = await open_link(Broker(broker.host, broker.port, "watcher"))
    await link.subscribe([topic(FLEET, "presence", "+")])
    utility.start()
    try:
        assert (await heard(link)).is_online
        async with listening(broker, receipts=False) as hub, playing(agent):
            agent.start()
            await until(lambda: utility.store.exists() and utility.record("home-7") is not None)
            utility.end(signal.SIGKILL)
            assert not (await heard(link)).is_online  # its last will
            before, messages, statuses = made(agent), len(hub.together), len(hub.statuses["home-7"])
            await until(lambda: made(agent) >= before + AWAY_SLOTS)
            assert len(hub.together) - messages < AWAY_SLOTS // 3  # some, and then turns
            assert len(hub.statuses["home-7"]) - statuses < AWAY_SLOTS // 3
            utility.start()
            assert (await heard(link)).is_online
            account = await utility.settle(agent)
            assert max(hub.together) > 1
        assert account["counted"] == account["created"] > AWAY_SLOTS
        assert account["duplicates"] <= 0.2 * account["created"]
        assert utility.end() == 0
        assert not (await heard(link)).is_online
    finally:
        utility.end(signal.SIGKILL)
        await link.close()


async def heard(link: Link) -> Presence:
    """Return what the aggregator says next of itself."""
    async with asyncio.timeout(300):
        return parse_presence((await link.receive()).payload)
