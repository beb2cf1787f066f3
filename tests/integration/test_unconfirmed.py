"""A home that hears no receipt of what was counted: both sides tell one truth of it."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent.state.journal import Journal
from tests.agent.samples import DEVICE, FLEET
from tests.integration.agent_bench import EDGE_LDP, Agent, fast_clock, made, until
from tests.integration.conftest import OPEN, RealBroker
from tests.integration.home_bench import Utility

pytestmark = pytest.mark.integration
DEAF = "topic readwrite #\ntopic deny edge-ldp/v1/{fleet}/receipt/#\n"  # nobody's receipt arrives


async def test_what_a_home_gives_up_without_a_receipt_is_counted_once_and_expired_nowhere_AGG_38(
    tmp_path: Path, make_broker: Callable[[str], RealBroker]
) -> None:
    """The broker lets no receipt through; off for three days, the agent gives up what is old."""
    acl = tmp_path / "acl"
    acl.write_text(DEAF.format(fleet=FLEET))
    broker = make_broker(f"{OPEN}acl_file {acl}\n")
    clock = fast_clock(60)
    utility = Utility(tmp_path / "utility", broker, clock)
    pace = f"jitter_s = 0\nreceipt_interval_s = {int(clock.rate)}"
    agent = Agent(tmp_path / "a", broker, clock, sending=pace)
    agent.port.plug()
    meter = asyncio.create_task(agent.play())
    try:
        utility.start()
        await until(lambda: "connected" in utility.log.read_text())
        agent.start()
        await until(lambda: utility.record(DEVICE) is not None)
        await until(lambda: made(agent) > 0)
        meter.cancel()  # no more are made, so that all of them come
        await until(lambda: utility.told(agent)["counted"] == made(agent))
        assert await asyncio.to_thread(agent.end) == 0
        assert given_up(agent) == 0
        pass_days(agent, 3)
        agent.start()
        await agent.connected()  # so that its last status is heard
        await until(lambda: given_up(agent) == made(agent))
        assert await asyncio.to_thread(agent.end) == 0
        await until(lambda: utility.told(agent)["unconfirmed"] == made(agent))
        told = completeness(utility)
    finally:
        meter.cancel()
        agent.end(signal.SIGKILL)
        utility.end(signal.SIGKILL)
        agent.port.unplug()
    every = made(agent)
    assert "receipts cannot be given" in utility.log.read_text()
    assert f"{every} made, {every} given up unconfirmed" in await asyncio.to_thread(
        agent.say, "status"
    )
    assert (told["created"], told["counted"], told["unconfirmed"]) == (every, every, every)
    assert (told["rejected"], told["expired"], told["pending"]) == (0, 0, 0)


def pass_days(agent: Agent, days: int) -> None:
    """Let an agent that is off be off for so long, and keep what is a day old from then on."""
    text, origin_s = agent.config.read_text(), agent.clock.origin_s
    text = text.replace(f"origin_s = {origin_s!r}", f"origin_s = {origin_s + days * 86_400!r}")
    agent.config.write_text(text.replace("[sending]", "[sending]\nmax_age_days = 1"))


def given_up(agent: Agent) -> int:
    """Return how many reports an agent gave up, from its state file."""
    with closing(Journal(agent.state, create=False)) as journal:
        return sum(account.expired for account in journal.status())


def completeness(utility: Utility) -> dict[str, Any]:
    """Return the account of the home, as the operator's command has it."""
    words = ["aggregator", "completeness", "-c", str(utility.config), "--exact", "--json"]
    done = subprocess.run([*EDGE_LDP, *words], check=True, capture_output=True)
    (row,) = (one for one in json.loads(done.stdout)["devices"] if one["device"] == DEVICE)
    return dict(row)
