"""SML (Smart Message Language) push telegrams of German meters, to integer readings.

Of an SML file only the list of values (GetList.Res) is looked at, and of that only the registers of
`obis.UNIT_OF`. Standard: BSI TR-03109-1, LMN part B (docs/adr/0013-meters.md).
docs/design.md, Values and reports.
"""

from agent.meters.framed_meter import FramedMeter
from agent.meters.obis import NET, UNIT_OF, electricity
from agent.meters.reading import Discarded, Telegram
from agent.meters.scale import shifted
from agent.meters.sml_transport import LIMIT_BYTES, SmlFrame, SmlFramer

_OCTETS, _SIGNED, _UNSIGNED, _LIST = 0, 5, 6, 7
_GET_LIST = 0x0701
_MESSAGE_LENGTH, _RESPONSE_LENGTH, _ENTRY_LENGTH = 6, 7, 7
_MAX_DEPTH = 8  # real files have 6
_MAX_INTEGER_BYTES = 8
_UNITS = {27: "W", 30: "Wh"}  # DLMS unit codes
_TIMESTAMP = 2  # choice of SML_Time: seconds since 1970 UTC; 1 counts seconds from anywhere
_SANE_S = range(946_684_800, 1 << 32)  # from 2000-01-01, below which is no clock that was ever set

# DVS74 meters of the maker DZG send a positive power below 655.36 W as a *signed* number of two
# bytes; negative ones always take four. The ranges of serial numbers are the maker's own answer,
# given in pull request 136 of volkszaehler/libsml.
_DZG = b"\x0a\x01DZG\x00"
_DZG_SERIALS = (range(42_000_000, 49_000_000), range(55_000_000, 59_000_000))
_DZG_SHORT_BYTES = 3


class SmlMeter(FramedMeter[SmlFrame]):
    """Framer and parser of one SML meter."""

    def __init__(self, *, limit_bytes: int = LIMIT_BYTES, meter_id: str | None = None) -> None:
        """Read telegrams of any meter, or only of `meter_id` (the server id in hexadecimal)."""
        super().__init__(SmlFramer(limit_bytes), meter_id)

    def _parse(self, frame: SmlFrame) -> Telegram | Discarded:
        return parse_sml(frame)


def parse_sml(frame: SmlFrame) -> Telegram | Discarded:
    """Return the telegram in a frame, or why it is none. Cost: about 0.1 ms."""
    try:
        server, time, entries = _value_list(_messages(frame.content()))
        found, time_s = _registers(entries, server), _time_s(time)
    except _ShapeError:
        return Discarded(frame.size, "syntax")
    except _ValueError:
        return Discarded(frame.size, "value")
    return Telegram(server.hex().upper(), time_s, electricity(found))


class _ShapeError(Exception):
    """Bytes that are no SML; never leaves this module."""


class _ValueError(Exception):
    """A number or unit that a register cannot have; never leaves this module."""


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


def _registers(entries: list[object], server: bytes) -> dict[str, int]:
    """Return the registers that are read, in NANO parts of their unit."""
    found: dict[str, int] = {}
    for entry in entries:
        if not isinstance(entry, list) or len(entry) != _ENTRY_LENGTH:
            raise _ShapeError
        name, _, _, unit, scaler, value, _ = entry
        key = _key(_octets(name))
        if key not in UNIT_OF:
            continue
        if key in found:
            raise _ShapeError
        number = _net_of_dzg(value) if key == NET and _is_old_dzg(server) else _integer(value)
        found[key] = _scaled(key, number, _integer(unit), _integer(scaler) or 0)
    return found


def _scaled(key: str, number: int | None, unit: int | None, exponent: int) -> int:
    if number is None or unit is None or _UNITS.get(unit) != UNIT_OF[key]:
        raise _ValueError
    scaled = shifted(number, exponent)
    if scaled is None or (scaled < 0 and UNIT_OF[key] == "Wh"):
        raise _ValueError
    return scaled


def _key(name: bytes) -> str:
    """Return C.D.E of the register A-B:C.D.E*F when A is electricity and F the present."""
    if len(name) != 6 or name[0] != 1 or name[5] != 255:  # noqa: PLR2004 (groups A to F)
        return ""
    return f"{name[2]}.{name[3]}.{name[4]}"


def _is_old_dzg(server: bytes) -> bool:
    is_dzg = server.startswith(_DZG) and len(server) == len(_DZG) + 4
    serial = int.from_bytes(server[len(_DZG) :], "big")
    return is_dzg and any(serial in serials for serials in _DZG_SERIALS)


def _net_of_dzg(value: object) -> int | None:
    if isinstance(value, _Leaf) and value.kind == _SIGNED and len(value.octets) <= _DZG_SHORT_BYTES:
        return _Leaf(_UNSIGNED, value.octets).integer()
    return _integer(value)


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
