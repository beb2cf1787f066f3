"""Finding speed and protocol: simulated meters that are understood at their own speed only."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import closing
from itertools import count, cycle
from pathlib import Path
from typing import Any

import pytest

from agent.config import parse_meter
from agent.meters.obis.dsmr import P1Meter
from agent.meters.protocols import PROTOCOLS as KNOWN
from agent.meters.protocols import Line
from agent.ports.findings import (
    TELEGRAMS,
    Found,
    LineListener,
    Tried,
    as_facts,
    text_names,
    toml_lines,
)
from agent.ports.open_port import open_port
from agent.ports.port import LINE_REFUSED
from agent.ports.probe import LISTENED, probe
from firmware_stubs.meters import PtyPort, modbus
from firmware_stubs.meters.faults import at_another_speed
from firmware_stubs.meters.lines import json_line
from firmware_stubs.meters.meter_command import PROTOCOLS
from firmware_stubs.meters.readout import serve_readout
from firmware_stubs.meters.tcp_port import TcpPort
from tests.agent.meters.samples import heard, sealed, values
from tests.agent.paced import beside, paced

pytestmark = pytest.mark.integration
MARKER = 7353
SECONDS = 1.0  # that a wrong speed costs; bytes that come later would not be heard


@pytest.fixture(autouse=True)
async def clock(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    async with paced("agent.ports.probe", monkeypatch):
        yield


async def speak(port: PtyPort | TcpPort, protocol: str, baud: int | None) -> None:
    """Send telegrams for ever; at another speed than `baud` they come as something else."""
    for k in count():
        if not port.has_reader:
            await asyncio.sleep(0.01)
            continue
        shown = PROTOCOLS[protocol](
            meter_id="E0099000000000001", time_s=1_767_571_200 + k, import_wh=MARKER, power_w=MARKER
        )
        is_right = baud is None or (isinstance(port, PtyPort) and port.baud == baud)
        await port.write(shown if is_right else at_another_speed(k, shown))
        await asyncio.sleep(0.05)


async def probed(
    name: str | Path, sending: Coroutine[Any, Any, Any], **options: Any
) -> tuple[Found | None, list[Tried], list[str]]:
    """Return what is found of a meter that sends so, what was tried, and what was said."""
    said: list[str] = []
    async with beside(sending):
        outcome, tried = await probe(str(name), said.append, **{"seconds": SECONDS, **options})
    return outcome, tried, said


SPEAKERS = [
    ("dsmr", 115_200, {"protocol": "dsmr"}, "power"),
    ("sml", 9600, {"protocol": "sml"}, "power"),
    ("linky", 9600, {"protocol": "linky"}, "apparent_power"),
    ("linky-historique", 1200, {"protocol": "linky"}, "apparent_power"),
    ("iec62056-21", 300, {"protocol": "iec62056-21"}, "power"),
]


@pytest.mark.parametrize(("name", "baud", "keys", "quantity"), SPEAKERS)
async def test_SER_07_a_meter_that_speaks_is_found_at_its_speed(
    pty: PtyPort, name: str, baud: int, keys: dict[str, str], quantity: str
) -> None:
    outcome, tried, said = await probed(pty.link, speak(pty, name, baud))
    assert outcome is not None
    assert (outcome.keys, (outcome.line or Line(0)).baud) == (keys, baud)
    assert quantity in outcome.quantities
    assert all(
        one.received_bytes or one.reason == LINE_REFUSED for one in tried
    )  # a pty has no parity
    assert len(said) == len(tried) + 1
    table = parse_meter("\n".join(toml_lines("/dev/x", outcome)[1:]), "x")
    assert (table.protocol, table.line) == (keys["protocol"], outcome.line)
    shown = " ".join([*said, outcome.text(), json.dumps(as_facts("p", outcome, tried))])
    assert str(MARKER) not in shown


async def test_lines_of_text_are_found_by_their_names_and_no_number_is_shown(pty: PtyPort) -> None:
    outcome, *_ = await probed(pty.link, speak(pty, "lines", 9600))
    assert outcome is not None
    assert "names power, export, import_kwh, export_kwh" in outcome.note
    assert (outcome.keys, (outcome.line or Line(0)).baud) == ({"protocol": "lines"}, 9600)
    assert str(MARKER) not in outcome.text()


@pytest.mark.parametrize(
    ("shows", "model"),
    [
        ("sdm120", "sdm120"),
        ("sdm230", "sdm120"),
        ("sdm630", "sdm630"),
        ("sdm630-without-l1", "sdm630"),
        ("sdm72", "sdm72"),
        ("sdm72v2-one-phase", "sdm72v2"),
        ("dtsu666", "dtsu666"),
        ("orno-we-514", "orno-we-514"),
        ("orno-we-516", "orno-we-516"),
    ],
)
@pytest.mark.parametrize("refuses", [False, True])
async def test_SER_27_a_silent_line_is_asked_and_models_are_told_apart(
    pty: PtyPort, shows: str, model: str, *, refuses: bool
) -> None:
    """What probe says is read right, whether a meter refuses what it lacks or says 0 (M1, M2)."""
    serving = asyncio.create_task(
        modbus.serve(pty, lambda: (MARKER, MARKER, 0), model=shows, refuses=refuses)
    )
    outcome, tried = await probe(str(pty.link), lambda _: None, seconds=SECONDS)
    assert outcome is not None
    assert (outcome.keys["protocol"], outcome.keys["model"]) == ("modbus", model)
    table = parse_meter("\n".join([f'port = "{pty.link}"', *toml_lines("x", outcome)[2:]]), "x")
    with closing(await open_port(table.port, 9600, parity="N", data_bits=8)) as port:
        (telegram,) = await heard(port, table)
    serving.cancel()
    assert values(telegram)["power"] == MARKER
    assert [one.received_bytes for one in tried] == [0]
    assert tried[0].text() == "115200 baud, 8 data bits, no parity: nothing came"


ENERGY = sealed("0-0:96.1.1(4530303939)", "1-0:1.8.0(00001.000*kWh)")
POWER = sealed("0-0:96.1.1(4530303939)", "1-0:1.7.0(00.378*kW)")


@pytest.mark.parametrize(
    ("sent", "wanted", "told"),
    [
        ([ENERGY, POWER, ENERGY], {"power"}, (2, {"energy_import", "power"})),
        ([POWER, ENERGY, POWER], {"power"}, (1, {"power"})),
        ([ENERGY, POWER, ENERGY], (), (1, {"energy_import"})),
        ([ENERGY] * 5, {"power"}, (TELEGRAMS, {"energy_import"})),
        ([ENERGY], {"power"}, (1, {"energy_import"})),
    ],
)
def test_a_quantity_is_missing_only_after_as_many_telegrams_as_check_live_hears(
    sent: list[bytes], wanted: set[str], told: tuple[int, set[str]]
) -> None:
    listener = LineListener(LISTENED[0], [({"protocol": "dsmr"}, P1Meter())], wanted)
    heard = 0
    found: Found | Tried | None = None
    while found is None and heard < len(sent):
        found = listener.listen(sent[heard])
        heard += 1
    found = found or listener.give_up()
    assert isinstance(found, Found)
    assert (heard, set(found.quantities)) == told


async def test_a_meter_that_tells_power_in_every_other_telegram_is_heard_to_it(
    pty: PtyPort,
) -> None:
    async def alternating() -> None:
        for telegram in cycle([ENERGY, POWER]):
            await pty.wait_for_reader()
            await pty.write(telegram)
            await asyncio.sleep(0.3)

    wanted = {"power", "energy_import"}
    outcome, _, said = await probed(pty.link, alternating(), wanted=wanted)
    assert outcome is not None
    assert set(outcome.quantities) == wanted
    assert [line for line in said if "came without" in line] in (
        ["a telegram came without power: hearing 2 more, 2 s at most"],
        ["a telegram came without energy_import: hearing 2 more, 2 s at most"],
    )


async def test_SER_33_a_meter_that_answers_all_with_0_is_not_guessed(pty: PtyPort) -> None:
    serving = modbus.serve(pty, lambda: (0, 0, 0), model="sdm72")
    outcome, _, said = await probed(pty.link, serving, seconds=0.2)
    assert outcome is None
    assert any("a Modbus meter answers" in one and "let it measure first" in one for one in said)


@pytest.mark.parametrize("is_tcp", [False, True])
async def test_a_modbus_meter_in_the_network_is_found_over_tcp_and_behind_a_plain_bridge(
    *, is_tcp: bool
) -> None:
    bridge = TcpPort()
    await bridge.plug()
    serving = modbus.serve(bridge, lambda: (MARKER, MARKER, 0), model="sdm630", is_tcp=is_tcp)
    outcome, *_ = await probed(bridge.name, serving, seconds=0.2)
    bridge.unplug()
    assert outcome is not None
    assert outcome.keys["model"] == "sdm630"
    assert outcome.keys.get("framing", "rtu") == ("tcp" if is_tcp else "rtu")
    lines = [f'port = "{bridge.name}"', *toml_lines(bridge.name, outcome)[2:]]
    assert parse_meter("\n".join(lines), "x").framing == ("tcp" if is_tcp else "rtu")


async def test_of_each_question_to_a_silent_line_it_says_how_long_an_answer_may_take(
    pty: PtyPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.ports.probe.MODBUS_S", 0.1)
    monkeypatch.setattr("agent.ports.probe.SIGN_ON_S", 0.2)
    said: list[str] = []
    assert (await probe(str(pty.link), said.append, seconds=0.1))[0] is None
    asked = [line for line in said if "asking as" in line]
    assert [line.rpartition("; ")[2] for line in asked] == [
        *["an answer may take 0.1 s"] * 3,
        "an answer may take 0.2 s",
    ]


@pytest.mark.slow
async def test_a_meter_that_must_be_woken_is_asked_last(pty: PtyPort) -> None:
    outcome, *_ = await probed(pty.link, serve_readout(pty, lambda: MARKER))
    assert outcome is not None
    assert outcome.keys == {"protocol": "iec62056-21", "mode": "request"}
    assert parse_meter("\n".join(toml_lines("/dev/x", outcome)[1:]), "x").mode == "request"


async def test_bytes_that_nobody_knows_are_told_for_each_speed(pty: PtyPort) -> None:
    outcome, tried, _ = await probed(pty.link, speak(pty, "dsmr", 110), seconds=0.5)
    assert outcome is None
    assert {one.line for one in tried} == set(LISTENED)
    assert "bytes and no telegram (noise)" in tried[0].text()


@pytest.mark.parametrize("name", ["hdlc", "p1-encrypted"])
async def test_SER_34_a_format_that_is_not_read_is_named_at_once(pty: PtyPort, name: str) -> None:
    outcome, tried, _ = await probed(pty.link, speak(pty, name, None))
    assert outcome is None
    assert "which is not read here" in tried[-1].text()
    assert as_facts("p", outcome, tried)["tried"][-1]["reason"] in ("hdlc", "ciphered")
    assert str(MARKER) not in tried[-1].text()


async def test_SER_30_a_telegram_that_a_checksum_proves_and_no_parser_knows_is_no_lines_of_text(
    pty: PtyPort,
) -> None:
    async def speak_oddly() -> None:
        while True:
            await pty.write(sealed(f"1-0:1.7.0({MARKER},1*kW)", "0-0:96.1.1(4530)"))
            await asyncio.sleep(0.05)

    outcome, tried, _ = await probed(pty.link, speak_oddly())
    assert (outcome, len(tried)) == (None, 1)
    assert "dsmr: whole telegrams come, but their line 1-0:1.7.0" in tried[0].text()
    assert str(MARKER) not in tried[0].text()


async def test_behind_a_plain_bridge_there_is_one_speed_only() -> None:
    bridge = TcpPort()
    await bridge.plug()
    outcome, *_ = await probed(bridge.name, speak(bridge, "sml", None), seconds=2)
    nothing, tried, _ = await probed(bridge.name, speak(bridge, "sml", 110))
    bridge.unplug()
    assert outcome is not None
    assert outcome.keys == {"protocol": "sml"}
    assert (nothing, len(tried)) == (None, 2), "its speed is its own; its parity may come through"


def test_every_protocol_can_be_found() -> None:
    assert {keys["protocol"] for _, _, keys, _ in SPEAKERS} | {"lines", "modbus"} == KNOWN.keys()


def test_what_is_no_text_is_not_taken_for_lines() -> None:
    lines = b"cut\r\n" + b"a=1 b=2\r\n" * 3
    assert text_names(lines) == ("a", "b")
    assert text_names(b"x\n" + b"1;2;3\n" * 3) == ()
    assert text_names(b"cut\n" + json_line(meter_id="", time_s=1, import_wh=2, power_w=3) * 3) == (
        "Time",
        "ENERGY.Power",
        "ENERGY.Export",
        "ENERGY.In",
        "ENERGY.Out",
    )
    assert text_names(b"x\n" + b'{"a": {"\\u001b[2J": 1, "b": 2}}\n' * 3) == ("a.b",)
    for junk in (b"", lines[:15], b"x\n" + b"\xff\n" * 9, b"x\n" + b"\x1b[2J1\n" * 9, b"a\n" * 9):
        assert text_names(junk) is None


def test_the_facts_for_machines_have_the_same_keys_found_or_not() -> None:
    line = Line(9600, 8, "N")
    yes = as_facts("p", Found(line, {"protocol": "sml"}, ("power",), tells_time=True), [])
    no = as_facts("p", None, [Tried(line, 5, "noise")])
    assert yes.keys() == no.keys()
    assert no["tried"] == [
        {"baud": 9600, "data_bits": 8, "parity": "N", "bytes": 5, "reason": "noise"}
    ]
