"""Old states, clocks ahead and forged receipts: real broker, agent and aggregator count all."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from agent.claims.elapsed import Elapsed
from agent.claims.slots import SlotValues
from agent.state.journal import Journal
from agent.state.journal_schema import TABLES, seal
from agent.state.local_mode import local_device
from edge_ldp.protocol.ledger import Ledger, Window
from tests.agent.samples import SLOT_S, T0, StillClock, make_config, make_plan
from tests.integration.agent_bench import Agent, Hub, fast_clock, listening, made, playing, until
from tests.integration.conftest import RealBroker, broker, make_broker
from tests.integration.home_bench import Utility

__all__ = ["broker", "make_broker"]  # fixtures
DAY_S = 86_400
SLOT_MS = 150
REPORTS = 20


@asynccontextmanager
async def living(directory: Path, broker: RealBroker) -> AsyncIterator[tuple[Agent, Utility, Hub]]:
    """Give a home and its utility on one clock, and an observer of the broker."""
    clock = fast_clock(SLOT_MS)
    agent = Agent(
        directory / "home",
        broker,
        clock,
        sending=f"jitter_s = 0\nreceipt_interval_s = {2 * int(clock.rate)}",
    )
    utility = Utility(directory / "utility", broker, clock)
    utility.start()
    try:
        async with listening(broker, receipts=False) as hub, playing(agent):
            yield agent, utility, hub
    finally:
        utility.end(9)


def write_old_state(path: Path, slot_seconds: int) -> None:
    """Write what an agent of version 4 left, whose slots were so long: numbers were slots."""
    slot = T0 // slot_seconds - 10
    ledger = Ledger(Window(1, 1, 1), (0,), slot, silent_until=0)
    elapsed = Elapsed(slot_seconds, 1, 1, 0, "new")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA page_size = 512")
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(f"BEGIN;{';'.join(TABLES[4])};PRAGMA user_version = 4;COMMIT;")
        row = (ledger.to_json(), elapsed.encode())
        db.execute("INSERT INTO ledger VALUES (1, 41, x'', ?, ?)", row)
        db.execute("INSERT INTO streams VALUES (1, ?, ?, 0, 0, 0)", (slot - 50, slot))
        db.execute("UPDATE ledger SET seal = ?", (seal(db),))


@pytest.mark.parametrize(("before", "after"), [(60, SLOT_S), (300, SLOT_S), (900, 1800)])
async def test_a_longer_slot_on_an_old_state_counts_every_report_AGT_24_AGT_28(
    tmp_path: Path, broker: RealBroker, before: int, after: int
) -> None:
    """Of 88 reports 0 were counted: they were numbered above their slots."""
    scale = after // SLOT_S  # a state of 900 s under slots of 1800 is one of 450 s under 900
    (tmp_path / "home").mkdir()
    write_old_state(tmp_path / "home" / "state.db", before // scale)
    async with living(tmp_path, broker) as (agent, utility, _):
        agent.start()
        await until(lambda: made(agent) >= REPORTS)
        account = await utility.settle(agent)
        assert account["counted"] == account["created"] >= REPORTS
        assert "the slot length changed" in agent.log.read_text()


@pytest.mark.parametrize("days", [30, 365])
async def test_a_clock_ahead_at_the_first_report_costs_none_after_it_AGT_23_AGT_29(
    tmp_path: Path, broker: RealBroker, days: int
) -> None:
    directory = tmp_path / "home"
    directory.mkdir()
    clock = StillClock(T0 + days * DAY_S)
    config = make_config(directory / "state.db")
    with closing(Journal(directory / "state.db")) as journal:
        device = local_device(config, journal, clock)
        device.trust_clock()
        plan = make_plan(expires_s=T0 + 800 * DAY_S).to_json()
        assert device.accept_plan("power", plan) is None
        for at in range(6):
            clock.pass_s(SLOT_S)
            device.close_slot(SlotValues(device.slot - 1, (500,)), online=at % 2 > 0)
        with journal.transaction() as db:
            db.execute("DELETE FROM plans")  # it was another aggregator's
    ahead = made_in(directory / "state.db")
    assert ahead > 0
    async with living(tmp_path, broker) as (agent, utility, hub):
        agent.start()
        await until(lambda: made(agent) >= ahead + REPORTS)

        def all_count() -> bool:
            record = utility.record("home-7")
            return record is not None and record.counted >= REPORTS

        await until(all_count)
        assert agent.end() == 0
        of_now = made(agent) - ahead
        await until(lambda: counted(utility) == of_now)
        hub.check("home-7")


def counted(utility: Utility) -> int:
    record = utility.record("home-7")
    return record.counted if record else 0


def made_in(path: Path) -> int:
    with closing(Journal(path, create=False)) as journal:
        return sum(one.created for one in journal.status())
