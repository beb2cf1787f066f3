"""Every protocol over a real line under scripted faults; the same on ptys and on adapters."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent.claims.slots import Kind, SlotBuilder
from agent.config import parse_meter
from agent.errors import PortError
from agent.meters.protocols import MODELS, PROTOCOLS
from agent.meters.reading import Asker, Discarded, Meter, Telegram
from agent.meters.section import MeterTable
from agent.ports.meters import hear, make_meter
from agent.ports.open_port import open_port
from agent.ports.port import Port
from firmware_stubs.meters import PtyPort, faults, modbus
from firmware_stubs.meters.meter_command import PROTOCOLS as SHOWN
from firmware_stubs.meters.player import Mangle
from firmware_stubs.meters.readout import serve_readout
from firmware_stubs.meters.sml import SML
from tests.agent.meters.samples import values
from tests.hil.wires import NEAR, Far, bridge, wire
from tests.meters.faults import trickle

pytestmark = [pytest.mark.integration, pytest.mark.hil]

T0 = 1_767_571_200
LINES = 'fields = [{{ field = "{}", quantity = "power", unit = "W" }}]'
CASES: dict[str, tuple[str, bool]] = {
    # the lines of [meter], and whether a checksum finds every flipped bit
    "dsmr": ('protocol = "dsmr"', True),
    "dsmr-full": ('protocol = "dsmr"', True),
    "dsmr-hex-clock": ('protocol = "dsmr"', True),
    "sml": ('protocol = "sml"', True),
    "sml-absolute": ('protocol = "sml"', True),
    "linky": ('protocol = "linky"\nbaud = 9600', True),  # of six bits: a flipped one shows
    "linky-historique": ('protocol = "linky"', True),
    "iec62056-21": ('protocol = "iec62056-21"', False),
    "iec62056-21-net": ('protocol = "iec62056-21"', False),
    "lines": ('protocol = "lines"\n' + LINES.format("power"), False),
    "lines-json": ('protocol = "lines"\n' + LINES.format("ENERGY.Power"), False),
}
QUICK = ("dsmr", "lines")  # the rest with test-slow and test-hil
EVERY = pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES],
)
Send = Callable[[Far, int], Coroutine[None, None, None]]
SILENCE_S = 0.5 if NEAR else 1.0  # here the process that sends may be set aside, too


def table_of(name: str, port: str = "x") -> MeterTable:
    return parse_meter(f"port = {json.dumps(port)}\n{CASES[name][0]}", "x")


def telegram(name: str, k: int) -> bytes:
    return SHOWN[name](
        meter_id="E0099000000000001", time_s=T0 + k, import_wh=5000 + k, power_w=100 + k
    )


async def opened(port: str, name: str) -> Port:
    baud, data_bits, parity = table_of(name).line
    return await open_port(port, baud, parity=parity, data_bits=data_bits, silence_s=SILENCE_S)


async def read_all(
    port: Port, meter: Meter | Asker, sending: "asyncio.Task[None]", found: list[int]
) -> list[Discarded]:
    """Read until all is sent and the line is silent; `found` gets the powers."""
    discarded = []
    while True:
        done = sending.done()
        data, events = await hear(port, meter)
        for event in events:
            if isinstance(event, Telegram):
                found += [
                    power - 100
                    for quantity, power in values(event).items()
                    if quantity in ("power", "apparent_power")
                ]
            else:
                discarded.append(event)
        if data is None and done:
            await sending
            return discarded


async def passed(
    directory: Path, name: str, count: int, send: Send
) -> tuple[list[int], list[Discarded]]:
    """Return the numbers of the telegrams that were read, and what was discarded."""
    found: list[int] = []
    async with wire(directory, table_of(name).line) as (path, far), asyncio.timeout(90):
        with closing(await opened(path, name)) as port:
            await far.wait_for_reader()

            async def sending() -> None:
                await far.write(b"\r\n" if name.startswith("lines") else b"")
                for k in range(count):
                    await send(far, k)

            discarded = await read_all(
                port, make_meter(table_of(name)), asyncio.ensure_future(sending()), found
            )
    return found, [event for event in discarded if event.size > len(b"\r\n")]


def mangled(name: str, mangle: Mangle, pause_s: float = 0.0) -> Send:
    async def send(far: Far, k: int) -> None:
        await far.write(mangle(k, telegram(name, k)))
        await asyncio.sleep(pause_s)

    return send


@EVERY
async def test_SER_05_telegrams_glued_together_are_all_read(tmp_path: Path, name: str) -> None:
    found, discarded = await passed(tmp_path, name, 20, mangled(name, faults.doubled))
    assert found == [k for k in range(20) for _ in range(2)]
    assert discarded == []


@EVERY
async def test_a_slow_line_is_read_at_its_own_speed(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not NEAR:
        monkeypatch.setitem(globals(), "SILENCE_S", 4.0)

    async def send(far: Far, k: int) -> None:
        baud = max(table_of(name).line.baud, 2400)
        if isinstance(far, PtyPort):
            await trickle(far, telegram(name, k), baud)
        else:
            await far.write(telegram(name, k))  # it has its own

    found, discarded = await passed(tmp_path, name, 2, send)
    assert (found, discarded) == ([0, 1], [])


@EVERY
async def test_SER_10_a_stuck_meter_is_read_and_nothing_else_happens(
    tmp_path: Path, name: str
) -> None:
    found, discarded = await passed(tmp_path, name, 50, mangled(name, faults.stuck()))
    assert (found, discarded) == ([0] * 50, [])


async def test_SER_07_another_speed_gives_no_reading(tmp_path: Path) -> None:
    found, discarded = await passed(tmp_path, "dsmr", 30, mangled("dsmr", faults.at_another_speed))
    assert found == []
    assert discarded


def taking(name: Path, directory: Path) -> list[PtyPort]:
    """Plug others until the kernel's name is taken: the lowest that is free comes first."""
    others: list[PtyPort] = []
    while not name.exists():
        others.append(PtyPort(directory / f"other-{len(others)}"))
        others[-1].plug()
    return others


