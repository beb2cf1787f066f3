"""The parser for a [meter] table, ours or plugged in, and the talk with a meter that is asked.

A plug-in is an entry point of the group GROUP. Source: docs/meters.md; docs/faults.md, SER-22.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from agent.errors import ConfigError
from agent.meters.parsers import PARSERS, p1_meter
from agent.meters.protocols import PLUG_IN
from agent.meters.reading import Asker, Discarded, Event, Meter, Send, SetBaud, Telegram
from agent.meters.section import MeterTable
from agent.ports.port import Port

GROUP = "edge_ldp.meters"
LONGEST_WAIT_S = 0.5  # between two looks at the clock
ANSWERING_S = 3.0
"""A meter that is asked and sent bytes so short ago is amid its answer: a readout may take 40 s."""


def make_meter(table: MeterTable, *, beside: bool = False) -> Meter | Asker:
    """Return a new parser, knowing nothing; raises ConfigError for a plug-in that is not there.

    `beside`: what is to be shown and never reported is told, too, where the protocol has it.
    """
    if beside and table.protocol == "dsmr":
        return p1_meter(table, beside=True)
    if table.protocol in PARSERS:
        return PARSERS[table.protocol](table)
    made: Meter | Asker = _plug_in(table.protocol.removeprefix(PLUG_IN))(table)
    return made


async def ask(port: Port, meter: Asker) -> tuple[bytes | None, list[Telegram | Discarded]]:
    """Send what the meter is to be sent now and read once; return the bytes and what they gave.

    What the port does not take is not sent again: the meter's time-out deals with it.
    Raises PortError when the port is gone.
    """
    events = meter.tick(now_ms())
    found = _sent(port, events)
    wait_s = min(max(meter.wake_ms - now_ms(), 1) / 1000, LONGEST_WAIT_S)
    data = await port.read(wait_s)
    if data is not None:
        found += _sent(port, meter.feed(data, now_ms()))
    return data, found


async def hear(port: Port, meter: Meter | Asker) -> tuple[bytes | None, list[Telegram | Discarded]]:
    """Read once, after asking where one asks; return the bytes and what they gave.

    Raises PortError when the port is gone.
    """
    if isinstance(meter, Asker):
        return await ask(port, meter)
    data = await port.read()
    return data, [*(meter.silence() if data is None else meter.feed(data))]


def is_answer(
    meter: Meter | Asker, data: bytes | None, events: Sequence[Telegram | Discarded]
) -> bool:
    """Say whether bytes belong to the answer of a meter that is asked, as far as can be told."""
    return bool(data) and not events and isinstance(meter, Asker)


def _sent(port: Port, events: list[Event]) -> list[Telegram | Discarded]:
    """Send what is to be sent; return the rest."""
    found: list[Telegram | Discarded] = []
    for event in events:
        if isinstance(event, Send):
            port.write(event.data)
        elif isinstance(event, SetBaud):
            port.set_baud(event.baud)
        else:
            found.append(event)
    return found


def now_ms() -> int:
    """Return the running loop's time in milliseconds, as meters are told it."""
    return int(asyncio.get_running_loop().time() * 1000)


def _plug_in(name: str) -> Any:
    from importlib.metadata import entry_points  # noqa: PLC0415 (memory: ours need none of it)

    found = tuple(entry_points(group=GROUP, name=name))
    if len(found) != 1:
        raise ConfigError(
            "[meter]", "protocol", f"a plug-in that one installed package has: {name}"
        )
    return found[0].load()
