"""SIGHUP on a running agent: what it takes, what it keeps, and what it says."""

import signal
from collections.abc import Callable
from pathlib import Path

from tests.agent.samples import make_plan
from tests.integration.agent_bench import Agent, fast_clock, listening, playing, until
from tests.integration.conftest import OPEN, RealBroker


class Reloaded(Agent):
    """An agent whose file changes under it."""

    async def change(self, old: str, new: str) -> str:
        """Change the file, send SIGHUP and return what the agent says of it."""
        text = self.config.read_text()
        assert old in text
        self.config.write_text(text.replace(old, new))
        return await self.hang_up()

    async def hang_up(self) -> str:
        said = self.lines()
        assert self.process is not None
        self.process.send_signal(signal.SIGHUP)
        await until(lambda: len(self.lines()) > len(said))
        return self.lines()[-1]

    def lines(self) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if "reload:" in line]


async def test_a_running_agent_tightens_moves_and_refuses_to_loosen(
    tmp_path: Path, broker: RealBroker, make_broker: Callable[[str], RealBroker]
) -> None:
    """One life: nothing changed, a typing error, looser, tighter, another broker; no slot lost."""
    second = make_broker(OPEN)
    agent = Reloaded(tmp_path / "a", broker, fast_clock(100), policy="epsilon = 1")
    async with listening(broker) as hub, listening(second) as other, playing(agent):
        await hub.publish(make_plan())
        await other.publish(make_plan(2, epsilon="0.5"))
        agent.start()
        await until(lambda: len(hub.slots(agent.device)) >= 3)
        assert "nothing changed" in await agent.hang_up()
        said = await agent.change("epsilon = 1", "epsilon = 2")
        assert "policy.epsilon would loosen" in said
        assert "the running configuration stays" in said
        said = await agent.change("epsilon = 2", "epsilon = banana")
        assert "the running configuration stays" in said
        assert "syntax" in said
        said = await agent.change("epsilon = banana", "epsilon = 1")
        assert "nothing changed" in said
        seen = max(hub.slots(agent.device))
        await until(lambda: max(hub.slots(agent.device)) > seen + 2)
        said = await agent.change(f"port = {broker.port}", f"port = {second.port}")
        assert "applied broker.port" in said
        await until(lambda: len(other.slots(agent.device)) >= 3)
        said = await agent.change("epsilon = 1", "epsilon = 0.5")
        assert "applied policy.epsilon" in said
        await until(lambda: 2 in {frame.epoch for frame in other.frames(agent.device)})
        said = await agent.change("reports = 1\nslots = 1", "reports = 1\nslots = 2")
        assert "applied policy.window" in said
        assert agent.end() == 0
        await until(lambda: other.is_offline(agent.device))
    both = [*hub.slots(agent.device), *other.slots(agent.device)]
    assert agent.status()["reports_ever"] == len(set(both)), "a slot was randomised twice or lost"
    assert "Traceback" not in agent.log.read_text()


async def test_a_tap_is_ended_by_a_reload_and_not_begun_by_one(
    tmp_path: Path, broker: RealBroker, make_broker: Callable[[str], RealBroker]
) -> None:
    own = make_broker(OPEN)
    table = f'[tap]\nhost = "127.0.0.1"\nport = {own.port}\ninterval_s = 1\n'
    agent = Reloaded(tmp_path / "a", broker, fast_clock(200), tables=table)
    async with listening(broker) as hub, playing(agent):
        await hub.publish(make_plan())
        agent.start()
        await until(lambda: "raw readings go to" in agent.log.read_text())
        assert "applied tap" in await agent.change(table, "")
        assert "tap would loosen" in await agent.change("[policy]\n", f"{table}[policy]\n")
        assert agent.end() == 0
