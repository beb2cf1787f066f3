"""SML (Smart Message Language) push telegrams of German meters, to integer readings.

Of an SML file only the list of values (GetList.Res) is looked at, and of that only the registers of
`registers.UNIT_OF`, with the status words beside them. Standard: BSI TR-03109-1, LMN part B
(docs/adr/0013-meters.md). docs/design.md, Values and reports; docs/faults.md, SER-28, SER-29.
"""

from collections.abc import Callable

from agent.meters.framed_meter import LIMIT_BYTES, DamagedError, FramedMeter
from agent.meters.obis import status_word
from agent.meters.obis.registers import (
    JUDGED,
    POWERS,
    STATUS,
    UNIT_OF,
    Signs,
    electricity,
    is_other_phase,
)
from agent.meters.obis.sml_transport import SmlFrame, SmlFramer
from agent.meters.reading import Telegram
from agent.meters.scale import shifted

_OCTETS, _SIGNED, _UNSIGNED, _LIST = 0, 5, 6, 7
_GET_LIST = 0x0701
_MESSAGE_LENGTH, _RESPONSE_LENGTH, _ENTRY_LENGTH = 6, 7, 7
_MAX_DEPTH = 8  # real files have 6
_MAX_INTEGER_BYTES = 8
_UNITS = {27: "W", 29: "var", 30: "Wh"}  # DLMS unit codes
_TIMESTAMP = 2  # choice of SML_Time: seconds since 1970 UTC; 1 counts seconds from anywhere
_IDENTITIES = ("96.1.0", "0.0.9", "0.0.0", "0-0:96.1.0", "0-0:96.1.255")
_SANE_S = range(946_684_800, 1 << 32)  # from 2000-01-01, below which is no clock that was ever set

# Some meters of the maker DZG send a positive power below 655.36 W as a *signed* number of two
# bytes; negative ones always take four. The status word tells them. Where there is none, the ranges
# of serial numbers do: the maker's own answer, given in pull request 136 of volkszaehler/libsml.
_DZG = b"\x0a\x01DZG\x00"
_DZG_SERIALS = (range(42_000_000, 49_000_000), range(55_000_000, 59_000_000))
_DZG_SHORT = 2  # bytes


class SmlMeter(FramedMeter[SmlFrame]):
    """Framer and parser of one SML meter."""

    def __init__(self, *, limit_bytes: int = LIMIT_BYTES, meter_id: str | None = None) -> None:
        """Read telegrams of any meter, or only of `meter_id` (the server id in hexadecimal)."""
        super().__init__(SmlFramer(limit_bytes), meter_id)

    def _parse(self, frame: SmlFrame) -> Telegram:
        return parse_sml(frame)


def parse_sml(frame: SmlFrame) -> Telegram:
    """Return the telegram in a frame; raises DamagedError. Cost: about 0.1 ms."""
    server, time, listed = _value_list(_messages(frame.content()))
    entries, time_s = _entries(listed), _time_s(time)
    meter_id = _meter_id(server, entries)
    signs = _signs(entries)
    read = electricity(entries, _value(entries, server, signs), signs)
    return Telegram(meter_id.hex().upper(), time_s, read.readings, read.withheld)


class _ShapeError(DamagedError):
    """Bytes that are no SML."""

    def __init__(self) -> None:
        super().__init__("syntax", "list of values")


class _Leaf:
    """What is no list: its type and its bytes."""

    __slots__ = ("kind", "octets")

    def __init__(self, kind: int, octets: bytes) -> None:
        self.kind = kind
        self.octets = octets

    def integer(self) -> int | None:
        """Return the number, or None when it is none."""
        if self.kind not in (_SIGNED, _UNSIGNED):
            return None
        if not 1 <= len(self.octets) <= _MAX_INTEGER_BYTES:
            raise _ShapeError
        return int.from_bytes(self.octets, "big", signed=self.kind == _SIGNED)


def _messages(content: bytes) -> list[list[object]]:
    """Return the messages of a file, each as nested lists of leaves."""
    found = []
    at = 0
    while at < len(content):
        if content[at] == 0:  # between messages some meters fill up with zeros
            at += 1
            continue
        node, at = _node(content, at, 0)
        if not isinstance(node, list) or len(node) != _MESSAGE_LENGTH:
            raise _ShapeError
        found.append(node)
    return found


def _node(content: bytes, at: int, depth: int) -> tuple[object, int]:
    """Return what begins at `at` and where the next begins."""
    if at >= len(content) or depth > _MAX_DEPTH:
        raise _ShapeError
    head = content[at]
    kind, length, body = head >> 4 & 7, head & 15, at + 1
    while head & 0x80:
        if body >= len(content):
            raise _ShapeError
        head = content[body]
        length, body = length << 4 | head & 15, body + 1
        if length > len(content) or head & 0x70:
            raise _ShapeError
    if kind == _LIST:
        items = []
        for _ in range(length):
            item, body = _node(content, body, depth + 1)
            items.append(item)
        return items, body
    end = max(at + length, body)  # a length counts its own bytes; 00 ends a message
    if end > len(content):
        raise _ShapeError
    return _Leaf(kind, content[body:end]), end


