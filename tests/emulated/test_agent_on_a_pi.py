"""The agent on 32-bit and 64-bit ARM, in 2042: telegrams come in, a counted report comes out.

The system of 32 bits is one whose C library knows no time after January 2038; its own clock would
end there, and so only the agent's is set ahead.
"""

import asyncio
import json
import signal
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.state.journal import Journal
from edge_ldp.service.clock import Clock
from tests.agent.samples import SLOT_S
from tests.emulated.machines import ROOT, Machine, machine
from tests.integration.agent_bench import METER, Agent, until
from tests.integration.certificates import Authority
from tests.integration.conftest import RealBroker, broker
from tests.integration.home_bench import Utility, serving

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]
__all__ = ["broker"]  # a fixture
RUNNER = ROOT / "tests" / "portable" / "run_vectors.py"
VECTORS = sorted(str(path) for path in (ROOT / "tests" / "vectors").glob("*/v*/*.json"))
HANDSHAKE = """
import socket, ssl, sys, threading
ca, cert, key = sys.argv[1:]
server, client = socket.socketpair()
own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
own.load_cert_chain(cert, key)
def serve():
    try:
        own.wrap_socket(server, server_side=True).close()
    except OSError:
        server.close()
other = threading.Thread(target=serve)
other.start()
try:
    link = ssl.create_default_context(cafile=ca).wrap_socket(client, server_hostname="localhost")
    print(link.getpeercert()["notAfter"].split()[3])
except ssl.SSLCertVerificationError as exc:
    client.close()
    print(exc.verify_message)
other.join()
"""
# commands in one process: their start is what takes an emulator's time
EACH = """
import json, sys
from edge_ldp.cli import main
for words in json.loads(sys.argv[1]):
    assert main(words) == 0, words
    print(end=chr(12), flush=True)
"""
IN_2042 = 2_300_000_400  # the start of a slot
PATIENCE_S = 300  # an emulated start takes ten seconds of CPU, and the CPU may be another's


@pytest.fixture(scope="session", params=["armhf", "arm64"])
def pi(request: pytest.FixtureRequest) -> Machine:
    """Give an emulated machine."""
    return machine(request.param)


def test_the_machines_are_what_they_stand_for(pi: Machine) -> None:
    facts = """
import json, platform, sys, time
try:
    time.gmtime(2**31)
    ends = False
except OverflowError:
    ends = True
print(json.dumps([platform.machine(), sys.maxsize, sys.byteorder, ends]))
"""
    assert (
        json.loads(pi.run("-c", facts))
        == {
            "armhf": ["armv7l", 2**31 - 1, "little", True],
            "arm64": ["aarch64", 2**63 - 1, "little", False],
        }[pi.arch]
    )


def test_the_golden_vectors_hold(pi: Machine) -> None:
    assert pi.run(str(RUNNER), *VECTORS).count(" agree in ") == len(VECTORS)


def test_certificates_may_end_after_2038_and_one_that_has_ended_is_refused(
    pi: Machine, tmp_path: Path
) -> None:
    authority, days = Authority(tmp_path), 9000
    ends = datetime.now(UTC) + timedelta(days=days)
    lasting = authority.issue("lasting", "localhost", days=(-1, days))
    ended = authority.issue("ended", "localhost", days=(-3, -1))
    said = [
        pi.run("-c", HANDSHAKE, str(authority.ca), str(pair.cert), str(pair.key)).strip()
        for pair in (lasting, ended)
    ]
    assert said == [f"{ends:%Y}", "certificate has expired"]


async def test_telegrams_become_counted_reports_after_2038(
    tmp_path: Path, broker: RealBroker, pi: Machine
) -> None:
    clock = Clock(IN_2042, time.time(), SLOT_S / 2)  # a slot in 2 s
    utility = Utility(tmp_path / "utility", broker, clock)
    command = (*pi.python, "-m", "edge_ldp.cli")
    agent = Agent(tmp_path / "home", broker, clock, command=command, environment=pi.environment)
    agent.port.plug()
    playing = asyncio.create_task(agent.play())

    async def say(*words: str) -> str:
        return await asyncio.to_thread(agent.say, *words, seconds=PATIENCE_S)

    def counted() -> int:
        record = utility.record(agent.device)
        return record.counted if record else 0

    def made() -> int:
        with closing(Journal(agent.state, create=False)) as journal:
            return sum(account.created for account in journal.status())

    try:
        async with serving(utility):
            await utility.ready()
            await say("check")
            agent.start()
            await until(lambda: counted() >= 3, PATIENCE_S)
            utility.end(signal.SIGKILL)
        await until(lambda: made() > counted(), PATIENCE_S)  # what no receipt covers stays
        assert await asyncio.to_thread(agent.end, seconds=PATIENCE_S) == 0
        config = ("-c", str(agent.config))
        port = ("--port", str(agent.port.link))
        asked = (
            ("agent", "ledger", *config),
            ("agent", "explain", *config),
            ("agent", "status", "--json", *config),
            ("agent", "read", "--once", "--json", *port),
        )
        said = await asyncio.to_thread(pi.run, "-c", EACH, json.dumps(asked), seconds=PATIENCE_S)
    finally:
        agent.end(signal.SIGKILL)
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)
        agent.port.unplug()
    ledger, explained, status, telegram, _ = said.split("\f")
    status, telegram = json.loads(status), json.loads(telegram)
    assert 3 <= counted() < status["streams"][0]["created"] == made()
    assert "2042-" in explained.partition("Kept here")[2]
    assert "2042-" in ledger
    assert telegram["meter_id"] == METER
    assert telegram["time_s"] > IN_2042
