"""Finds out what is spoken on a port: listens at each speed, and asks a line that is silent.

A line that carries bytes but no telegram is tried at the next speed.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from typing import Any

from agent.errors import AgentError, PortError
from agent.meters.parsers import modbus_meter
from agent.meters.port_names import address_of, source_of
from agent.meters.products import product_of
from agent.meters.protocols import PLUG_IN, Line
from agent.meters.reading import Asker, Discarded, Meter, Telegram
from agent.meters.section import AccessTable, MeterTable
from agent.ports.findings import TELEGRAMS, Found, LineListener, Tried, found, line_text
from agent.ports.meters import ANSWERING_S, GROUP, hear, is_answer, make_meter
from agent.ports.open_port import open_port
from agent.ports.port import GONE, LINE_REFUSED, Port

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

RAW_LISTENED = (Line(115_200, 8, "N"), Line(9600, 7, "E"))
"""The same behind a plain adapter, which keeps its own speed but may hand parity through."""

SPEAKERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("dsmr", {}),
    ("sml", {}),
    ("linky", {}),
    ("dsmr", {"crc": "absent-allowed"}),
    ("iec62056-21", {}),
)
"""Protocols and keys of [meter] in the order in which they are believed: checksums first."""

MODBUS_LINES = (
    (Line(9600), ("sdm72v2", "sdm630", "sdm120", "dtsu666", "orno-we-516", "orno-we-514", "sdm72")),
    (Line(2400), ("sdm630", "sdm120", "sdm72")),
    (Line(9600, 8, "E"), ("orno-we-516", "orno-we-514")),
)
"""The models that a silent line is asked for, at address 1: those that prove themselves least last.

