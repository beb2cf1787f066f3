"""Every protocol through the real agent: a meter on a pseudo-terminal, a broker, and reports."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agent.meters.protocols import PROTOCOLS
from firmware_stubs.meters import PtyPort, Series, modbus, play
from firmware_stubs.meters.meter_command import PROTOCOLS as SHOWN
from firmware_stubs.meters.readout import serve_readout
from tests.agent.adapters import ser2net
from tests.agent.samples import SLOT_S, make_plan
from tests.integration.agent_bench import (
    METER,
    PATIENT_AGENT,
    Agent,
    allowed_kib,
    fast_clock,
    listening,
    memory_kib,
    until,
)
from tests.integration.conftest import RealBroker


class Case(NamedTuple):
    """The lines of [meter], the simulator's protocol, and the stream that is reported."""

    meter: str
    shown: str
    quantity: str = "power"


CASES = [
    Case('protocol = "sml"', "sml"),
    Case('protocol = "linky"\nbaud = 9600', "linky", "energy_import"),
    Case('protocol = "linky"', "linky-historique", "energy_import"),
    Case('protocol = "iec62056-21"', "iec62056-21"),
    Case(
        'protocol = "lines"\nfields = [{ field = "power", quantity = "power", unit = "W" }]',
        "lines",
    ),
    Case(
        'protocol = "lines"\nfields = [{ field = "ENERGY.Power", quantity = "power", unit = "W" }]',
        "lines-json",
    ),
]


async def reports(
    agent: Agent,
    broker: RealBroker,
    meter: Callable[[], Coroutine[Any, Any, object]],
    quantity: str = "power",
) -> None:
    """Let an agent report three slots of a meter, within its memory."""
    agent.port.plug()
    async with listening(broker) as hub:
        await hub.publish(make_plan(stream=quantity), quantity)
        agent.start()
        await agent.port.wait_for_reader()
        playing = asyncio.create_task(meter())
        try:
            await until(lambda: len(hub.slots(agent.device)) >= 3)
            assert agent.process is not None
            assert memory_kib(agent.process.pid, "VmRSS") <= allowed_kib(32)
        finally:
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)
            assert agent.end() == 0
            agent.port.unplug()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.shown)
async def test_a_meter_of_every_protocol_is_reported_within_the_memory_limit(
    tmp_path: Path, broker: RealBroker, case: Case
) -> None:
    clock = fast_clock(200 if case.quantity == "power" else 1000)  # its border: a 15th
    agent = Agent(
        tmp_path / "a",
        broker,
        clock,
        sending="jitter_s = 0\nreceipt_interval_s = 9000",
        meter=case.meter,
        quantities=(case.quantity,),
        command=PATIENT_AGENT,
    )
    start_s = int(clock.now() // SLOT_S) * SLOT_S
    powers = (100 * (k % 9) for k in range(10**6))
    series = Series(powers, start_s, SLOT_S // 18, METER, show=SHOWN[case.shown])
    await reports(agent, broker, lambda: play(agent.port, series, clock), case.quantity)


Serve = Callable[[PtyPort], Coroutine[None, None, None]]
ASKED: dict[str, tuple[str, Serve]] = {
    "modbus": (
        'protocol = "modbus"\nmodel = "sdm120"\naddress = 7\npoll_ms = 200',
        lambda port: modbus.serve(port, lambda: (378, 1000, 0), address=7, model="sdm120"),
    ),
    "iec62056-21": (
        'protocol = "iec62056-21"\nmode = "request"\npoll_ms = 200',
        lambda port: serve_readout(port, lambda: 378),
    ),
}


@pytest.mark.parametrize("name", ASKED)
async def test_a_meter_that_is_asked_is_reported_too(
    tmp_path: Path, broker: RealBroker, name: str
) -> None:
    meter, serve = ASKED[name]
    agent = Agent(
        tmp_path / "a",
        broker,
        fast_clock(600 if name == "modbus" else 2000),
        sending="jitter_s = 0\nreceipt_interval_s = 9000",
        meter=meter,
        command=PATIENT_AGENT,
    )
    await reports(agent, broker, lambda: serve(agent.port))


@pytest.mark.parametrize("scheme", ["socket", "rfc2217"])
async def test_a_meter_behind_a_network_adapter_is_reported_within_the_memory_limit(
    tmp_path: Path, broker: RealBroker, scheme: str
) -> None:
    """ser2net is the adapter; it goes away for a while, as when somebody restarts it."""
    agent = Agent(
        tmp_path / "a", broker, fast_clock(200), sending="jitter_s = 0", command=PATIENT_AGENT
    )
    agent.port.plug()

    def adapter(port: int | None = None) -> AbstractContextManager[int]:
        return ser2net(agent.port.link, tmp_path, rfc2217=scheme == "rfc2217", port=port)

    with ExitStack() as first:
        number = first.enter_context(adapter())
        text = agent.config.read_text()
        name = f"{scheme}://127.0.0.1:{number}"
        agent.config.write_text(text.replace(f'port = "{agent.port.link}"', f'port = "{name}"'))
        async with listening(broker) as hub:
            await hub.publish(make_plan())
            agent.start()
            playing = asyncio.create_task(agent.play())
            try:
                await until(lambda: len(hub.slots(agent.device)) >= 3)
                first.close()
                await until(lambda: "waiting for it" in agent.log.read_text())
                with adapter(number):
                    await until(lambda: agent.log.read_text().count(": open") == 2)
                    seen = len(hub.slots(agent.device))
                    await until(lambda: len(hub.slots(agent.device)) >= seen + 3)
                    assert agent.process is not None
                    assert memory_kib(agent.process.pid, "VmRSS") <= allowed_kib(32)
                    assert agent.end() == 0
                    hub.check(agent.device)
            finally:
                playing.cancel()
                await asyncio.gather(playing, return_exceptions=True)
                agent.end(signal.SIGKILL)
                agent.port.unplug()
    assert agent.log.read_text().count(": open") == 2


def test_every_protocol_has_a_case() -> None:
    named = {line.split('"')[1] for case in CASES for line in case.meter.splitlines()[:1]}
    assert named | {"dsmr", "modbus"} == PROTOCOLS.keys()
