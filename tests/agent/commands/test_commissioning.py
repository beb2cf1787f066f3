"""Ports and readings for the person who installs a device (docs/faults.md, SER-07, SER-23)."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent.commands.commissioning import (
    EXIT_NO_TELEGRAM,
    EXIT_OK,
    EXIT_PORT,
    advice,
    list_ports,
    read_meter,
)
from agent.meters.protocols import PROTOCOLS as PARSERS
from agent.meters.section import MeterTable
from agent.meters.words import unanswered_text
from edge_ldp.service.clock import Clock
from firmware_stubs.meters import PtyPort, Series, modbus, play
from firmware_stubs.meters.meter_command import PROTOCOLS
from tests.agent.paced import paced

pytestmark = pytest.mark.integration

FAST = Clock(origin_s=1_767_571_200, started_s=0, rate=1.0)  # every telegram is due
SERIES = Series([378, -120], 1_767_571_200, 900, "E0099000000000001", base_wh=6_657_459)


@pytest.fixture(autouse=True)
async def clock(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    async with paced("agent.commands.commissioning", monkeypatch):
        yield


class Terminal:
    """What was printed, and what was complained of."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.err: list[str] = []


async def read(
    pty: PtyPort,
    send: Callable[[], Awaitable[object]],
    *,
    timeout_s: float = 2.0,
    once: bool = False,
    as_json: bool = False,
    **meter: Any,
) -> tuple[int, Terminal]:
    terminal = Terminal()
    reading = asyncio.ensure_future(
        read_meter(
            MeterTable(port=str(pty.link), **meter),
            once=once,
            as_json=as_json,
            out=terminal.out.append,
            err=terminal.err.append,
            timeout_s=timeout_s,
        )
    )
    await pty.wait_for_reader()
    await send()
    return await asyncio.wait_for(reading, 60), terminal


async def test_a_telegram_is_printed_for_a_person(pty: PtyPort) -> None:
    code, terminal = await read(pty, lambda: play(pty, SERIES, FAST), once=True)
    assert code == EXIT_OK
    (printed,) = terminal.out
    assert printed.splitlines() == [
        "meter E0099000000000001",
        "time 2026-01-05T00:00:00Z",
        "power 378 W",
        "power_export 0 W",
        "energy_import 6657459 Wh",
        "energy_export 0 Wh",
    ]
    assert terminal.err == []


async def test_telegrams_are_printed_for_a_machine_until_the_meter_falls_silent(
    pty: PtyPort,
) -> None:
    code, terminal = await read(pty, lambda: play(pty, SERIES, FAST), as_json=True, timeout_s=1.5)
    assert [json.loads(line) for line in terminal.out] == [
        {
            "meter_id": "E0099000000000001",
            "time_s": 1_767_571_200,
            "power_w": 378,
            "power_export_w": 0,
            "energy_import_wh": 6_657_459,
            "energy_export_wh": 0,
        },
        {
            "meter_id": "E0099000000000001",
            "time_s": 1_767_572_100,
            "power_w": 0,
            "power_export_w": 120,
            "energy_import_wh": 6_657_553,  # 378 W for 900 s are 94.5 Wh
            "energy_export_wh": 0,
        },
    ]
    assert code == EXIT_NO_TELEGRAM
    assert "nothing was received" in terminal.err[0]


@pytest.mark.parametrize(
    ("protocol", "shown", "power"),
    [
        ("sml", "sml", "power_w"),
        ("linky", "linky", "apparent_power_va"),
        ("linky", "linky-historique", "apparent_power_va"),
        ("iec62056-21", "iec62056-21", "power_w"),
    ],
)
async def test_a_meter_of_another_protocol_is_printed_too(
    pty: PtyPort, protocol: str, shown: str, power: str
) -> None:
    series = replace(SERIES, show=PROTOCOLS[shown])
    code, terminal = await read(
        pty, lambda: play(pty, series, FAST), once=True, as_json=True, protocol=protocol
    )
    assert code == EXIT_OK
    printed = json.loads(terminal.out[0])
    assert (printed[power], printed["energy_import_wh"]) == (378, 6_657_459)


async def test_a_meter_that_is_asked_is_printed_too(pty: PtyPort) -> None:
    serving: list[asyncio.Task[None]] = []

    async def serve() -> None:
        serving.append(asyncio.create_task(modbus.serve(pty, lambda: (378, 1000, 0))))

    code, terminal = await read(pty, serve, once=True, protocol="modbus", timeout_s=8)
    serving[0].cancel()
    assert (code, terminal.out[0].splitlines()[:2]) == (EXIT_OK, ["meter 1", "power 378 W"])


async def test_SER_22_a_meter_that_does_not_answer_is_said_not_to(pty: PtyPort) -> None:
    async def nothing() -> None:
        pass

    code, terminal = await read(pty, nothing, protocol="modbus", timeout_s=3.5)
    assert code == EXIT_NO_TELEGRAM
    soon, last = terminal.err
    assert soon.endswith("which may be the wrong way round; asking again")
    assert "no valid telegram for 3.5 s: asked as Modbus RTU" in last


@pytest.mark.parametrize(
    ("port", "keys", "asked", "try_"),
    [
        (
            "socket://a:502",
            {"framing": "tcp"},
            "Modbus TCP (address 1, model sdm630)",
            "no framing",
        ),
        ("socket://a:23", {"address": 7}, "Modbus RTU (address 7", "framing = 'tcp'"),
        ("/dev/x", {"model_file": "m.toml"}, "model m.toml) at 9600 baud, 8N1", "wires A and B"),
    ],
)
def test_SER_22_it_is_said_what_was_asked_and_what_to_try(
    port: str, keys: dict[str, Any], asked: str, try_: str
) -> None:
    told = unanswered_text(MeterTable(port=port, protocol="modbus", **keys))
    assert asked in told
    assert "nothing answers" in told
    assert try_ in told