@pytest.mark.skipif(NEAR is not None, reason="a program cannot pull a real plug")
@EVERY
async def test_SER_08_SER_09_a_line_that_is_unplugged_amid_a_telegram_and_comes_back_is_read(
    tmp_path: Path, name: str
) -> None:
    pty = PtyPort(tmp_path / "meter")
    pty.plug()
    first = pty.device
    port = await opened(str(pty.link), name)
    await pty.wait_for_reader()
    await pty.write(telegram(name, 0)[:30])
    assert await port.read()
    pty.unplug()
    with closing(port), pytest.raises(PortError, match="gone"):
        await port.read()
    others = taking(Path(first), tmp_path)
    pty.plug()
    assert pty.device != first
    with closing(await opened(str(pty.link), name)) as port:
        await pty.wait_for_reader()
        meter = make_meter(table_of(name))
        await pty.write(b"\r\n" + telegram(name, 1))
        events: list[Telegram | Discarded] = []
        while not any(isinstance(event, Telegram) for event in events):
            events += (await hear(port, meter))[1]
    assert sum(isinstance(event, Telegram) for event in events) == 1
    for each in (pty, *others):
        each.unplug()


def quick(name: str, *names: str) -> list[Any]:
    """Return one case of the fast suite and the rest as slow ones."""
    return [name, *(pytest.param(one, marks=pytest.mark.slow) for one in names if one != name)]


async def heard(directory: Path, table: MeterTable, *sent: bytes) -> list[Telegram]:
    """Return as many telegrams as were sent over a line, each of which must be read."""
    found: list[Telegram] = []
    async with wire(directory, table.line) as (path, far), asyncio.timeout(90):
        baud, data_bits, parity = table.line
        with closing(await open_port(path, baud, parity=parity, data_bits=data_bits)) as port:
            await far.wait_for_reader()
            meter = make_meter(table)
            for telegram_ in sent:
                await far.write(telegram_)
            while len(found) < len(sent):
                for event in (await hear(port, meter))[1]:
                    assert isinstance(event, Telegram)
                    found.append(event)
    return found


SIGNS = ("dsmr", *SML, "iec62056-21", "iec62056-21-net")


