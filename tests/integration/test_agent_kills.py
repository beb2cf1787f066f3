"""kill -9 before and after each call that leaves the agent, and restarts; signals that end it.

Real broker, aggregator and agents on one clock. After every kill the device's account and the
aggregator's add up (S3), and an observer of the broker sees each slot in one version only (S2).
"""

import asyncio
import signal
from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from agent.claims.batches import Key
from agent.errors import StorageError
from agent.link.uplink import FAREWELL_S
from agent.state.journal import Journal
from aggregator.counting.records import Record
from edge_ldp.device.frame import decode
from tests.agent.samples import make_plan
from tests.integration.agent_bench import Agent, Hub, fast_clock, listening, made, playing, until
from tests.integration.conftest import RealBroker
from tests.integration.faulty import build, environment
from tests.integration.home_bench import Utility, serving

POINTS = 96  # calls of three to four slots, before and after each
WINDOW = (4, 5)
PATIENCE_S = 300
HOMES = {
    "home-a": "jitter_s = 0\nreceipt_interval_s = 9000",
    "home-b": "jitter_s = 300\nreceipt_interval_s = 9000\nbatch_interval_s = 2700",
    "home-c": "jitter_s = 0\nreceipt_interval_s = 86400",
    "home-d": "jitter_s = 0\nreceipt_interval_s = 4500\nmax_kib = 16",
}


def check_account(agent: Agent, utility: Utility) -> int:
    """S3, S4: each report of a dead agent is counted, given up, or kept; return how many there are.

    The device cannot change now, so what the aggregator meanwhile counts is kept as well. What was
    given up for its age may have been counted before: its receipt did not come in time.
    """
    try:
        journal = Journal(agent.state, create=False)
    except StorageError:  # killed before there was any
        return 0
    with closing(journal):
        ledger, accounts = journal.ledger(), journal.status()
        kept = {key: journal.payload(key) for key in sorted(journal.keys())}
        waiting = len(journal.waiting())
    if not accounts:
        return 0
    (account,) = accounts
    assert ledger is not None
    assert ledger.reports == account.created
    record = utility.record(agent.device)
    unsettled = sum(
        len(decode(payload).slots)
        for key, payload in kept.items()
        if payload and not (record and is_settled(record, key))
    )
    counted = record.counted + record.rejected if record else 0
    given_up = account.created - counted - unsettled - waiting
    assert 0 <= given_up <= account.expired
    if record:
        assert record.conflicts == record.rejected == 0
    return account.created


def is_settled(record: Record, key: Key) -> bool:
    inside = any(gap.first <= key.number <= gap.last for gap in record.state.gaps)
    return key.number <= record.state.highest and not inside


def check_window(hub: Hub, agent: Agent) -> None:
    """S4: at most so many reports in any slots of the window."""
    reports, slots = WINDOW
    seen = sorted(hub.slots(agent.device))
    assert all(b - a >= slots for a, b in zip(seen, seen[reports:], strict=False))


def has_reported(agent: Agent) -> bool:
    return made(agent) > 0  # asked often, so by no process of its own


async def killed(agent: Agent) -> bool:
    """Return whether the agent was killed at its point; one that does not reach it is killed."""
    assert agent.process is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            while agent.process.poll() is None:  # noqa: ASYNC110 (another process)
                await asyncio.sleep(0.01)
    except TimeoutError:
        agent.end(signal.SIGKILL)
        return False
    assert agent.process.returncode == -signal.SIGKILL, agent.log.read_text()[-800:]
    agent.process = None
    return True


async def torment(
    agent: Agent, kills: int, point: Callable[[], int], library: Path, utility: Utility
) -> tuple[int, int]:
    """Kill an agent so often, each time at the next point; return hits and reports."""
    hits = reports = 0
    for _ in range(kills):
        agent.environment = environment(library, agent.state, kill_at=point())
        agent.start()
        hits += await killed(agent)
        reports = check_account(agent, utility)
    return hits, reports


async def kill_them(tmp_path: Path, broker: RealBroker, kills: int, names: list[str]) -> int:
    """Kill agents, in turns at every point, and let them deliver in the end; return the hits."""
    clock = fast_clock(100)
    library = build(tmp_path)
    agents = [
        Agent(tmp_path / name, broker, clock, name, sending=HOMES[name], window=WINDOW)
        for name in names
    ]
    utility = Utility(tmp_path / "utility", broker, clock)
    points = count()
    step = 37  # coprime to POINTS: neighbours in time are not neighbours in the code
    async with listening(broker, receipts=False) as hub, serving(utility), playing(*agents):
        await utility.ready()
        done = await asyncio.gather(
            *(
                torment(
                    agent,
                    kills // len(agents),
                    lambda: next(points) * step % POINTS + 1,
                    library,
                    utility,
                )
                for agent in agents
            )
        )
        for agent in agents:
            agent.environment = None
            agent.start()
            await agent.connected()
        for agent in agents:
            await until(partial(has_reported, agent))
            await utility.settle(agent)
            check_window(hub, agent)
            hub.check(agent.device)
            assert agent.status()["reports_ever"] == len(hub.slots(agent.device))
            log = agent.log.read_text()
            assert "damaged" not in log
            assert "Traceback" not in log
            names_left = {path.name for path in agent.state.parent.iterdir()}
            assert names_left <= {"agent.toml", "agent.log", "state.db", "state.db.lock", "meter"}
    print({agent.device: pair for agent, pair in zip(agents, done, strict=True)})  # noqa: T201
    if kills > 100:  # of a few, all may come before the first slot has ended
        assert all(reports >= kills // len(agents) // 8 for _, reports in done)
    return sum(hits for hits, _ in done)


async def test_killed_at_a_few_calls_nothing_is_lost_or_doubled_AGT_01_AGT_02_AGT_03_PRV_01(
    tmp_path: Path, broker: RealBroker
) -> None:
    assert await kill_them(tmp_path, broker, 6, ["home-a"]) >= 5


@pytest.mark.slow
@pytest.mark.timeout(3000)
async def test_killed_before_and_after_every_call_520_times_AGT_01_AGT_02_AGT_03_AGT_17(
    tmp_path: Path, broker: RealBroker
) -> None:
    assert await kill_them(tmp_path, broker, 520, list(HOMES)) >= 500


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
