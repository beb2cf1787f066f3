"""Captured telegrams (cases/dsmr/ATTRIBUTION.md) and telegrams made for one test."""

import asyncio
from pathlib import Path
from typing import Any

from agent.meters.crc import crc16_arc
from agent.meters.obis.dsmr import P1Meter
from agent.meters.reading import Discarded, Telegram
from agent.ports.meters import hear, make_meter
from agent.ports.port import Port

CAPTURES = Path(__file__).parent / "cases" / "dsmr"
EVERY_CAPTURE = Path(__file__).parents[4] / "shared" / "data" / "meters"

V4 = "telegram_v4_2.raw"
V5 = "telegram_v5.raw"
SHORT = "telegram_unpadded_crc.raw"
STREAM = "stream_isk5_m550t_v50_cut.raw"


def capture(name: str) -> bytes:
    """Return a capture's bytes; the one that was saved without its last CRLF gets it back."""
    found = (CAPTURES / name).read_bytes()
    return found if found.endswith(b"\n") or name == STREAM else found + b"\r\n"


def sealed(*lines: str, version: str = "1-3:0.2.8(50)") -> bytes:
    """Return a telegram of these data lines with the right CRC."""
    body = "\r\n".join(("/TST5TEST", "", version, *lines, "!")).encode("latin-1")
    return body + b"%04X\r\n" % crc16_arc(body)


def only(found: list[Telegram | Discarded]) -> Telegram | Discarded:
    """Return the one event of a list that must have one."""
    (event,) = found
    return event


def values(event: Telegram | Discarded) -> dict[str, int]:
    """Return the readings of what must be a telegram."""
    assert isinstance(event, Telegram)
    return {reading.quantity: reading.value for reading in event.readings}


async def heard(port: Port, table: Any, count: int = 1) -> list[Telegram]:
    meter, found = make_meter(table), list[Telegram]()
    async with asyncio.timeout(300):
        while len(found) < count:
            found += [e for e in (await hear(port, meter))[1] if isinstance(e, Telegram)]
    return found


def reasons(found: list[Telegram | Discarded]) -> list[str]:
    """Return why each event was discarded, "" for a telegram."""
    return [event.reason if isinstance(event, Discarded) else "" for event in found]


def parse(data: bytes) -> Telegram | Discarded:
    """Return the one event of a telegram whose CRC must be right."""
    return only(P1Meter().feed(data))
