"""Old states, clocks ahead and forged receipts: real broker, agent and aggregator count all."""

import asyncio
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from agent.claims.elapsed import Elapsed
from agent.claims.slots import SlotValues
from agent.state.journal import Journal
from agent.state.journal_schema import TABLES, seal
from agent.state.local_mode import local_device
from aggregator.store.sqlite.reader import SqliteReader
from edge_ldp.device.frame import encode
from edge_ldp.protocol.ledger import Ledger, Window
from edge_ldp.protocol.messages import Receipt, StreamReceipt, topic
from edge_ldp.service.clock import Clock
from edge_ldp.service.mqtt import Broker, open_link
from tests.agent.samples import FLEET, SLOT_S, T0, StillClock, make_config, make_plan
from tests.integration.agent_bench import (
    STORE,
    Agent,
    Hub,
    fast_clock,
    listening,
    made,
    playing,
    until,
)
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


async def test_a_clock_set_back_shortens_no_silence_of_a_changed_window_AGT_30(
    tmp_path: Path, broker: RealBroker
) -> None:
    """8 in any 97, then 1 in 1 and a clock 30 slots behind: 21 slots later it reported."""
    directory = tmp_path / "home"
    directory.mkdir()
    still = StillClock()
    with closing(Journal(directory / "state.db")) as journal:
        config = make_config(directory / "state.db", window=(8, 97))
        device = local_device(config, journal, still)
        device.trust_clock()
        assert device.accept_plan("power", make_plan().to_json()) is None
        for _ in range(300):
            still.pass_s(SLOT_S)
            device.close_slot(SlotValues(device.slot - 1, (500,)), online=False)
    before = made_in(directory / "state.db")
    assert before > 8
    back_s = int(still.now()) - 30 * SLOT_S
    clock = Clock(back_s, time.time(), SLOT_S * 1000 / 60)
    agent = Agent(directory, broker, clock, sending=f"receipt_interval_s = {int(clock.rate)}")
    utility = Utility(tmp_path / "utility", broker, clock)
    utility.start()
    try:
        async with listening(broker, receipts=False) as hub, playing(agent):
            agent.start()
            await until(lambda: made(agent) > before)
            assert await asyncio.to_thread(agent.end) == 0
            await until(lambda: hub.is_offline("home-7"))
            hub.take_kept(agent)
            assert min(hub.slots("home-7")) < back_s // SLOT_S  # the old window's, kept till now
            later = [slot for slot in hub.slots("home-7") if slot >= back_s // SLOT_S + 30]
            assert min(later) >= back_s // SLOT_S + 97
            hub.check("home-7")
    finally:
        utility.end(9)


async def test_a_batch_above_its_slots_degrades_the_service_AGT_28(
    tmp_path: Path, broker: RealBroker
) -> None:
    """An agent of an older version, whose number no slot explains."""
    clock = fast_clock(SLOT_MS)
    utility = Utility(tmp_path, broker, clock)
    utility.start()
    try:
        await until(lambda: "connected" in utility.log.read_text())
        link = await open_link(Broker(broker.host, broker.port, "old"))
        frame = encode(1, 10**9, 1, [int(clock.now() // SLOT_S) - 1], [0])
        beats: list[str] = []

        def is_told() -> bool:
            with closing(SqliteReader.open(utility.store)) as reader:
                beats[:] = [beat.health for beat in reader.beats()]
            return any("(outrun)" in health for health in beats)

        while not is_told():
            await link.publish(topic(FLEET, "report", "old-1"), frame)
            await asyncio.sleep(0.5)
        assert beats[0].startswith("degraded: ")
        await link.close()
    finally:
        utility.end(9)


async def test_forged_receipts_lose_nothing_spend_nothing_and_hide_no_copy_NET_24(
    tmp_path: Path, broker: RealBroker
) -> None:
    """Whoever has a login that may write receipts, for a while; then a copy of the state."""
    async with living(tmp_path, broker) as (agent, utility, hub):
        agent.start()
        await until(lambda: bool(hub.streams_of("home-7")) and made(agent) >= REPORTS)
        (account, *_) = hub.streams_of("home-7")
        link = await open_link(Broker(broker.host, broker.port, "forger"))
        for told in forgeries(account.series):
            payload = Receipt(told, STORE, 0, "home-7").to_json()
            await link.publish(topic(FLEET, "receipt", "home-7"), payload, retain=True)
        await link.close()
        before = made(agent)
        await until(lambda: made(agent) >= before + REPORTS)
        honest = await utility.settle(agent)
        assert honest["counted"] == honest["created"]
        assert agent.status()["reports_ever"] == honest["created"]
        assert "rollback: somebody tells" in agent.log.read_text()
        shutil.copytree(agent.state.parent, tmp_path / "copy")
        before = made(agent)
        agent.start()
        await until(lambda: made(agent) >= before + 5)
        await utility.settle(agent)
        for path in (tmp_path / "copy").glob("state.db*"):
            shutil.copy(path, agent.state.parent / path.name)
        said = agent.log.read_text().count("rollback: somebody tells")
        agent.start()
        await until(lambda: agent.log.read_text().count("rollback: somebody tells") > said)


def forgeries(series: int) -> list[tuple[StreamReceipt, ...]]:
    """Return lies: above the slot, at the top, of unknown streams, under another series."""
    heights = (T0 // SLOT_S + 10**6, 2**32 - 1, 1000, 2**32 - 2)
    lies: list[tuple[StreamReceipt, ...]] = [
        (StreamReceipt(1, highest, series=series),) for highest in heights
    ]
    lies += [tuple(StreamReceipt(stream, 9, series=5) for stream in range(2, 18))]
    lies += [(StreamReceipt(1, 9, series=9, last=T0 // SLOT_S + 10),)]
    return lies * 20


def counted(utility: Utility) -> int:
    record = utility.record("home-7")
    return record.counted if record else 0


def made_in(path: Path) -> int:
    with closing(Journal(path, create=False)) as journal:
        return sum(one.created for one in journal.status())
