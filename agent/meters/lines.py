"""Sensors that print lines: text with names or columns, or JSON, to integer readings.

One line is one telegram; each configured field must be in it, once. Text is parted by commas,
semicolons or blanks into `name=number`, `name:number` or bare columns; a line that begins with `{`
is JSON, where `a.b` names a field inside another and `a.0` the first of a list. There is no
checksum: a changed shape is noticed, a changed digit cannot be. What comes before the first line
end is the rest of a line and not used.
Source: docs/faults.md, SER-01..05, SER-11..14; docs/meters.md.
"""

import json
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from agent.meters.framed_meter import Framer
from agent.meters.reading import SIGNED, Discarded, Reading, Reason, Telegram
from agent.meters.scale import rounded, shifted

LIMIT_BYTES = 1024
"""Longest line by default."""

PAGE_BYTES = 1 << 16
"""Longest line of a page or message: some tell all that a device knows."""

_NUMBER = re.compile(r"([+-]?)(\d{1,18})(?:\.(\d{1,18}))?(?:[eE]([+-]?\d{1,2}))?", re.ASCII)
_PARTED = re.compile(r"[,; \t]+")
_PREFIXES = {"k": 3, "M": 6}


class Field(NamedTuple):
    """Where a quantity stands in a line (name, or column from 1), and what it is multiplied by.

    The reading is number · factor · 10^exponent, rounded half up.
    """

    place: str | int
    quantity: str
    factor: int
    exponent: int


def field(place: str | int, quantity: str, unit: str, scale: Decimal | int = 1) -> Field:
    """Return the field of `quantity`, shown in `unit` divided by `scale`."""
    sign, digits, exponent = Decimal(scale).as_tuple()
    factor = int("".join(map(str, digits)))
    return Field(
        place,
        quantity,
        -factor if sign else factor,
        int(exponent) + _PREFIXES.get(unit[0], 0),
    )


class LinesMeter(Framer[Telegram]):
    """Framer and parser of one sensor: bytes in, telegrams and what was discarded out."""

    def __init__(self, fields: Sequence[Field], *, limit_bytes: int = LIMIT_BYTES) -> None:
        super().__init__(limit_bytes)
        self._fields = tuple(fields)
        self._in_line = False  # whether a line's beginning was seen

    def feed(self, data: bytes) -> list[Telegram | Discarded]:
        """Take received bytes; return what they complete, oldest first."""
        events: list[Telegram | Discarded] = []
        *lines, rest = (self._held + data).split(b"\n")
        self._held = b""
        for line in lines:
            self._end(line, events)
        if not self._in_line:
            events += self._noise.add(len(rest))
        elif len(rest) > self._limit:
            self._too_long(rest, events)
        else:
            self._held = rest
        return events

    def silence(self) -> list[Discarded]:
        """Drop a half line: the sensor has been silent for longer than a line pauses."""
        self._in_line = True
        return super().silence()

    def _end(self, line: bytes, events: list[Telegram | Discarded]) -> None:
        if not self._in_line:
            events += self._noise.add(len(line))
            events += self._noise.end()
        elif len(line) > self._limit:
            self._too_long(line, events)
            events += self._noise.end()
        elif text := line.rstrip(b"\r"):
            found = parse_line(text, self._fields)
            events.append(Discarded(len(line) + 1, found) if isinstance(found, str) else found)
        self._in_line = True

    def _too_long(self, line: bytes, events: list[Telegram | Discarded]) -> None:
        events.append(Discarded(self._limit, "length"))
        self._in_line = False
        events += self._noise.add(len(line[self._limit :]))


def parse_line(line: bytes, fields: Sequence[Field]) -> Telegram | Reason:
    """Return the telegram of a line, or why it is none. It has no identity and no time."""
    try:
        text = line.decode("utf-8")
        found = _from_json(text) if text.startswith("{") else _from_text(text)
        readings = tuple(Reading(one.quantity, _reading(one, found(one.place))) for one in fields)
    except (ValueError, LookupError):  # no UTF-8, no such field, no number in a list
        return "syntax"
    except _NumberError:
        return "value"
    return Telegram("", None, readings)


class _NumberError(Exception):
    """What stands in a field is no number; never leaves this module."""


class _Number(str):
    """A number of a JSON text, as it was written."""

    __slots__ = ()


def _from_text(text: str) -> Any:
    columns = _PARTED.split(text.strip(" \t,;"))
    named: dict[str, str] = {}
    for column in columns:
        name, mark, number = column.replace(":", "=", 1).partition("=")
        if mark and name in named:
            raise LookupError
        named[name] = number if mark else ""

    def find(place: str | int) -> str:
        return columns[place - 1] if isinstance(place, int) else named[place]

    return find


def _from_json(text: str) -> Any:
    try:
        found = json.loads(
            text,
            parse_float=_Number,
            parse_int=_Number,
            parse_constant=_Number,
            object_pairs_hook=_once,
        )
    except (ValueError, RecursionError):
        raise LookupError from None

    def find(place: str | int) -> str:
        node = found
        for name in str(place).split("."):
            node = node[int(name)] if isinstance(node, list) else _members(node)[name]
        if isinstance(node, _Number):
            return node
        raise _NumberError

    return find


def _members(node: Any) -> dict[str, Any]:
    return node if isinstance(node, dict) else {}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of JSON, whose names must differ."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise LookupError
    return found


def _reading(one: Field, text: str) -> int:
    form = _NUMBER.fullmatch(text)
    if form is None:
        raise _NumberError
    sign, whole, part, exponent = form.groups()
    number = int(whole + (part or "")) * one.factor
    places = int(exponent or 0) - len(part or "") + one.exponent
    scaled = shifted(-number if sign == "-" else number, places)
    if scaled is None:
        raise _NumberError
    if one.quantity in SIGNED:
        return rounded(scaled)
    return max(rounded(scaled), 0) if one.quantity in _POWERS else _register(scaled)


def _register(scaled: int) -> int:
    if scaled < 0:
        raise _NumberError
    return rounded(scaled)


_POWERS = ("power", "power_export", "apparent_power", "apparent_power_export")
