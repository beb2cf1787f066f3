"""Parsers by name, plug-ins of other packages, and the talk with a meter that is asked (SER-22)."""

import asyncio
import re
import sys
import termios
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest
import serial

from agent.config import parse_meter
from agent.errors import ConfigError, PortError
from agent.meters.modbus.frames import RtuFrames
from agent.meters.modbus.meter import ModbusMeter
from agent.meters.modbus.models import shipped
from agent.meters.protocols import PROTOCOLS
from agent.meters.reading import Discarded, Event, SetBaud, Telegram
from agent.meters.section import MeterTable
from agent.ports.meters import GROUP, ask, make_meter
from agent.ports.open_port import open_port
from firmware_stubs.meters import PtyPort, modbus
from tests.agent.meters.samples import heard, values
from tests.processes import run_told

PLUG_IN = """
from agent.meters.reading import Reading, Telegram


class Meter:
    def __init__(self, table):
        self.watts = table.options["watts"]

    def feed(self, data):
        return [Telegram("x", None, (Reading("power", self.watts),)) for _ in data]

    def silence(self):
        return []
"""


def asking(poll_ms: int) -> ModbusMeter:
    return ModbusMeter(shipped("sdm630"), RtuFrames(1), poll_ms=poll_ms)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package with a plug-in, as pip does."""
    (tmp_path / "house_meter.py").write_text(PLUG_IN)
    info = tmp_path / "house_meter-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: house-meter\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\nhouse = house_meter:Meter\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("installed")
def test_a_plug_in_is_found_by_its_entry_point_and_told_its_options() -> None:
    table = parse_meter(
        'port = "/dev/null"\nprotocol = "plugin:house"\noptions = { watts = 5 }', "x"
    )
    meter = make_meter(table)
    assert not isinstance(meter, ModbusMeter)
    (telegram,) = meter.feed(b"x")  # type: ignore[call-arg]
    assert isinstance(telegram, Telegram)
    assert values(telegram) == {"power": 5}
    assert table.line == (9600, 8, "N")


def test_a_plug_in_that_is_not_installed_is_named() -> None:
    with pytest.raises(ConfigError, match="plug-in that one installed package has: absent"):
        make_meter(MeterTable(port="x", protocol="plugin:absent"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_protocol_imports_its_own_parser_and_no_other(protocol: str) -> None:
    script = (
        "import sys, agent.main\n"
        "from agent.meters.section import MeterTable\n"
        "from agent.ports.meters import make_meter\n"
        f"make_meter(MeterTable(port='x', protocol={protocol!r}))\n"
        "print(*sorted(sys.modules))"
    )
    done = run_told([sys.executable, "-c", script], check=True)
    own = {
        "dsmr": {"dsmr"},
        "sml": {"sml", "sml_transport"},
        "linky": {"linky"},
        "iec62056-21": {"readout", "dsmr"},
        "lines": {"lines"},
        "modbus": {"modbus"},
    }
    parsers = set().union(*own.values()) | {"readout_request"}
    places = re.compile(r"agent\.meters\.(obis\.)?")
    loaded = {places.sub("", name) for name in done.stdout.split()}
    assert loaded & parsers == own[protocol]
    assert "importlib.metadata" not in loaded


@pytest.mark.integration
async def test_a_meter_is_asked_and_its_answer_read(pty: PtyPort) -> None:
    serving = asyncio.create_task(modbus.serve(pty, lambda: (-378, 1000, 2000)))
    table = MeterTable(port=str(pty.link), protocol="modbus", poll_ms=200)
    with closing(await open_port(table.port, 9600, parity="N", data_bits=8)) as port:
        found = await heard(port, table, 2)
    serving.cancel()
    shown = {"power": 0, "power_export": 378, "energy_import": 1000, "energy_export": 2000}
    assert [values(event) for event in found] == [shown, shown]


@pytest.mark.integration
async def test_SER_22_no_answer_is_waited_out_and_nothing_hangs(pty: PtyPort) -> None:
    meter = asking(200)
    with closing(await open_port(str(pty.link), 9600)) as port:
        async with asyncio.timeout(300):
            while not (found := (await ask(port, meter))[1]):
                pass
    assert found == [Discarded(0, "silence")]


@pytest.mark.integration
async def test_SER_22_a_port_that_takes_nothing_does_not_block(pty: PtyPort) -> None:
    with closing(await open_port(str(pty.link), 9600)) as port:
        taken = sum(port.write(b"x" * 1000) for _ in range(200))
        assert 0 < taken < 200  # nobody reads the other end


@pytest.mark.integration
async def test_SER_08_asking_on_a_port_that_is_gone_says_so(pty: PtyPort) -> None:
    class Fast:
        wake_ms = 0

        def tick(self, now_ms: int) -> list[Event]:
            return [SetBaud(300 + now_ms % 2 * 300)]

        def feed(self, data: bytes, now_ms: int) -> list[Event]:
            raise AssertionError(data, now_ms)

    port = await open_port(str(pty.link), 9600)
    pty.unplug()
    with pytest.raises(PortError, match="gone"):
        await ask(port, Fast())
    with pytest.raises(PortError, match="gone"):
        port.write(b"x")
    port.close()
    with pytest.raises(PortError, match="gone"):
        port.write(b"x")


@pytest.mark.integration
@pytest.mark.parametrize(("parity", "heeded"), [("E", True), ("O", True), ("N", False)])
async def test_SER_02_a_character_with_wrong_parity_is_not_let_by(
    pty: PtyPort, devices: list[serial.Serial], parity: Literal["E", "O", "N"], *, heeded: bool
) -> None:
    """Pseudo-terminals have no parity; that the kernel is told to look is what can be seen."""
    with closing(await open_port(str(pty.link), 300, parity=parity, data_bits=7)) as port:
        assert bool(termios.tcgetattr(devices[0].fd)[0] & termios.INPCK) == heeded
        port.set_baud(9600)
        assert bool(termios.tcgetattr(devices[0].fd)[0] & termios.INPCK) == heeded


@pytest.mark.integration
async def test_the_speed_of_an_open_port_can_be_changed(pty: PtyPort) -> None:
    with closing(await open_port(str(pty.link), 300)) as port:
        port.set_baud(9600)
        assert pty.baud == 9600
        with pytest.raises(PortError):
            port.set_baud(-1)
