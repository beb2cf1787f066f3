"""What the agent's checks cost: memory with and without signatures, and that no dump shows it."""

import asyncio
import json
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from agent.state.place import left_path
from aggregator.plans.keys import make_key, read_signer
from edge_ldp.protocol.released import FIRST_SUMS_KEY
from firmware_stubs.meters.products import TWINS
from tests.agent.ports.test_sources import twin_at
from tests.agent.samples import make_plan
from tests.agent.summed import BOTH, in_memory
from tests.integration.agent_bench import (
    PATIENT_AGENT,
    Agent,
    Hub,
    allowed_kib,
    fast_clock,
    listening,
    memory_kib,
    playing,
    until,
)
from tests.integration.conftest import OPEN, RealBroker, free_port
from tests.processes import run_told

PLAIN_KIB, CURATOR_KIB = allowed_kib(32), allowed_kib(34)
SIGNED_KIB = allowed_kib(40, ciphers=True)
CURATOR = """
[curator]
epsilon = 0.1
method = "fixed"
theta = 4000
chunk = 256
"""


def of_kernel(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text()


def weighed(agent: Agent) -> tuple[int, str]:
    """End an agent; return the KiB that it held, and what it had loaded."""
    assert agent.process is not None
    pid = agent.process.pid
    used, loaded = memory_kib(pid, "VmRSS"), of_kernel(pid, "maps")
    assert agent.end() == 0
    print(f"{agent.device}: {used} KiB")  # noqa: T201 (shown by pytest -s)
    return used, loaded


def reported_under(hub: Hub, agent: Agent, epoch: int) -> bool:
    return len([slot for f in hub.frames(agent.device) if f.epoch == epoch for slot in f.slots]) > 4


def dumps(directory: Path) -> list[Path]:
    return [
        path for path in (*directory.rglob("*"), *Path.cwd().glob("core*")) if "core" in path.name
    ]


@pytest.mark.parametrize("signed", [False, True])
async def test_the_agent_stays_within_its_memory(
    tmp_path: Path, broker: RealBroker, *, signed: bool
) -> None:
    """32 MiB, and 40 with signatures: resident, after plans and reports went through."""
    public = make_key(tmp_path / "plan.key")
    signer = read_signer(tmp_path / "plan.key")
    tables = f'[plans]\nkeys = ["{public.hex()}"]\n' if signed else ""
    agent = Agent(tmp_path / "a", broker, fast_clock(100), tables=tables, command=PATIENT_AGENT)
    async with listening(broker) as hub, playing(agent):
        if signed:
            await hub.publish(make_plan(1).to_json())
        agent.start()
        for epoch in (2, 3):
            plan = make_plan(epoch).to_json()
            await hub.publish(signer.wrap(plan) if signed else plan)
            await until(partial(reported_under, hub, agent, epoch))
        used, loaded = weighed(agent)
    assert used <= (SIGNED_KIB if signed else PLAIN_KIB)
    assert ("cryptography" in loaded) == signed
    assert {frame.epoch for frame in hub.frames(agent.device)} == {2, 3}


async def test_a_curator_stays_within_its_memory(tmp_path: Path, broker: RealBroker) -> None:
    """34 MiB, once values were released; NumPy is not among what it loads."""
    agent = Agent(tmp_path / "a", broker, fast_clock(100), tables=CURATOR, command=PATIENT_AGENT)
    agent.config.write_text(f'mode = "curator"\n{agent.config.read_text()}')
    async with listening(broker) as hub, playing(agent):
        agent.start()
        await until(lambda: any(one.created > 20 for one in hub.streams_of(agent.device)))
        used, loaded = weighed(agent)
    assert used <= CURATOR_KIB
    assert "numpy" not in loaded


async def test_sums_take_a_mebibyte_more_at_most(tmp_path: Path, broker: RealBroker) -> None:
    """Once a period was released beside reports; NumPy is not among what it loads."""
    with in_memory():
        agent = Agent(
            tmp_path / "a",
            broker,
            fast_clock(60),
            stream=BOTH + "least_share = 0\n",
            window=(8, 4),
            command=PATIENT_AGENT,
        )
        async with listening(broker) as hub, playing(agent):
            await hub.publish(make_plan())
            agent.start()
            await until(
                lambda: any(stream >= FIRST_SUMS_KEY for stream, _ in hub.payloads["home-7"])
            )
            used, loaded = weighed(agent)
    assert used <= PLAIN_KIB + 1024
    assert "numpy" not in loaded


@pytest.mark.slow
@pytest.mark.parametrize("product", ["homewizard-v1", "homewizard-v2", "esphome"])
async def test_a_page_or_a_topic_for_a_port_takes_no_more_than_33_mebibytes(
    tmp_path: Path, broker: RealBroker, make_broker: Callable[[str], RealBroker], product: str
) -> None:
    """HTTP, HTTPS with a pinned certificate and a token, and MQTT, after reports went through."""
    theirs = make_broker(OPEN)
    async with twin_at(product, theirs.port, tmp_path) as (twin, access):
        agent = Agent(tmp_path / "a", broker, fast_clock(500), command=PATIENT_AGENT)
        asked = ["poll_ms = 200"] if TWINS[product].path else []
        lines = "\n".join([json.dumps(twin.name), *asked, *access])
        text = agent.config.read_text().replace(json.dumps(str(agent.port.link)), lines)
        agent.config.write_text(text)
        agent.source = twin
        async with listening(broker) as hub, playing(agent):
            await hub.publish(make_plan(2))
            agent.start()
            await until(partial(reported_under, hub, agent, 2))
            used, _ = weighed(agent)
    assert used <= allowed_kib(33, ciphers=bool(access))


async def test_a_page_and_a_share_take_no_more_than_37_mebibytes_and_go_without_a_trace(
    tmp_path: Path, broker: RealBroker
) -> None:
    """With both asked, and a certificate proved; then without [page] what was kept for it."""
    share, page = free_port(), free_port()
    tables = f"[share]\nport = {share}\n[page]\nport = {page}\n"
    agent = Agent(tmp_path / "a", broker, fast_clock(100), tables=tables, command=PATIENT_AGENT)
    async with listening(broker) as hub, playing(agent):
        await hub.publish(make_plan(2))
        agent.start()
        await until(partial(reported_under, hub, agent, 2))
        reader, writer = await asyncio.open_connection("127.0.0.1", share)
        assert await reader.read(1)
        assert b"From today" in await shown(page, "/")
        assert b'"certificate"' in await shown(page, "/proof/power-2.json")
        await asyncio.gather(*(shown(page, "/") for _ in range(40)))  # most are told to wait
        assert agent.process is not None
        used = memory_kib(agent.process.pid, "VmRSS")
        writer.close()
        assert agent.end() == 0
        kept = left_path(agent.state)
        assert kept.read_text().count("made") > 4
        agent.config.write_text(agent.config.read_text().replace(tables, ""))
        agent.start()
        await agent.connected()
        assert not kept.exists()
    assert used <= allowed_kib(37)
    print(f"page and share: {used} KiB")  # noqa: T201 (shown by pytest -s)


async def shown(port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    found = b""
    with suppress(ConnectionError):  # too many at once: the oldest goes
        found = await reader.read()
    writer.close()
    return found


async def test_no_core_is_dumped_whoever_asks_PRV_04(tmp_path: Path, broker: RealBroker) -> None:
    """The limit is raised for the child, which lowers it again; then it is made to abort."""
    agent = Agent(tmp_path / "a", broker, fast_clock(100), command=PATIENT_AGENT)
    before = resource.getrlimit(resource.RLIMIT_CORE)
    async with listening(broker) as hub, playing(agent):
        await hub.publish(make_plan())
        resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
        try:
            agent.start()
        finally:
            resource.setrlimit(resource.RLIMIT_CORE, before)
        await until(lambda: len(hub.slots(agent.device)) >= 2)
        assert agent.process is not None
        limits = of_kernel(agent.process.pid, "limits")
        (line,) = (row for row in limits.splitlines() if row.startswith("Max core file size"))
        assert line.split()[4:6] == ["0", "0"]
        for number in (signal.SIGABRT, signal.SIGSEGV):
            assert agent.end(number) == -number
            agent.start()
            await asyncio.sleep(0.1)
    assert dumps(tmp_path) == []


def test_the_process_says_that_it_may_not_be_dumped_PRV_04() -> None:
    """Limit 0 does not stop a kernel that pipes cores to a program; "not dumpable" does."""
    script = (
        "import ctypes\n"
        "from agent.running.memory import forbid_dumps\n"
        "get = lambda: ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)\n"
        "before = get()\n"
        "print(before, forbid_dumps(), get())"
    )
    done = run_told([sys.executable, "-c", script], check=True)
    assert done.stdout.split() == ["1", "True", "0"]