def _value_list(messages: list[list[object]]) -> tuple[bytes, object, list[object]]:
    """Return server id, sensor time and entries of the one list of values."""
    found = []
    for message in messages:
        body = message[3]
        if not isinstance(body, list) or len(body) != 2:  # noqa: PLR2004 (choice and what is chosen)
            raise _ShapeError
        if _integer(body[0]) == _GET_LIST:
            found.append(body[1])
    if len(found) != 1:
        raise _ShapeError
    (response,) = found
    if not isinstance(response, list) or len(response) != _RESPONSE_LENGTH:
        raise _ShapeError
    _, server, _, time, entries, _, _ = response
    if not isinstance(entries, list):
        raise _ShapeError
    return _octets(server), time, entries


class _Entry:
    """One register as it is shown."""

    __slots__ = ("scaler", "status", "unit", "value")

    def __init__(self, status: object, unit: object, scaler: object, value: object) -> None:
        self.status = status
        self.unit = unit
        self.scaler = scaler
        self.value = value


def _entries(listed: list[object]) -> dict[str, _Entry]:
    """Return the registers of electricity as C.D.E; one that is read stands there once."""
    found: dict[str, _Entry] = {}
    for entry in listed:
        if not isinstance(entry, list) or len(entry) != _ENTRY_LENGTH:
            raise _ShapeError
        name, status, _, unit, scaler, value, _ = entry
        key = _key(_octets(name))
        if key in found and key in JUDGED:
            raise _ShapeError
        if key in UNIT_OF and key not in JUDGED and not _is_reactive(unit, scaler, value):
            continue
        if key:
            found[key] = _Entry(status, unit, scaler, value)
    return found


def _is_reactive(unit: object, scaler: object, value: object) -> bool:
    """Say whether an entry is a number of var: another one refuses no telegram."""
    number = _integer(value)
    is_var = _UNITS.get(_integer(unit) or 0) == "var"
    return is_var and number is not None and shifted(number, _integer(scaler) or 0) is not None


def _signs(entries: dict[str, _Entry]) -> Signs:
    """Return which way the power goes, and which phases there are, as far as the meter says it."""
    words = [
        word
        for key, entry in entries.items()
        if (key == STATUS and (word := _integer(entry.value)) is not None)
        or (UNIT_OF.get(key) == "Wh" and (word := _integer(entry.status)) is not None)
    ]
    return Signs(
        status_word.direction(words),
        {key for key in POWERS if key in entries and _kind(entries[key].value) == _UNSIGNED},
        status_word.has_other_phases(words) or any(map(is_other_phase, entries)),
    )


def _value(entries: dict[str, _Entry], server: bytes, signs: Signs) -> Callable[[str], int]:
    """Return what reads one register, in NANO parts of its unit."""

    def value(key: str) -> int:
        entry = entries[key]
        number = _integer(entry.value)
        if UNIT_OF[key] == "W" and _is_positive_of_dzg(entry.value, server, signs):
            number = int.from_bytes(_raw(entry.value), "big")
        return _scaled(key, number, _integer(entry.unit), _integer(entry.scaler) or 0)

    return value


def _scaled(key: str, number: int | None, unit: int | None, exponent: int) -> int:
    if number is None or unit is None or _UNITS.get(unit) != UNIT_OF[key]:
        raise DamagedError("value", key)
    scaled = shifted(number, exponent)
    if scaled is None or (scaled < 0 and UNIT_OF[key] == "Wh"):
        raise DamagedError("value", key)
    return scaled


def _key(name: bytes) -> str:
    """Return C.D.E of the register A-B:C.D.E*F when A is electricity and F the present.

    Of what belongs to no medium (A is 0) only the meter's number is wanted, under its whole name.
    """
    if len(name) != 6:  # noqa: PLR2004 (groups A to F)
        return ""
    key = f"{name[2]}.{name[3]}.{name[4]}"
    if name[0] == 0:
        return f"0-0:{key}" if name[1:4] == b"\x00\x60\x01" else ""
    return key if name[0] == 1 and name[5] == 255 else ""  # noqa: PLR2004 (the present)


def _meter_id(server: bytes, entries: dict[str, _Entry]) -> bytes:
    """Return the server id, else the number that the meter shows as a register."""
    shown = (_raw(entries[key].value) for key in _IDENTITIES if key in entries)
    return server or next(filter(None, shown), b"")


def _is_positive_of_dzg(value: object, server: bytes, signs: Signs) -> bool:
    """Say whether a short number that is tagged as signed is one of DZG's positive ones."""
    is_dzg = server.startswith(_DZG) and len(server) == len(_DZG) + 4
    is_short = (
        isinstance(value, _Leaf) and value.kind == _SIGNED and len(value.octets) <= _DZG_SHORT
    )
    if signs.given is not None or not (is_dzg and is_short):
        return is_dzg and is_short and signs.given is False
    serial = int.from_bytes(server[len(_DZG) :], "big")
    return any(serial in serials for serials in _DZG_SERIALS)


def _time_s(time: object) -> int | None:
    """Return the seconds since 1970 UTC, where the meter has a clock and it was ever set."""
    if not isinstance(time, list) or len(time) != 2 or _integer(time[0]) != _TIMESTAMP:  # noqa: PLR2004 (choice and what is chosen)
        return None
    found = _integer(time[1])
    return found if found is not None and found in _SANE_S else None


def _integer(node: object) -> int | None:
    return node.integer() if isinstance(node, _Leaf) else None


def _octets(node: object) -> bytes:
    """Return an octet string; an absent one is empty."""
    if not isinstance(node, _Leaf) or node.kind != _OCTETS:
        raise _ShapeError
    return node.octets


def _kind(node: object) -> int:
    return node.kind if isinstance(node, _Leaf) else _LIST


def _raw(node: object) -> bytes:
    return node.octets if isinstance(node, _Leaf) else b""
