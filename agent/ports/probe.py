"""Finds out what is spoken on a port: listens at each speed, and asks a line that is silent.

A line that carries bytes but no telegram is tried at the next speed.
"""

import asyncio
from collections.abc import Callable, Collection
from contextlib import closing
from typing import Any

from agent.errors import AgentError, PortError
from agent.meters.port_names import address_of
from agent.meters.protocols import PLUG_IN, Line
from agent.meters.reading import Asker, Discarded, Meter, Telegram
from agent.meters.section import MeterTable
from agent.ports.findings import TELEGRAMS, Found, LineListener, Tried, found, line_text
from agent.ports.meters import GROUP, hear, make_meter
from agent.ports.open_port import open_port
from agent.ports.port import LINE_REFUSED

LISTENED = (
    Line(115_200, 8, "N"),
    Line(9600, 8, "N"),
    Line(9600, 7, "E"),
    Line(1200, 7, "E"),
    Line(2400, 7, "E"),
    Line(300, 7, "E"),
    Line(2400, 8, "N"),  # HAN ports, which are only named
    Line(2400, 8, "E"),
    Line(19_200, 8, "N"),
    Line(38_400, 8, "N"),
    Line(57_600, 8, "N"),
)
"""How meters that speak by themselves are set, the most common first."""

SPEAKERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("dsmr", {}),
    ("sml", {}),
    ("linky", {}),
    ("dsmr", {"crc": "absent-allowed"}),
    ("iec62056-21", {}),
)
"""Protocols and keys of [meter] in the order in which they are believed: checksums first."""

ASKED: tuple[tuple[str, Line, dict[str, Any]], ...] = (
    ("modbus", Line(9600), {"model": "sdm630", "poll_ms": 1000}),
    ("modbus", Line(9600), {"model": "sdm120", "poll_ms": 1000}),
    ("modbus", Line(2400), {"model": "sdm120", "poll_ms": 1000}),
    ("iec62056-21", Line(300, 7, "E"), {"mode": "request"}),
)
"""What a silent line is asked, and how; Modbus meters are asked at their address 1 only."""

LISTEN_S = 12.0
"""How long a line is listened to at each speed: the slowest meters send every 10 s."""

MODBUS_S = 2.5
SIGN_ON_S = 25.0
Say = Callable[[str], object]


async def probe(
    port: str, say: Say, *, seconds: float = LISTEN_S, wanted: Collection[str] = ()
) -> tuple[Found | None, list[Tried]]:
    """Return what speaks on a port, and what was tried in vain; `say` is told what goes on.

    A meter that speaks by itself is heard for longer where its first telegram lacks `wanted`
    quantities; one that is asked answers all that it has.
    Raises PortError when the port cannot be had.
    """
    is_raw = (address := address_of(port)) is not None and address.scheme == "socket"
    tried: list[Tried] = []
    for line in LISTENED[:1] if is_raw else LISTENED:  # a raw adapter keeps its own speed
        say(f"listening at {line_text(line)}")
        outcome = await _listen(port, line, seconds, say, wanted)
        if isinstance(outcome, Found):
            return outcome, tried
        tried.append(outcome)
        if outcome.known:
            return None, tried  # at another speed it would be nothing
        if not outcome.received_bytes and outcome.reason != LINE_REFUSED:
            # another speed would give other bytes, but not none
            return await _ask(port, say, is_raw=is_raw), tried
    return None, tried


async def _listen(
    port: str, line: Line, seconds: float, say: Say, wanted: Collection[str]
) -> Found | Tried:
    """Let every parser listen to one line."""
    listener = LineListener(line, _speakers(port), wanted)
    loop = asyncio.get_running_loop()
    until_s, is_told = loop.time() + seconds, False
    try:
        opened = await open_port(port, line.baud, parity=line.parity, data_bits=line.data_bits)
    except PortError as exc:
        if exc.reason != LINE_REFUSED:
            raise
        return Tried(line, 0, LINE_REFUSED)
    with closing(opened):
        while loop.time() < until_s and not listener.is_foreign:
            if outcome := listener.listen(await opened.read(min(0.5, until_s - loop.time()))):
                return outcome
            if (missing := listener.missing) and not is_told:
                is_told, more = True, TELEGRAMS - 1
                until_s = loop.time() + more * seconds
                what = f"a telegram came without {' or '.join(sorted(missing))}"
                say(f"{what}: hearing {more} more, {more * seconds:g} s at most")
        return listener.listen(None) or listener.give_up()


async def _ask(port: str, say: Say, *, is_raw: bool) -> Found | None:
    """Ask a silent line in every way that is known."""
    loop = asyncio.get_running_loop()
    for protocol, line, more in ASKED:
        keys: dict[str, Any] = {"protocol": protocol, **more}
        if is_raw and protocol != "modbus":
            continue  # needs another speed in between
        most_s = MODBUS_S if protocol == "modbus" else SIGN_ON_S
        asking = f"nothing comes by itself; asking as {protocol} at {line_text(line)}"
        say(f"{asking}; an answer may take {most_s:g} s")
        meter = make_meter(MeterTable(port=port, **keys))
        until_s = loop.time() + most_s
        opened = await open_port(port, line.baud, parity=line.parity, data_bits=line.data_bits)
        with closing(opened):
            while loop.time() < until_s:
                _, events = await hear(opened, meter)
                telegram = next((e for e in events if isinstance(e, Telegram)), None)
                if telegram and telegram.readings:
                    if _is_smaller(meter):
                        break  # it answers as every model does: the next reads it as what it is
                    return found(line, keys, [telegram])
                if any(isinstance(e, Discarded) and e.reason == "refused" for e in events):
                    break  # it speaks, and has no such register: the next model
    return None


def _is_smaller(meter: Meter | Asker) -> bool:
    """Say whether a meter that was asked for three phases showed one."""
    from agent.meters.modbus import ModbusMeter  # noqa: PLC0415 (where something is asked)

    return isinstance(meter, ModbusMeter) and meter.lacks_phases


def _speakers(port: str) -> list[tuple[dict[str, Any], Meter]]:
    """Return a new parser of each protocol that listens, installed plug-ins last."""
    from importlib.metadata import entry_points  # noqa: PLC0415 (the service never probes)

    made: list[tuple[dict[str, Any], Meter]] = []
    no_keys: dict[str, Any] = {}
    plug_ins = ((PLUG_IN + entry.name, no_keys) for entry in entry_points(group=GROUP))
    for protocol, more in (*SPEAKERS, *plug_ins):
        keys = {"protocol": protocol, **more}
        try:
            meter = make_meter(MeterTable(port=port, **keys))
        except (AgentError, LookupError, TypeError, ValueError):
            continue  # a plug-in that needs options cannot be tried
        if not isinstance(meter, Asker):
            made.append((keys, meter))
    return made
