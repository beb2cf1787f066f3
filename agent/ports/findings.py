"""What `probe` finds on a line: what it makes of the bytes that come, in words, never readings.

All parsers of meters that speak by themselves listen to the same bytes; those with a checksum are
believed first. No I/O here. Source: docs/meters.md; docs/faults.md, SER-07.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from agent.meters.protocols import Line
from agent.meters.reading import Discarded, Meter, Telegram
from agent.meters.section import MeterTable
from agent.meters.unread import Unread
from agent.meters.words import misread_text, withheld_text

PARITIES = {"N": "no", "E": "even", "O": "odd"}
TELEGRAMS = 3
"""So many are heard before a quantity is missing: some meters tell it in every other one only."""

_TEXT_LINES = 3
_TAIL_BYTES = 2048
_PLACE = re.compile(r"[A-Za-z0-9_.:]{1,64}")
_NAME = re.compile(r'(?:^|[ \t,;{])"?([A-Za-z][A-Za-z0-9_.]{0,31})"?[=:]')


@dataclass(frozen=True, slots=True)
class Found:
    """A protocol that gave a telegram, on which line, and what kinds of readings it has.

    What has no speed, a page or a topic, has no line.
    """

    line: Line | None
    keys: dict[str, Any]
    quantities: tuple[str, ...] = ()
    tells_time: bool = False
    note: str = ""

    def text(self) -> str:
        """Return it in words."""
        kinds = f"; it shows {', '.join(self.quantities)}" if self.quantities else ""
        time = " and tells its time" if self.tells_time else ""
        note = f"; {self.note}" if self.note else ""
        at = f" at {line_text(self.line)}" if self.line else ""
        return f"{self.keys['protocol']}{at}{kinds}{time}{note}"


@dataclass(frozen=True, slots=True)
class Tried:
    """A line without a telegram: how many bytes came, and the best parser's commonest fault."""

    line: Line | None
    received_bytes: int
    reason: str
    known: str = ""  # what it is by name, and what to do: then no other speed is tried

    def text(self) -> str:
        """Return it in words."""
        at = f"{line_text(self.line)}: " if self.line else ""
        if self.known:
            return f"{at}{self.known}"
        what = f"{self.received_bytes} bytes and no telegram ({self.reason or 'noise'})"
        nothing = self.reason or "nothing came"
        return f"{at}{what if self.received_bytes else nothing}"


class LineListener:
    """Several parsers on one line; the first that gives a telegram is the only one from then on.

    `wanted`: quantities for which up to TELEGRAMS are heard.
    """

    def __init__(
        self,
        line: Line | None,
        meters: list[tuple[dict[str, Any], Meter]],
        wanted: Collection[str] = (),
    ) -> None:
        self._line = line
        self._meters = meters
        self._wanted = frozenset(wanted)
        self._misread = ""
        self._telegrams: list[Telegram] = []
        self._discarded = [Counter[str]() for _ in meters]
        self._unread = Unread()
        self._tail = b""

    @property
    def received_bytes(self) -> int:
        """How many bytes came."""
        return self._unread.received_bytes

    @property
    def is_foreign(self) -> bool:
        """Whether the bytes are of a format that is recognised and not read."""
        return bool(self._unread.format)

    @property
    def missing(self) -> frozenset[str]:
        """What is wanted and was not told, once there was a telegram; empty before."""
        known = {quantity for one in self._telegrams for quantity in one.shown}
        return self._wanted - known if self._telegrams else frozenset()

    def listen(self, data: bytes | None) -> Found | None:
        """Take received bytes, or silence; return the protocol when enough telegrams were heard."""
        self._unread.take(data)
        if self._line is not None:
            self._tail = (self._tail + (data or b""))[-_TAIL_BYTES:]
        elif data:  # a whole answer or message
            self._tail = b"\n" + data * _TEXT_LINES
        for (keys, meter), discarded in zip(self._meters, self._discarded, strict=True):
            for event in meter.silence() if data is None else meter.feed(data):
                if isinstance(event, Discarded):
                    discarded[event.reason] += event.size
                    self._note_line(event, keys)
                elif event.readings or self._telegrams:
                    self._telegrams.append(event)
                    self._meters, self._discarded = [(keys, meter)], [discarded]
                    if not self.missing or len(self._telegrams) == TELEGRAMS:
                        return found(self._line, keys, self._telegrams)
            if self._telegrams:
                break  # the others have not heard these bytes, and never will
        return None

    def _note_line(self, event: Discarded, keys: Mapping[str, Any]) -> None:
        """Note a line that was not understood in what a checksum proves to be a telegram."""
        if event.line and (table := MeterTable(port="", **keys)).has_checksum and not self._misread:
            words = misread_text(event.line, is_proved=True)
            self._misread = f"{table.protocol}: {words}"

    def give_up(self) -> Found | Tried:
        """Return what there was: too few telegrams, lines of text, or nothing that is known."""
        if self._telegrams:
            ((keys, _),) = self._meters
            return found(self._line, keys, self._telegrams)
        if self.is_foreign:
            known = self._unread.text(is_proved=True)
            return Tried(self._line, self.received_bytes, self._unread.format, known)
        names = None if self._misread else text_names(self._tail)
        if names is not None:
            which = f" with the names {', '.join(names)}" if names else ""
            note = f"lines of text{which}; write [[meter.fields]], see docs/meters.md"
            return Found(self._line, {"protocol": "lines"}, note=note)
        best: Counter[str] = max(
            self._discarded, key=lambda c: sum(c.values()) - c["noise"], default=Counter()
        )
        reason = best.most_common(1)[0][0] if best else ""
        return Tried(self._line, self.received_bytes, reason, self._misread)


