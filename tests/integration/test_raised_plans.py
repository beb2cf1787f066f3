"""A fleet whose plan was admitted by wider bounds than devices have now: it goes on by itself."""

import signal
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from aggregator.config import load_config
from aggregator.plans.planner import first_plan, proved
from aggregator.store.contract import PlanRow
from aggregator.store.sqlite.store import SqliteStore
from tests.integration.agent_bench import Agent, fast_clock, made, playing, until
from tests.integration.conftest import RealBroker
from tests.integration.home_bench import Utility

pytestmark = pytest.mark.integration
WIDER = "theta_halvings = 8"  # as the bounds of another version


async def test_a_plan_of_wider_bounds_is_refused_raised_and_reported_under_PLN_22(
    tmp_path: Path, broker: RealBroker
) -> None:
    clock = fast_clock(100)
    utility = Utility(tmp_path / "utility", broker, clock, surveys=1_000_000)
    agent = Agent(tmp_path / "a", broker, clock, plans=WIDER)
    narrow = {at.config: at.config.read_text() for at in (utility, agent)}
    narrow[agent.config] = narrow[agent.config].replace(WIDER, "")
    utility.config.write_text(f"{narrow[utility.config]}{WIDER}\n")
    (stream,) = load_config(utility.config).streams
    first = first_plan("street", stream, epoch=1, now_s=int(clock.now()))
    sharp = proved(replace(first, share=(1, 2), stream_mechanism=stream.sums(300)))
    with closing(SqliteStore.open(utility.store)) as store:
        store.add_plan(PlanRow(1, 1, sharp.issued_s, sharp.to_json()))
    async with playing(agent):
        try:
            utility.start()
            agent.start()
            before = (await utility.settle(agent))["created"]  # by the wider bounds, both
            assert utility.end() == 0
            for file, text in narrow.items():
                file.write_text(text)
            agent.start()
            await until(lambda: "plan refused: sharp" in agent.log.read_text())
            utility.start()
            await until(lambda: "epoch 2 in force" in agent.log.read_text())
            await until(lambda: made(agent) > before)
            account = await utility.settle(agent)
        finally:
            utility.end(signal.SIGKILL)
    assert account["created"] == account["counted"] > before
    assert "devices refuse θ = 300 W, so it is raised" in utility.log.read_text()
    assert "hybrid up to 407 W" in agent.log.read_text()
