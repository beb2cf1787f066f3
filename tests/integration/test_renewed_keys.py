"""A fleet whose plans get the next key while homes report: nobody visits one, nothing is lost."""

import asyncio
import signal
from contextlib import closing
from pathlib import Path

import pytest

from agent.state.journal import Journal
from aggregator.main import main
from aggregator.plans.keys import make_key, read_signer
from aggregator.store.sqlite.reader import SqliteReader
from edge_ldp.protocol.messages import topic
from edge_ldp.protocol.signing import key_id, unwrap
from edge_ldp.service.mqtt import Broker, open_link
from tests.agent.samples import FLEET
from tests.integration.agent_bench import Agent, fast_clock, playing, until
from tests.integration.conftest import RealBroker
from tests.integration.home_bench import Utility

pytestmark = pytest.mark.integration


def told(agent: Agent, words: str) -> bool:
    return agent.log.exists() and words in agent.log.read_text()


def signed_by(agent: Agent, public: str) -> bool:
    with closing(Journal(agent.state, create=False)) as journal:
        (plan,) = journal.plans()
    envelope = unwrap(plan.payload)
    return envelope is not None and envelope.key == key_id(bytes.fromhex(public))


async def test_PLN_23_a_fleet_goes_on_under_the_next_key_and_a_stolen_old_one_is_worth_nothing(
    tmp_path: Path, broker: RealBroker
) -> None:
    clock = fast_clock(100)
    utility = Utility(tmp_path / "utility", broker, clock)
    old, following = tmp_path / "plan.key", tmp_path / "plan-next.key"
    first, second = make_key(old).hex(), make_key(following).hex()
    thief = read_signer(old)
    with utility.config.open("a") as file:
        file.write(f'[plans]\nsigning_key_file = "{old}"\nnext_key = "{second}"\n')
    agents = [Agent(tmp_path / name, broker, clock, name) for name in ("stays", "away", "unaware")]
    for agent, more in zip(agents, (f'next_key = "{second}"',) * 2 + ("",), strict=True):
        with agent.config.open("a") as file:
            file.write(f'[plans]\nkeys = ["{first}"]\n{more}\n')
    stays, away, unaware = agents

    def renew() -> int:
        return main(["renew", "-c", str(utility.config), "--plan-key", str(following)])

    async with playing(*agents):
        try:
            utility.start()
            for agent in agents:
                agent.start()
            await until(lambda: all(told(agent, "epoch 1 in force") for agent in agents))
            assert await asyncio.to_thread(away.end) == 0
            assert utility.end() == 0
            assert await asyncio.to_thread(renew) == 0
            utility.start()
            await until(lambda: signed_by(stays, second))
            assert not signed_by(unaware, second)
            with unaware.config.open("a") as file:
                file.write(f'next_key = "{second}"\n')
            assert await asyncio.to_thread(unaware.end) == 0
            away.start()
            unaware.start()
            await until(lambda: all(signed_by(agent, second) for agent in agents))
            with closing(SqliteReader.open(utility.store)) as reader:
                plan = max(reader.plans(), key=lambda one: one.epoch)
            async with asyncio.timeout(300):
                link = await open_link(Broker(broker.host, broker.port, "thief"))
                await link.publish(
                    topic(FLEET, "plan", "power"), thief.wrap(plan.payload + b" "), retain=True
                )
                await link.close()
            await until(lambda: all(told(agent, "plan refused: key") for agent in agents))
            accounts = await asyncio.gather(*(utility.settle(agent) for agent in agents))
        finally:
            utility.end(signal.SIGKILL)
    assert all(account["created"] == account["counted"] > 0 for account in accounts)