def found(line: Line | None, keys: Mapping[str, Any], telegrams: Sequence[Telegram]) -> Found:
    """Return what may be said of telegrams: what kinds of readings they have, and none of them."""
    quantities = dict.fromkeys(quantity for one in telegrams for quantity in one.shown)
    tells_time = any(one.time_s is not None for one in telegrams)
    note = withheld_text(telegrams[-1].withheld)
    return Found(line, dict(keys), tuple(quantities), tells_time, note)


def text_names(tail: bytes) -> tuple[str, ...] | None:
    """Return the names in lines of text, as [[meter.fields]] takes them (of columns: none).

    None if these are no lines of text.
    """
    whole = tail.split(b"\n")[1:-1]
    if len(whole) < _TEXT_LINES:
        return None
    try:
        lines = [line.decode("utf-8").rstrip("\r") for line in whole]
    except UnicodeDecodeError:
        return None
    if not all(line.isprintable() and any(c.isdigit() for c in line) for line in lines):
        return None
    with suppress(ValueError, RecursionError, AttributeError):
        return tuple(name for name in _places(json.loads(lines[-1])) if _PLACE.fullmatch(name))
    return tuple(dict.fromkeys(_NAME.findall(lines[-1])))


def _places(node: Any, before: str = "") -> Iterator[str]:
    """Yield where numbers stand in an object of JSON."""
    for name, inner in enumerate(node) if isinstance(node, list) else node.items():
        if isinstance(inner, dict | list):
            yield from _places(inner, f"{before}{name}.")
        elif isinstance(inner, int | float):
            yield f"{before}{name}"


def line_text(line: Line) -> str:
    """Return a line's form in words."""
    return f"{line.baud} baud, {line.data_bits} data bits, {PARITIES[line.parity or 'N']} parity"


def toml_lines(port: str, found: Found) -> list[str]:
    """Return the [meter] table for what was found."""
    keys, line = {"port": port, **found.keys}, found.line
    if "mode" not in found.keys and line is not None:  # else it begins at its own speed
        keys |= {"baud": line.baud, "data_bits": line.data_bits, "parity": line.parity}
    return ["[meter]"] + [f"{key} = {_toml(value)}" for key, value in keys.items()]


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }"
    return str(value) if isinstance(value, int) else f'"{value}"'


def as_facts(port: str, outcome: Found | None, tried: list[Tried]) -> dict[str, Any]:
    """Return the same for machines."""
    return {
        "port": port,
        "found": outcome is not None,
        "line": outcome.line._asdict() if outcome and outcome.line else None,
        "keys": outcome.keys if outcome else {},
        "quantities": list(outcome.quantities) if outcome else [],
        "tells_time": outcome.tells_time if outcome else False,
        "note": outcome.note if outcome else "",
        "tried": [
            {
                **(t.line._asdict() if t.line else {}),
                "bytes": t.received_bytes,
                "reason": t.reason,
            }
            for t in tried
        ],
    }
