"""The line between meter and parser, written to a file as it passes; and that file read again."""

import asyncio
import json
import math
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

from agent.errors import ConfigError, storing
from agent.meters.reading import Asker, Discarded, Event, Meter, Send, Telegram
from agent.meters.section import MeterTable, meter_faults
from agent.ports.meters import hear, make_meter, now_ms
from agent.ports.open_port import open_meter
from agent.ports.recording import (
    FORMAT,
    RECEIVED,
    SENT,
    TOLD,
    VERSION,
    WARNING,
    LineEvent,
    as_line,
    line_events,
)
from edge_ldp.service.typed_table import TableError, read_table

LIMIT_BYTES = 64 << 20
"""Size at which a recording ends by itself: half a day of the fastest meters."""

_OWNER_ONLY = 0o600
_HEADER_BYTES = 1 << 16


class Tape:
    """A new file that only its owner can read; raises StorageError when it cannot be written."""

    def __init__(self, path: Path, table: MeterTable, limit_bytes: int = LIMIT_BYTES) -> None:
        self.path = path
        self.size = 0
        self._limit = limit_bytes
        remedy = "name a file that does not exist yet, in a directory that you may write to"
        with storing(path, remedy):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            self._file = os.fdopen(os.open(path, flags, _OWNER_ONLY), "w", encoding="ascii")
        header = {
            "format": FORMAT,
            "version": VERSION,
            "warning": WARNING,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "meter": asdict(table),
        }
        self._write(json.dumps(header, default=str) + "\n")  # a scale is a decimal

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def is_full(self) -> bool:
        """Whether the file has reached its limit."""
        return self.size >= self._limit

    def write(self, at_ms: int, mark: str, octets: bytes = b"") -> None:
        """Write one event at once."""
        self._write(as_line(LineEvent(at_ms, mark, octets)))

    def _write(self, line: str) -> None:
        with storing(self.path, "make room on the disk"):
            self._file.write(line)
            self._file.flush()
        self.size += len(line)


class TapedMeter:
    """A meter that speaks by itself, with all that it hears on tape."""

    def __init__(self, meter: Meter, tape: Tape) -> None:
        self._meter = meter
        self._tape = tape
        self._spoke = True  # so that a silence before the first byte is on it, too

    def feed(self, data: bytes) -> list[Telegram | Discarded]:
        """Take received bytes; return what they complete."""
        self._spoke = True
        self._tape.write(now_ms(), RECEIVED, data)
        return self._meter.feed(data)

    def silence(self) -> list[Discarded]:
        """Drop a half telegram."""
        if self._spoke:  # of a long silence only the beginning means anything
            self._tape.write(now_ms(), TOLD)
        self._spoke = False
        return self._meter.silence()


class TapedAsker:
    """A meter that is asked, with both sides of the talk on tape."""

    def __init__(self, meter: Asker, tape: Tape) -> None:
        self._meter = meter
        self._tape = tape

    @property
    def wake_ms(self) -> int:
        """When `tick` is to be called next at the latest."""
        return self._meter.wake_ms

    def tick(self, now_ms: int) -> list[Event]:
        """Take the time; return what is to be sent."""
        events = self._meter.tick(now_ms)
        if events:
            self._tape.write(now_ms, TOLD)
        return self._noted(events, now_ms)

    def feed(self, data: bytes, now_ms: int) -> list[Event]:
        """Take received bytes; return what they complete and what is to be sent next."""
        self._tape.write(now_ms, RECEIVED, data)
        return self._noted(self._meter.feed(data, now_ms), now_ms)

    def _noted(self, events: list[Event], now_ms: int) -> list[Event]:
        for event in events:
            if isinstance(event, Send):
                self._tape.write(now_ms, SENT, event.data)
        return events


async def record(
    table: MeterTable, path: Path, seconds: float | None, counts: Counter[str]
) -> None:
    """Write what passes on a meter's line to a new file until time or room is over, or cancelled.

    `counts` gets telegrams and discarded bytes by reason. Raises PortError and StorageError.
    """
    meter = make_meter(table)
    opened = await open_meter(table)
    with closing(opened) as port, Tape(path, table) as tape:
        meter = TapedAsker(meter, tape) if isinstance(meter, Asker) else TapedMeter(meter, tape)
        until_s = math.inf if seconds is None else asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < until_s and not tape.is_full:
            for event in (await hear(port, meter))[1]:
                if isinstance(event, Discarded):
                    counts[event.reason] += event.size
                else:
                    counts["telegrams"] += 1


def read_recording(path: Path) -> tuple[MeterTable, Iterator[LineEvent]]:
    """Return the [meter] table of a recording and its events, read as they are asked for.

    Raises ConfigError naming the file and what in it is not a recording's.
    """
    try:
        file = path.open(encoding="ascii", errors="replace")
    except OSError as exc:
        raise ConfigError(str(path), "file", f"a readable file ({exc.strerror})") from exc
    line = file.readline(_HEADER_BYTES)
    try:
        table = _meter_of(json.loads(line))
    except TableError as exc:
        file.close()
        key, expected = exc.faults[0]
        raise ConfigError(str(path), f"line 1: {key}", expected) from exc
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as exc:
        file.close()
        raise ConfigError(str(path), "line 1", "the header of an edge-ldp recording") from exc

    def events() -> Iterator[LineEvent]:
        with file:
            yield from line_events(file, str(path))

    return table, events()


def _meter_of(header: dict[str, Any]) -> MeterTable:
    """Return the [meter] table of a header; raises TableError, and others where it is no header."""
    if (header["format"], header["version"]) != (FORMAT, VERSION):
        raise TableError([("version", str(VERSION))])
    table = dict(header["meter"])
    for field in table.get("fields", ()):
        field["scale"] = Decimal(field["scale"])  # JSON has no decimals: written as text
    return read_table(MeterTable, table, meter_faults, "meter.")
