"""Real homes, broker and aggregator: figures are of who reported, not of who is there."""

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from aggregator.commands.common import EXIT_NOTHING
from aggregator.main import main
from tests.integration.agent_bench import Agent, fast_clock, made, playing, until
from tests.integration.conftest import RealBroker
from tests.integration.home_bench import Utility, serving

LEAST = 2
HOUR_S = 3600
SLOT_MS = 150


def asked(utility: Utility, *words: str) -> Any:
    """Return the JSON that a command prints."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = main([*words, "-c", str(utility.config), "--json"])
    assert code in (0, EXIT_NOTHING), printed.getvalue()  # withheld: nothing
    return json.loads(printed.getvalue())


def polled(utility: Utility) -> list[dict[str, Any]]:
    """Return what `completeness` tells of each home, but for what a home says of itself."""
    rows = asked(utility, "completeness")["devices"]
    return [{key: told for key, told in row.items() if key != "unconfirmed"} for row in rows]


def query(utility: Utility, since_s: int, until_s: int) -> Any:
    """Return what is answered of all in a range."""
    spans = ("--since", str(since_s), "--until", str(until_s))
    return asked(utility, "query", "--no-density", *spans)["whole"]


async def test_a_home_that_reports_alone_is_in_no_figure_AGG_30_AGG_36(
    tmp_path: Path, broker: RealBroker
) -> None:
    """Three homes report, then one of them alone."""
    clock = fast_clock(SLOT_MS)
    utility = Utility(tmp_path / "utility", broker, clock)
    utility.config.write_text(utility.config.read_text() + f"[query]\nmin_devices = {LEAST}\n")
    agents = [
        Agent(tmp_path / name, broker, clock, name) for name in ("home-1", "home-2", "home-3")
    ]
    *others, alone = agents
    async with playing(*agents), serving(utility):
        for agent in agents:
            agent.start()
        for agent in agents:
            await agent.connected()  # its state is there
        begun_s = int(clock.now())
        await until(lambda: all(made(agent) >= 20 for agent in agents))
        for agent in others:
            await utility.settle(agent)
        crowd = query(utility, begun_s, int(clock.now()))
        assert not crowd["withheld"]
        assert crowd["n"] + crowd["surveys"] > LEAST
        alone_s = (int(clock.now()) // HOUR_S + 1) * HOUR_S
        accounts, before = polled(utility), made(alone)
        await until(lambda: made(alone) >= before + 60)
        await utility.settle(alone)
        assert polled(utility) == accounts, "it would name who reported in between"
        lone = query(utility, alone_s, int(clock.now()))
        assert lone["withheld"]
        assert lone["n"] is lone["mean"] is None
        assert lone["devices"] is None
