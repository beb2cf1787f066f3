"""Agents on disks that are full, read-only, slow or broken, and in too little room of any kind."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from agent.state.journal import Journal
from tests.agent.samples import SLOT_S, begun, make_plan
from tests.integration.agent_bench import (
    EDGE_LDP,
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
from tests.integration.conftest import RealBroker
from tests.integration.faulty import build, environment
from tests.processes import run_told

SLOTS_10 = "jitter_s = 0\nreceipt_interval_s = 9000"
NOT_ROOT = "only root may mount a file system: run these tests as root"
PAGE, FRAME_BYTES = 4096, 512 + 24  # of a file system in memory, and of the write-ahead log
HELD = "nothing is randomised until state can be stored"


@contextmanager
def mounted(place: Path, options: str) -> Iterator[Path]:
    """Give a file system in memory; skips where it may not be mounted."""
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)],
        capture_output=True,
        check=False,
        timeout=240,
    )
    if done.returncode:
        pytest.skip(NOT_ROOT)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True, timeout=240)


def fill(place: Path) -> Path:
    """Leave no room on a file system."""
    path = place / "filling"
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return path


async def more(hub: Hub, agent: Agent, slots: int = 3) -> None:
    """Return once so many more slots were reported."""
    seen = len(hub.slots(agent.device))
    await until(lambda: len(hub.slots(agent.device)) >= seen + slots)


async def shown(agent: Agent, health: str) -> None:
    """Return once `agent status` says so; the meter goes on meanwhile, as it is in this loop."""
    async with asyncio.timeout(300):
        while health not in (await asyncio.to_thread(agent.status))["health"]:
            pass


async def ended_well(hub: Hub, agent: Agent) -> None:
    """End an agent and check that all it made came, once."""
    await part(hub, agent)
    assert agent.status()["reports_ever"] == len(hub.slots(agent.device))
    assert "Traceback" not in agent.log.read_text()


async def test_on_a_full_disk_it_waits_and_goes_on_when_there_is_room_AGT_05(
    tmp_path: Path, broker: RealBroker
) -> None:
    with mounted(tmp_path / "small", "size=800k,mode=0700") as place:
        sending = SLOTS_10
        agent = Agent(place / "home", broker, fast_clock(100), sending=sending, meter=PATIENT)
        agent.log = tmp_path / "agent.log"
        async with listening(broker) as hub, playing(agent):
            await hub.publish(make_plan())
            agent.start()
            await more(hub, agent)
            assert agent.process is not None
            process = agent.process
            filling = fill(place)
            await until(lambda: HELD in agent.log.read_text())
            used, stored = cpu_s(process.pid), made(agent)
            await asyncio.sleep(1.5)
            assert cpu_s(process.pid) - used <= 0.3
            assert made(agent) <= stored + 1  # a short claim may fit where a longer one did not
            assert process.poll() is None
            await shown(agent, "storage")
            filling.unlink()
            await more(hub, agent)
            assert agent.process is process, "the same process went on"
            await shown(agent, "ok")
            await ended_well(hub, agent)
        log = agent.log.read_text()
        assert log.count(HELD) <= 1 + PAGE // FRAME_BYTES  # what still fits is told of, too
        assert "state can be stored again" in log
        names = {path.name for path in agent.state.parent.iterdir()}
        assert names <= {"agent.toml", "state.db", "state.db.lock", "meter"}


def test_on_a_read_only_disk_it_refuses_to_start_and_names_it_AGT_06(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "size=800k,mode=0700") as place:
        agent = Agent(tmp_path / "a", 1, fast_clock(100))
        state = place / "state.db"
        agent.config.write_text(agent.config.read_text().replace(str(agent.state), str(state)))
        Journal(state).close()
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True, timeout=240)
        code, said, seconds = refused(agent)
    assert code == 4
    assert str(state) in said
    assert "Read-only file system" in said
    assert len([line for line in said.splitlines() if "WARNING" not in line]) == 1
    assert seconds < 10  # of CPU: it does not try again and again


def refused(agent: Agent) -> tuple[int, str, float]:
    """Run an agent that ends by itself; return its exit code, what it said, and its CPU time."""
    before = os.times()
    done = run_told([*EDGE_LDP, "agent", "run", "-c", str(agent.config)], env=agent.environment)
    after = os.times()
    used = after.children_user + after.children_system
    return done.returncode, done.stderr, used - before.children_user - before.children_system


@pytest.mark.parametrize("at", [3, pytest.param(6, marks=pytest.mark.slow)])
async def test_a_sync_that_failed_ends_it_and_is_never_tried_again_AGT_09(
    tmp_path: Path, broker: RealBroker, at: int
) -> None:
    agent = Agent(tmp_path / "a", broker, fast_clock(100), sending=SLOTS_10)
    agent.environment = environment(build(tmp_path), agent.state, sync_at=at)
    async with listening(broker) as hub, playing(agent):
        await hub.publish(make_plan())
        agent.start()
        assert agent.process is not None
        assert await asyncio.to_thread(agent.process.wait, 60) == 4
        log = agent.log.read_text()
        assert "disk I/O error" in log
        assert HELD not in log
        agent.environment = None
        agent.start()
        await more(hub, agent)
        await ended_well(hub, agent)
    assert "damaged" not in agent.log.read_text()


@pytest.mark.slow
async def test_a_sync_of_ten_seconds_loses_no_telegram_and_the_link_comes_back_AGT_20(
    tmp_path: Path, broker: RealBroker
) -> None:
    """Slots of 2 s: what the meter sends meanwhile waits in the port's own buffer of 4 KiB.

    Five slots are then claimed at once: the window of elapsed time (AGT-22) must hold them, too.
    """
    switch = tmp_path / "switch"
    agent = Agent(tmp_path / "a", broker, fast_clock(2000), sending=SLOTS_10, window=(20, 20))
    text = agent.config.read_text()
    agent.config.write_text(text.replace("[meter]", "keepalive_s = 5\n[meter]"))
    agent.environment = environment(build(tmp_path), agent.state, switch=switch, sync_ms=10_000)
    async with listening(broker) as hub, playing(agent):
        await hub.publish(make_plan())
        agent.start()
        await more(hub, agent, 2)
        switch.touch()
        await asyncio.sleep(4)  # somewhere in the sync
        switch.unlink()
        await asyncio.sleep(8)
        await more(hub, agent, 6)
        await ended_well(hub, agent)
    slots = sorted(hub.slots(agent.device))
    assert slots == list(range(slots[0], slots[-1] + 1)), "slots went missing"
    assert agent.log.read_text().count("connected") <= 2


BACKLOG = 34_000  # slots of a year less a little, three streams


def preset(state: Path, now: int, streams: tuple[int, ...], slots: int) -> None:
    """Write a state file in which nothing was sent for so many slots."""
    with closing(Journal(state)) as journal, journal.transaction() as db:
        for stream in streams:
            db.execute(
                "INSERT INTO streams (stream, first, next, created, expired)"
                " VALUES (?, ?, 1, ?, 0)",
                (stream, now - slots, slots),
            )
            journal.begin_series(begun(stream))
            db.executemany(
                "INSERT INTO waiting VALUES (?, ?, 1, ?, 0)",
                ((stream, now - slots + k, k % 50) for k in range(slots)),
            )


@contextmanager
def limited(limit_bytes: int) -> Iterator[Path | None]:
    """Give a control group with so much memory and no swap, or None where none can be made."""
    for root, limit in (("memory/", "memory.limit_in_bytes"), ("", "memory.max")):
        group = Path(f"/sys/fs/cgroup/{root}edge-ldp-test-{os.getpid()}")
        try:
            group.mkdir()
            (group / limit).write_text(str(limit_bytes))
        except OSError:
            if group.is_dir():
                group.rmdir()
            continue
        try:
            yield group
        finally:
            group.rmdir()
        return
    yield None


async def test_a_backlog_of_a_hundred_thousand_reports_leaves_in_64_MiB_AGT_18(
    tmp_path: Path, broker: RealBroker
) -> None:
    sending = f"{SLOTS_10}\nmax_age_days = 366\nmax_kib = 65536\nbatches_per_s = 1000"
    quantities = ("power", "power_export", "energy_import")
    agent = Agent(
        tmp_path / "a",
        broker,
        fast_clock(2000),
        sending=sending,
        quantities=quantities,
        command=PATIENT_AGENT,
    )
    preset(agent.state, int(agent.clock.now() // SLOT_S), (1, 2, 3), BACKLOG)
    with limited(64 << 20) as group:
        async with listening(broker) as hub, playing(agent):
            agent.start()
            assert agent.process is not None
            if group:
                (group / "cgroup.procs").write_text(str(agent.process.pid))
            await until(lambda: sum(map(length, hub.frames(agent.device))) >= 3 * BACKLOG, 300)
            most = memory_kib(agent.process.pid, "VmHWM")
            assert agent.end() == 0
            await until(lambda: hub.is_offline(agent.device))
            for key, payloads in hub.payloads[agent.device].items():
                assert len(set(payloads)) == 1, key
    print(f"most {most} KiB, control group {group}")  # noqa: T201 (shown by pytest -s)
    assert most <= 64 * 1024
    assert not group or group.exists() is False
    created = sum(account.created for account in hub.statuses[agent.device][-1].streams)
    assert created == 3 * BACKLOG


def length(frame: object) -> int:
    slots: tuple[int, ...] = frame.slots  # type: ignore[attr-defined] # a frame
    return len(slots)


@pytest.mark.parametrize(
    "limit", [16, *(pytest.param(limit, marks=pytest.mark.slow) for limit in (12, 14, 18))]
)
async def test_without_descriptors_it_says_so_and_does_not_spin_AGT_19(
    tmp_path: Path, broker: RealBroker, limit: int
) -> None:
    agent = Agent(tmp_path / "a", broker, fast_clock(1000), sending=SLOTS_10)
    with agent.log.open("ab") as log:
        process = agent.process = subprocess.Popen(  # noqa: ASYNC220 (returns at once)
            [
                *("sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh"),
                *(*EDGE_LDP, "agent", "run", "-c", str(agent.config)),
            ],
            stderr=log,
        )
    async with playing(agent):
        while (code := process.poll()) is None:  # it ends, or comes to rest
            used = cpu_s(process.pid)
            await asyncio.sleep(2)
            is_at_work = "port" in agent.log.read_text()  # and minds a signal; a busy loop: 2
            if is_at_work and process.poll() is None and cpu_s(process.pid) - used <= 0.5:
                assert agent.end(signal.SIGTERM) == 0
                break
    log_text = agent.log.read_text()
    assert code in (None, 4)
    assert "Traceback" not in log_text
    assert code is None or "Too many open files" in log_text