def test_SER_22_what_is_asked_of_mode_c_is_said_and_nothing_of_one_that_speaks() -> None:
    asked = MeterTable(port="/dev/x", protocol="iec62056-21", mode="request")
    assert "sign on (/?!) at 300 baud, 7E1" in unanswered_text(asked)
    assert unanswered_text(MeterTable(port="/dev/x")) == ""


HINTS = {  # words of where nothing came, and of where it cannot be read
    "dsmr": (
        "request line (pin 2)",
        "115200 baud (8 data bits, no parity), DSMR 2.2 and 3",
    ),
    "sml": ("infrared eye, its cable downwards", "meter that prints text is iec62056-21"),
    "linky": ("terminals I1 and I2", "historique mode uses 1200 baud, in standard mode 9600 baud"),
    "iec62056-21": ("the meter must speak by itself", "a meter that sends no text there is sml"),
    "lines": ("does the sensor print without being asked", "lack a configured field"),
    "modbus": ("the cable and the speed.", "SDM630 meters come with 9600 baud"),
    "plugin:x": ("the cable and the speed.", "see the meter's manual"),
}


@pytest.mark.parametrize("protocol", HINTS)
def test_SER_07_the_advice_is_the_protocols_own(protocol: str) -> None:
    assert set(HINTS) == {*PARSERS, "plugin:x"}
    silent, other = HINTS[protocol]
    nothing, noise = advice(0, {}, protocol), advice(9, {"noise": 9}, protocol)
    assert nothing.startswith("nothing was received. Check the cable and the speed")
    assert silent in nothing
    assert noise.startswith(
        "9 bytes were received and discarded (noise 9). Probably another speed, parity or protocol"
        " (`edge-ldp agent probe` finds them): "
    )
    assert other in noise
    assert "check model" in advice(5, {"refused": 5}, protocol)
    assert "compare meter_id" in advice(5, {"identity": 5}, protocol)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda _: b"", "nothing was received"),
        (lambda t: bytes(b ^ 0x80 for b in t), "115200 baud"),
        (lambda t: t[:-20], "9600 baud"),
        (lambda t: t.replace(b"(50)", b"(51)"), "checksum is wrong or missing"),
        (lambda _: b"/TST5\r\n\r\n1-0:1.7.0(0,378*kW)\r\n!FFFF\r\n", "checksum"),
    ],
)
async def test_SER_07_without_a_valid_telegram_it_is_said_what_to_try(
    pty: PtyPort, damage: Callable[[bytes], bytes], words: str
) -> None:
    code, terminal = await read(
        pty, lambda: play(pty, SERIES, FAST, lambda _, t: damage(t)), timeout_s=1.5
    )
    assert (code, terminal.out) == (EXIT_NO_TELEGRAM, [])
    (said,) = terminal.err
    assert words in said
    assert said.startswith(f"{pty.link}: no valid telegram for 1.5 s: ")


def test_SER_07_the_advice_fits_what_was_discarded() -> None:
    assert "checksum" in advice(900, {"crc": 800, "noise": 100})
    assert "number, unit or time that dsmr" in advice(900, {"value": 900})
    assert "900 bytes were received and discarded (cut 1, noise 899)" in advice(
        900, {"noise": 899, "cut": 1}
    )


async def test_SER_08_a_port_that_goes_away_ends_the_reading(pty: PtyPort) -> None:
    async def unplug() -> None:
        pty.unplug()

    code, terminal = await read(pty, unplug)
    assert code == EXIT_PORT
    assert "gone; plug the adapter in" in terminal.err[0]


async def test_SER_23_a_port_that_is_none_is_said_to_be_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await read_meter(MeterTable(port=str(tmp_path))) == EXIT_PORT
    assert capsys.readouterr() == (
        "",
        f"{tmp_path}: is a directory; name a device in it, such as /dev/ttyUSB0\n",
    )


async def test_readings_go_to_standard_output(
    pty: PtyPort, capsys: pytest.CaptureFixture[str]
) -> None:
    reading = asyncio.ensure_future(read_meter(MeterTable(port=str(pty.link)), once=True))
    await pty.wait_for_reader()
    await play(pty, SERIES, FAST)
    assert await reading == EXIT_OK
    out, err = capsys.readouterr()
    assert "power 378 W\n" in out
    assert err == ""


def test_ports_are_listed_under_the_name_that_survives_replugging(tmp_path: Path) -> None:
    device = tmp_path / "ttyUSB1"
    device.touch()
    by_id = tmp_path / "by-id"
    by_id.mkdir()
    (by_id / "usb-FTDI_P1-if00").symlink_to(device)
    found = [
        SimpleNamespace(device="/dev/ttyAMA0", description=None),
        SimpleNamespace(device="/dev/ttyS0", description="the system's own"),
        SimpleNamespace(device=str(device), description="P1 cable"),
    ]
    consoles = tmp_path / "active"
    consoles.write_text("tty0 ttyS0\n")
    assert list_ports(by_id=by_id, comports=lambda: found, consoles=consoles) == [
        {"path": str(by_id / "usb-FTDI_P1-if00"), "device": str(device), "description": "P1 cable"},
        {"path": "/dev/ttyAMA0", "device": "/dev/ttyAMA0", "description": ""},
    ]


def test_the_ports_of_this_machine_can_be_listed(tmp_path: Path) -> None:
    for port in list_ports(by_id=tmp_path / "none"):
        assert set(port) == {"path", "device", "description"}