@pytest.mark.parametrize("name", quick("sml-absolute", *SIGNS))
async def test_SER_28_SER_36_which_way_the_power_goes_is_read(tmp_path: Path, name: str) -> None:
    """By registers of their own, a sign, a status word, or below 0 as power drawn."""
    protocol = next(one for one in PROTOCOLS if name.startswith(one))
    shows = ((378, 0), (0, 4356), (0, 0))
    sent = (
        SHOWN[name](
            meter_id="E0099", time_s=T0 + at, import_wh=5, power_w=drawn, export_power_w=given
        )
        for at, (drawn, given) in enumerate(shows)
    )
    found = [one.shown for one in await heard(tmp_path, MeterTable("x", protocol), *sent)]
    assert [(told["power"], told["power_export"]) for told in found] == [*shows]
    assert [told["power_net"] for told in found] == [drawn - given for drawn, given in shows]


@pytest.mark.parametrize("name", quick("dsmr-hex-clock", "dsmr", "linky"))
async def test_SER_30_the_meters_own_clock_is_read(tmp_path: Path, name: str) -> None:
    table = parse_meter(f'port = "x"\n{CASES[name][0]}\ndate_by = "meter"', "x")
    times = (T0, T0 + 197 * 86_400)  # in winter, and in summer
    sent = (SHOWN[name](meter_id="E0099", time_s=at, import_wh=5, power_w=1) for at in times)
    assert [one.time_s for one in await heard(tmp_path, table, *sent)] == [*times]


async def test_SER_32_a_meter_that_tells_no_power_gives_it_by_its_register(tmp_path: Path) -> None:
    """A Linky in historique mode: VA, and whole Wh whose rise in a minute is a mean power."""
    sent = (telegram("linky-historique", k) for k in range(13))
    builder = SlotBuilder(60, [("energy_import", Kind.RATE)], interval_s=10, burst_s=0)
    told = await heard(tmp_path, table_of("linky-historique"), *sent)
    slots = [builder.read(T0 + 10 * at, values(one)) for at, one in enumerate(told)]
    assert [slot.values for slot in slots if slot] == [(360,), (360,)]


MODE_C = 'protocol = "iec62056-21"\nmode = "request"\npoll_ms = 200'
MODBUS = 'protocol = "modbus"\npoll_ms = 200\nmodel = "{}"'
ASKED = {
    **{f"modbus-{model}": (MODBUS.format(model), "none") for model in MODELS},
    "modbus-tcp": (MODBUS.format("sdm630") + '\nframing = "tcp"', "none"),
    "modbus-tcp-dtsu666": (MODBUS.format("dtsu666") + '\nframing = "tcp"', "none"),
    "iec62056-21": (MODE_C, "changes speed"),
    "iec62056-21-kept": (f"{MODE_C}\nkeep_speed = true", "none"),
}
AT_ONCE = ("modbus-sdm630", "modbus-dtsu666", "modbus-tcp")


@pytest.mark.parametrize(
    "name",
    [name if name in AT_ONCE else pytest.param(name, marks=pytest.mark.slow) for name in ASKED],
)
async def test_SER_22_a_meter_that_is_asked_answers_and_falls_silent_and_answers(
    tmp_path: Path, name: str
) -> None:
    lines, speed = ASKED[name]
    is_tcp = "tcp" in name
    if NEAR and (speed == "changes speed" or is_tcp):
        pytest.skip("the simulated meter keeps the speed of its adapter, and has no network")
    table = parse_meter(f'port = "{"socket://x:502" if is_tcp else "x"}"\n{lines}', "x")

    async def serving(far: Far) -> None:
        if table.protocol == "modbus":
            await modbus.serve(far, lambda: (378, 1000, 0), model=table.model, is_tcp=is_tcp)
        else:
            await serve_readout(far, lambda: 378, reaction_s=0.02)

    ends = bridge() if is_tcp else wire(tmp_path, table.line)
    async with ends as (path, far), asyncio.timeout(300):
        baud, data_bits, parity = table.line
        with closing(await open_port(path, baud, parity=parity, data_bits=data_bits)) as port:
            meter = make_meter(table)
            for expected in (Telegram, Discarded, Telegram):
                task = asyncio.ensure_future(serving(far)) if expected is Telegram else None
                events: list[Telegram | Discarded] = []
                while not any(isinstance(event, expected) for event in events):
                    events += (await hear(port, meter))[1]
                if task:
                    assert values(events[-1])["power"] == 378
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)


def test_every_protocol_has_a_case() -> None:
    every = [*CASES.values(), *ASKED.values()]
    assert {json.dumps(lines).split('\\"')[1] for lines, _ in every} == PROTOCOLS.keys()
