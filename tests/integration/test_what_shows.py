"""What a running agent shows to whoever looks: names, ports, open sockets (PRV-14, PRV-15)."""

import json
import os
import socket
from pathlib import Path

from tests.agent.samples import DEVICE, make_plan
from tests.integration.agent_bench import (
    METER,
    PATIENT_AGENT,
    Agent,
    fast_clock,
    listening,
    playing,
    until,
)
from tests.integration.conftest import RealBroker
from tests.integration.test_tap import hearing

STATUS_FIELDS = [
    *("ages", "health", "ledger", "manifest", "refusals", "refused", "software", "state"),
    *("streams", "v"),
]
STREAM_FIELDS = [
    *("created", "epoch", "expired", "first", "next", "oldest", "plan", "series", "since"),
    "stream",
]


def listening_sockets(pid: int) -> list[str]:
    """Return the sockets of a process that wait for others: TCP in state LISTEN, any UDP."""
    inodes = set()
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(handle.readlink())
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = []
    for name in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in inodes and (fields[3] == "0A" or name.startswith("udp")):
                found.append(f"{name} {fields[1]}")
    return found


async def test_nothing_that_leaves_names_the_meter_the_machine_or_its_network_PRV_14(
    tmp_path: Path, broker: RealBroker
) -> None:
    """Ids are the ones its owner gave; every field is one that docs/security.md lists."""
    agent = Agent(tmp_path / "a", broker, fast_clock(100))
    async with hearing(broker) as heard, listening(broker) as hub, playing(agent):
        await hub.publish(make_plan())
        agent.start()
        await until(lambda: len(hub.slots(agent.device)) >= 3)
        assert agent.end() == 0
        await until(lambda: any(s.state == "offline" for s in hub.statuses[agent.device]))
    mine = [m for m in heard if m.topic.endswith(f"/{DEVICE}") and "/receipt/" not in m.topic]
    kinds = {m.topic.split("/")[3] for m in mine}
    assert kinds == {"report", "status"}
    for message in mine:
        for name in (METER, socket.gethostname(), str(tmp_path), "/dev/", "127.0.0.1"):
            assert name.encode() not in message.payload
    for message in mine:
        if "/status/" in message.topic:
            said = json.loads(message.payload)
            assert set(said) <= set(STATUS_FIELDS)
            assert said.get("ages", {}).keys() <= {"telegram_s", "commit_s", "receipt_s", "link_s"}
            assert all(sorted(stream) == STREAM_FIELDS for stream in said["streams"])


async def test_the_agent_listens_on_nothing_PRV_15(tmp_path: Path, broker: RealBroker) -> None:
    """No health, metrics or debug interface: there is nobody to ask."""
    agent = Agent(tmp_path / "a", broker, fast_clock(100), command=PATIENT_AGENT)
    async with listening(broker) as hub, playing(agent):
        await hub.publish(make_plan())
        agent.start()
        await until(lambda: len(hub.slots(agent.device)) >= 2)
        assert agent.process is not None
        assert listening_sockets(agent.process.pid) == []
        assert agent.end() == 0


def test_the_search_for_listening_sockets_finds_one() -> None:
    """The control."""
    with socket.create_server(("127.0.0.1", 0)):
        assert len(listening_sockets(os.getpid())) >= 1