A model is found where a register of its table's marks is answered as no other does: 0 proves none.
"""

ASKED: tuple[tuple[str, Line, dict[str, Any]], ...] = (
    ("iec62056-21", Line(300, 7, "E"), {"mode": "request"}),
)
"""What else a silent line is asked, and how."""

LISTEN_S = 12.0
"""How long a line is listened to at each speed: the slowest meters send every 10 s."""

PAGE_S = 2.0  # between two looks at a page
MODBUS_S = 4.0  # two questions, and the time between them
SIGN_ON_S = 25.0
TURNS, LEFT_S = 4, 0.5  # how often, and how long it is waited until an adapter sees that we left
Say = Callable[[str], object]


async def probe(
    port: str,
    say: Say,
    *,
    seconds: float = LISTEN_S,
    wanted: Collection[str] = (),
    access: AccessTable | None = None,
) -> tuple[Found | None, list[Tried]]:
    """Return what speaks on a port, and what was tried in vain; `say` is told what goes on.

    A meter that speaks by itself is heard for longer where its first telegram lacks `wanted`
    quantities; one that is asked answers all that it has.
    Raises PortError when the port cannot be had.
    """
    if source_of(port) is not None:  # which has no speed, and cannot be asked
        say("listening")
        outcome = await _listen(port, None, seconds, say, wanted, access=access)
        return (outcome, []) if isinstance(outcome, Found) else (None, [outcome])
    is_raw = (address := address_of(port)) is not None and address.scheme == "socket"
    tried: list[Tried] = []
    for line in RAW_LISTENED if is_raw else LISTENED:
        say(f"listening at {line_text(line)}")
        outcome = await _heard(port, line, seconds, say, wanted, turns=TURNS if tried else 1)
        if isinstance(outcome, Found):
            return outcome, tried
        tried.append(outcome)
        if outcome.known:
            return None, tried  # at another speed it would be nothing
        if not outcome.received_bytes and outcome.reason != LINE_REFUSED:
            # another speed would give other bytes, but not none
            return await _ask(port, say, is_raw=is_raw), tried
    return None, tried


async def _heard(  # noqa: PLR0913 (what `_listen` takes, and how often)
    port: str, line: Line, seconds: float, say: Say, wanted: Collection[str], *, turns: int
) -> Found | Tried:
    """Listen to one line; an adapter that still has our last connection turns the next one away."""
    for _ in range(turns - 1):
        try:
            return await _listen(port, line, seconds, say, wanted)
        except PortError as exc:
            if exc.reason != GONE:
                raise
        await asyncio.sleep(LEFT_S)
    return await _listen(port, line, seconds, say, wanted)


async def _listen(  # noqa: PLR0913 (what `probe` takes, and the line)
    port: str,
    line: Line | None,
    seconds: float,
    say: Say,
    wanted: Collection[str],
    *,
    access: AccessTable | None = None,
) -> Found | Tried:
    """Let every parser listen to one line, or to a page or topic."""
    source, (baud, data_bits, parity) = source_of(port), line or LISTENED[0]
    listener = LineListener(line, _speakers(port), wanted)
    loop = asyncio.get_running_loop()
    until_s, is_told = loop.time() + seconds, False
    try:
        opened = await open_port(
            port, baud, parity=parity, data_bits=data_bits, access=access, every_s=PAGE_S
        )
    except PortError as exc:
        if exc.reason != LINE_REFUSED:
            raise
        return Tried(line, 0, LINE_REFUSED)
    with closing(opened):
        while loop.time() < until_s and not listener.is_foreign:
            data = await opened.read(min(0.5, until_s - loop.time()))
            if source and data and (product := product_of(source, data)) and product.words:
                told = tuple(word[1] for word in product.words)
                return Found(None, product.keys, told, note=product.name)
            if outcome := listener.listen(data):
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
    for framing in ("rtu", "tcp") if is_raw else ("rtu",):
        for line, models in MODBUS_LINES[:1] if is_raw else MODBUS_LINES:
            if outcome := await _ask_modbus(port, line, models, framing, say):
                return outcome
    for protocol, line, more in () if is_raw else ASKED:  # needs another speed in between
        keys: dict[str, Any] = {"protocol": protocol, **more}
        say(_asking(protocol, line, SIGN_ON_S))
        meter = make_meter(MeterTable(port=port, **keys))
        until_s = loop.time() + SIGN_ON_S
        opened = await open_port(port, line.baud, parity=line.parity, data_bits=line.data_bits)
        with closing(opened):
            while loop.time() < until_s:
                data, events = await hear(opened, meter)
                if is_answer(meter, data, events):
                    until_s = max(until_s, loop.time() + ANSWERING_S)
                telegram = next((e for e in events if isinstance(e, Telegram)), None)
                if telegram and telegram.readings:
                    return found(line, keys, [telegram])
    return None


async def _ask_modbus(
    port: str, line: Line, models: Sequence[str], framing: str, say: Say
) -> Found | None:
    """Ask as each model in turn; where nobody answers at all, as the first one only."""
    keys: dict[str, Any] = {"protocol": "modbus", "poll_ms": 1000}
    keys |= {"framing": framing} if framing != "rtu" else {}
    say(_asking("modbus" + " over TCP" * (framing == "tcp"), line, MODBUS_S))
    answered = False
    try:
        opened = await open_port(port, line.baud, parity=line.parity, data_bits=line.data_bits)
    except PortError as exc:
        if exc.reason != LINE_REFUSED:
            raise
        return None
    with closing(opened):
        for model in models:
            meter = modbus_meter(MeterTable(port=port, **keys, model=model), prove=True)
            event = await _first(opened, meter)
            if isinstance(event, Telegram):
                return found(line, {**keys, "model": model}, [event])
            answered = answered or event.reason != "silence"
            if not answered:
                return None
    say(
        f"a Modbus meter answers at {line_text(line)}, and as no model that is known: its table "
        "may be written as model_file; one that is new answers 0 to all, so let it measure first"
    )
    return None


async def _first(port: Port, meter: Asker) -> Telegram | Discarded:
    """Return what a round of questions gives; damage and silence are tried a second time."""
    tries = 2
    while True:
        for event in (await hear(port, meter))[1]:
            tries -= 1
            if isinstance(event, Telegram) or event.reason in ("refused", "value") or not tries:
                return event


def _asking(what: str, line: Line, most_s: float) -> str:
    asking = f"nothing comes by itself; asking as {what} at {line_text(line)}"
    return f"{asking}; an answer may take {most_s:g} s"


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
