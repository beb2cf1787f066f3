"""Agent processes against a real broker and a pseudo-terminal: killed, cut off, unplugged, misled.

Time runs at a slot in 50 or 100 ms. After each fault: no slot twice (S2), nothing lost (S3).
"""

import asyncio
import json
import logging
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from agent.claims.batches import pack
from agent.claims.pipeline import Report
from agent.errors import StorageError
from agent.link.uplink import FAREWELL_S
from agent.state.journal import Journal
from edge_ldp.protocol.ledger import Ledger, Window
from edge_ldp.protocol.plan import last_epoch
from firmware_stubs.meters import Series, p1_telegram, play
from tests.agent.samples import SLOT_S, T0, begun, bomb, make_plan, numbered
from tests.integration.agent_bench import (
    METER,
    PATIENT,
    PATIENT_AGENT,
    Agent,
    Hub,
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


async def test_a_broker_restarted_in_mid_run_costs_nothing_NET_01_NET_02(
    tmp_path: Path, broker: RealBroker
) -> None:
    agent = Agent(tmp_path / "a", broker, fast_clock(50), sending=SLOTS_10, meter=PATIENT)
    async with listening(broker) as hub, playing(agent):
        await hub.publish(make_plan())
        agent.start()
        for end in (broker.stop, broker.kill):
            await until(partial(has_more, hub, agent, len(hub.slots(agent.device)) + 3))
            end()
            before = made(agent)
            await until(partial(has_made, agent, before + 5))  # offline
            broker.start()
        await until(partial(has_more, hub, agent, len(hub.slots(agent.device)) + 3))
        await until(partial(without_gaps, hub, agent))  # what nobody heard is sent again
        await part(hub, agent)
    assert agent.log.read_text().count("reports are kept") <= 12


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


HOSTILE = [
    b"",
    b"\x00" * 5000,
    b"null",
    b"{" * 3000,
    b"[" * 300_000,
    b"x" * 10_000_000,
    make_plan(9, epsilon=2).to_json(),
    make_plan(9, theta=4001).to_json(),
    make_plan(9, fleet="other").to_json(),
    make_plan(1, theta=900).to_json(),
    make_plan(3, theta=900).to_json().replace(b'"epoch":3', b'"epoch":2.0'),
    make_plan(last_epoch(T0 + 10**7)).to_json(),
]


async def test_hostile_plans_leave_the_agent_reporting_under_the_last_good_one_NET_14_PLN_03_PLN_06(
    tmp_path: Path, broker: RealBroker
) -> None:
    agent = Agent(tmp_path / "a", broker, fast_clock(100), sending=SLOTS_10, command=PATIENT_AGENT)
    async with listening(broker) as hub, playing(agent):
        await hub.publish(make_plan(2))
        agent.start()
        await until(lambda: len(hub.slots(agent.device)) >= 2)
        assert agent.process is not None
        before = memory_kib(agent.process.pid, "VmRSS")
        for payload in HOSTILE:
            await hub.publish(payload)
        await until(lambda: "plan refused: ratio" in agent.log.read_text())
        seen = max(hub.slots(agent.device))
        await until(lambda: max(hub.slots(agent.device)) > seen + 3)
        agent.end(signal.SIGKILL)  # the last garbage is retained: it meets the restarted agent too
        agent.start()
        seen = max(hub.slots(agent.device))
        await until(lambda: max(hub.slots(agent.device)) > seen + 3)
        after = memory_kib(agent.process.pid, "VmRSS")
        assert {frame.epoch for frame in hub.frames(agent.device)} == {2}
        await hub.publish(make_plan(3))
        await until(lambda: hub.frames(agent.device)[-1].epoch == 3)
        await part(hub, agent)
    assert after < before + 8 * 1024
    log = agent.log.read_text()
    assert log.count("plan refused: ratio") == 1
    assert log.count("plan refused: epoch") <= 2
    assert log.count("plan refused") <= 10


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


def dirty(k: int, telegram: bytes) -> bytes:
    """Spoil a telegram: noise before it, a wrong CRC, another meter's; every fourth is clean."""
    if k % 4 == 0:
        return b"\x00\xff\x1b[2J/half a header" + telegram
    if k % 4 == 1:
        return telegram.replace(b"1-0:1.7.0(00.5", b"1-0:1.7.0(00.6")
    if k % 4 == 2:
        return p1_telegram(meter_id="E0099", time_s=T0 + k * SLOT_S, import_wh=1, power_w=9)
    return telegram


async def test_a_dirty_line_makes_reports_of_good_telegrams_only_SER_01_SER_06_SER_21(
    tmp_path: Path, broker: RealBroker
) -> None:
    meter = f'meter_id = "{METER}"\ndate_by = "meter"\nclock_tolerance_s = {10 * SLOT_S}'
    agent = Agent(tmp_path / "a", broker, fast_clock(100), sending=SLOTS_10, meter=meter)
    start_s = int(agent.clock.now() // SLOT_S + 1) * SLOT_S
    series = Series((500 for _ in range(10**6)), start_s, SLOT_S, METER)
    agent.port.plug()
    sending = asyncio.create_task(play(agent.port, series, agent.clock, dirty))
    try:
        async with listening(broker) as hub:
            await hub.publish(make_plan())
            agent.start()
            await until(lambda: len(hub.slots(agent.device)) >= 6)
            await part(hub, agent)
            reported = {(slot - start_s // SLOT_S) % 4 for slot in hub.slots(agent.device)}
            assert reported == {0, 3}
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        agent.end(signal.SIGKILL)
        agent.port.unplug()


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


def has_more(hub: Hub, agent: Agent, slots: int) -> bool:
    """Say whether more than so many slots were reported."""
    return len(hub.slots(agent.device)) > slots


def has_made(agent: Agent, reports: int) -> bool:
    """Say whether an agent has stored so many."""
    return made(agent) >= reports


def without_gaps(hub: Hub, agent: Agent) -> bool:
    """Say whether every batch between the first and the last came."""
    numbers = [number for _, number in hub.payloads[agent.device]]
    return len(numbers) == max(numbers) - min(numbers) + 1


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


async def test_a_restart_storm_leaves_no_files_and_no_budget_behind_AGT_17(
    tmp_path: Path, broker: RealBroker
) -> None:
    """S4: at most 2 reports in any 5 slots, however often it is killed at its start."""
    agent = Agent(tmp_path / "a", broker, fast_clock(50), sending=SLOTS_10, window=(2, 5))
    async with listening(broker) as hub, playing(agent):
        await hub.publish(make_plan())
        for pause_s in (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.8):
            agent.start()
            await asyncio.sleep(pause_s)
            agent.end(signal.SIGKILL)
        agent.start()
        seen = len(hub.slots(agent.device))
        await until(lambda: len(hub.slots(agent.device)) >= seen + 6)
        await part(hub, agent)
    slots = sorted(hub.slots(agent.device))
    assert all(b - a >= 5 for a, b in zip(slots, slots[2:], strict=False))
    names = {path.name for path in agent.state.parent.iterdir()}
    assert names <= {"agent.toml", "agent.log", "state.db", "state.db.lock", "meter"}


async def test_an_agent_goes_from_97_slots_to_107_without_a_silent_day_AGG_31(
    tmp_path: Path, broker: RealBroker
) -> None:
    """AGG_31, from files of the version that had no period; at most 8 in any 97 slots throughout.

    The ledger of a home that has reported for long begins as soon as the reports before leave room,
    that of one whose first window is not over, as more may have been before it, after a whole one.
    """
    clock, window = fast_clock(20), Window(8, 97, 1)
    homes = [
        Agent(tmp_path / name, broker, clock, name, sending=SLOTS_10, window=(8, 97))
        for name in ("long", "young")
    ]
    floor = int(clock.now() // SLOT_S) // 97 * 97
    past = [floor - 12 * k for k in range(8)]
    for agent, age in zip(homes, (300, 60), strict=True):
        journal = Journal(agent.state)
        cells = tuple(sorted(slot % 97 for slot in past))
        old = Ledger(window, cells, floor, silent_until=floor - age)
        journal.save_ledger(old)
        table = json.loads(old.to_json()) | {"v": 1}
        del table["window"]["period"]
        with journal.transaction() as db:
            db.execute("UPDATE ledger SET value = ?", (json.dumps(table).encode(),))
        journal.close()
    async with listening(broker) as hub, playing(*homes):
        await hub.publish(make_plan())
        for agent in homes:
            agent.start()
        await until(lambda: all(len(hub.slots(agent.device)) >= 5 for agent in homes))
        for agent in homes:
            assert agent.end() == 0
        await until(lambda: all(hub.is_offline(agent.device) for agent in homes))
    for agent, age in zip(homes, (300, 60), strict=True):
        journal = Journal(agent.state, create=False)
        ledger = journal.ledger()
        journal.close()
        assert ledger is not None
        assert ledger.window == replace(window, period=107)
        due = [slot for slot in range(floor + 1, floor + 300) if slot % 107 in ledger.cells]
        first = floor + 97
        if age > 97:
            first = next(at for at in range(floor + 1, first + 1) if fits(past, due, at))
        assert ledger.silent_until == first
        reported = sorted(hub.slots(agent.device))
        assert reported[0] >= first
        assert {slot % 107 for slot in reported} <= set(ledger.cells)
        assert fits(reported, [], 0)
        hub.check(agent.device)


def fits(past: list[int], due: list[int], first: int) -> bool:
    """Say whether no 97 slots hold more than 8 of what was made, and what is due from a slot on."""
    slots = sorted([*past, *(slot for slot in due if slot >= first)])
    return all(after - before >= 97 for before, after in zip(slots, slots[8:], strict=False))


async def test_weeks_offline_are_sent_in_few_batches_AGT_16(
    tmp_path: Path, broker: RealBroker
) -> None:
    """A backlog far above the age limit: the oldest expire, counted."""
    agent = Agent(
        tmp_path / "a", broker, fast_clock(2000), sending=SLOTS_10 + "\nmax_age_days = 10"
    )
    journal = Journal(agent.state)
    now = int(agent.clock.now() // 900)
    old = [Report(1, now - 20_000 + k, 1, k % 50) for k in range(20_000)]
    with journal.transaction() as db:
        db.execute("INSERT INTO streams VALUES (1, ?1, 1, 20000, 0, 0)", (now - 20_000,))
        journal.begin_series(begun(1))
        for batch in pack(old[:15_000], numbered(1)):
            journal.put_batch(batch)
        db.executemany(
            "INSERT INTO waiting VALUES (?, ?, ?, ?, 0)",
            [(r.stream, r.slot, r.epoch, r.code) for r in old[15_000:]],
        )
    journal.close()
    async with listening(broker) as hub, playing(agent):
        agent.start()
        await until(lambda: len(hub.slots(agent.device)) > 800)  # more expire while it starts
        assert agent.end() == 0
        await until(lambda: hub.is_offline(agent.device))
    (account,) = hub.statuses[agent.device][-1].streams
    came = len(hub.slots(agent.device))
    assert account.expired > 18_000
    assert account.created == 20_000 == account.expired + came
    assert len(hub.payloads[agent.device]) <= 3
