"""The agent as a service of the host: what it refuses, what it shows, how much it logs."""

import asyncio
import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from edge_ldp.protocol.messages import topic
from firmware_stubs.meters import p1_telegram
from tests.agent.samples import FLEET, T0, config_text, make_plan
from tests.integration.agent_bench import (
    EDGE_LDP,
    PATIENT_AGENT,
    Agent,
    fast_clock,
    listening,
    part,
    playing,
    until,
)
from tests.integration.conftest import OPEN, RealBroker, running
from tests.processes import run_told

ROOT = Path(__file__).parents[2]
SECRET = "hunter2-hunter2"  # noqa: S105 (planted, to be looked for)
ALL_AGES = re.compile(
    rb"STATUS=.*last telegram \d+ s ago, last commit \d+ s ago, link up for \d+ s"
)
SENDING = "jitter_s = 0\nreceipt_interval_s = 9000"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RealBroker]:
    directory = tmp_path / "broker"
    directory.mkdir()
    with running(RealBroker(directory, OPEN)) as made:
        yield made


@pytest.mark.integration
async def test_errors_at_a_thousand_a_second_give_a_few_lines_SVC_04(
    tmp_path: Path, broker: RealBroker
) -> None:
    """Damaged, foreign and undated telegrams, and refused plans, for three seconds."""
    meter = 'meter_id = "E1"\ndate_by = "meter"'
    agent = Agent(tmp_path / "a", broker, fast_clock(100), sending=SENDING, meter=meter)
    agent.port.plug()
    good = p1_telegram(meter_id="E1", time_s=T0 - 10**7, import_wh=1, power_w=9)
    foreign = p1_telegram(meter_id="E2", time_s=T0, import_wh=1, power_w=9)
    damaged = good.replace(b"1-0:1.7.0(00.0", b"1-0:1.7.0(00.1")
    try:
        async with listening(broker) as hub:
            agent.start()
            assert agent.process is not None
            await agent.port.wait_for_reader()
            assert hub.link is not None
            sent, begun_s = 0, time.monotonic()
            while time.monotonic() < begun_s + 3 or sent < 3000:
                await agent.port.write((damaged + foreign + good) * 10)
                plan = make_plan(1, theta=5000 + sent).to_json()
                await hub.link.publish(topic(FLEET, "plan", "power"), plan, retain=True)
                sent += 31
            await until(lambda: "plan refused" in agent.log.read_text())
            assert agent.process.poll() is None
            assert await asyncio.to_thread(agent.end) == 0
    finally:
        agent.end(9)
        agent.port.unplug()
    log = agent.log.read_text()
    assert log.count("\n") <= 25, log


def of_kernel(pid: int) -> list[bytes]:
    """Return what others may read of a process; its environment only root may."""
    paths = [Path(f"/proc/{pid}/{name}") for name in ("cmdline", "environ", "comm")]
    return [path.read_bytes() for path in paths if os.access(path, os.R_OK)]


@pytest.mark.integration
async def test_no_secret_is_in_arguments_or_environment_of_a_running_agent_SVC_07(
    tmp_path: Path, broker: RealBroker
) -> None:
    password = tmp_path / "password"
    password.write_text(SECRET)
    password.chmod(0o600)
    agent = Agent(tmp_path / "a", broker, fast_clock(100), command=PATIENT_AGENT)
    login = f'[broker]\nusername = "me"\npassword_file = "{password}"\n'
    agent.config.write_text(agent.config.read_text().replace("[broker]\n", login))
    agent.port.plug()
    try:
        async with listening(broker) as hub:
            agent.start()
            await until(lambda: "connected" in agent.log.read_text())
            assert agent.process is not None
            shown = of_kernel(agent.process.pid)
            assert await asyncio.to_thread(agent.end) == 0
            assert hub.ready.is_set()
    finally:
        agent.end(9)
        agent.port.unplug()
    assert b"agent\0run" in shown[0]
    assert not any(SECRET.encode() in text for text in shown)
    assert SECRET not in agent.log.read_text()


@pytest.mark.integration
async def test_a_stopped_agent_gives_no_sign_and_started_again_it_goes_on_SVC_02(
    tmp_path: Path, broker: RealBroker
) -> None:
    """What the service manager hears, and what it does then: SIGABRT, and a new start."""
    agent = Agent(tmp_path / "a", broker, fast_clock(100), sending=SENDING)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(str(tmp_path / "notify"))
        ear.setblocking(False)
        named = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "1000000"}
        agent.environment = {**os.environ, **named}
        async with listening(broker) as hub, playing(agent):
            await hub.publish(make_plan())
            agent.start()
            assert agent.process is not None
            await until(lambda: len(hub.slots(agent.device)) >= 3)
            said: list[bytes] = []
            await until(lambda: signs(ear, said) >= 1 and any(map(ALL_AGES.search, said)))
            agent.process.send_signal(signal.SIGSTOP)
            signs(ear)
            await asyncio.sleep(2.5)
            assert signs(ear) == 0
            assert agent.process.poll() is None
            agent.process.send_signal(signal.SIGABRT)
            agent.process.send_signal(signal.SIGCONT)
            assert await asyncio.to_thread(agent.process.wait, 60) == -signal.SIGABRT
            seen = len(hub.slots(agent.device))
            agent.start()
            await until(lambda: len(hub.slots(agent.device)) >= seen + 3)
            assert signs(ear) >= 1
            await part(hub, agent)


def signs(ear: socket.socket, said: list[bytes] | None = None) -> int:
    """Return how many signs of life came since the last look; `said`: where all that came goes."""
    came: list[bytes] = []
    with suppress(BlockingIOError):
        while True:
            came.append(ear.recv(4096))
    if said is not None:
        said += came
    return sum(text.count(b"WATCHDOG=1") for text in came)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run it as root")
def test_as_roots_service_it_refuses_to_start_SVC_05(tmp_path: Path) -> None:
    config = tmp_path / "agent.toml"
    config.write_text(config_text(tmp_path / "s.db"))
    done = run_told(
        [*EDGE_LDP, "agent", "run", "-c", str(config)],
        env={**os.environ, "INVOCATION_ID": "0" * 32},
    )
    assert done.returncode == 2
    assert "--as-root" in done.stderr
    assert not (tmp_path / "s.db").exists()
