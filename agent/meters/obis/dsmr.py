"""DSMR P1 telegrams, from received bytes to integer readings, without I/O and in bounded memory.

A telegram runs from `/` over CRLF-ended lines to `!`, the CRC in hexadecimal and CRLF. IEC 62056-21
keeps both marks out of identifications and values, so a `/` after the header starts a frame: after
any damage the very next telegram is read again. Some headers hold a second `/`: the checksum, or
the form of an identification, tells where such a telegram begins.
Versions 4 and 5 (and the Belgian and Luxembourg ones) carry a CRC and must. Versions 2.2 and 3 have
none: allowed only where configured, and then a changed digit cannot be noticed, only a changed
shape. Sources: P1 Companion Standard 5.0.2 §5.2, §6; docs/design.md, Values and reports;
docs/faults.md, SER-01..SER-13, SER-24, SER-25, SER-30.
"""

import re
from binascii import unhexlify
from dataclasses import dataclass, field
from typing import Literal

from agent.meters.crc import crc16_arc
from agent.meters.framed_meter import (
    LIMIT_BYTES,
    DamagedError,
    FramedMeter,
    Framer,
    beside_ends,
    shown_text,
)
from agent.meters.obis.registers import (
    JUDGED,
    NET,
    POWERS,
    UNIT_OF,
    Signs,
    electricity,
    is_other_phase,
    is_profile,
)
from agent.meters.reading import Discarded, SubMeter, Telegram
from agent.meters.scale import NANO
from agent.meters.told_time import seconds, stamp

CrcRule = Literal["required", "absent-allowed"]

_TIME = "0-0:1.0.0"
_IDENTITIES = ("0-0:96.1.1", "0-0:42.0.0", "0-0:96.1.0")
_VERSIONS = ("1-3:0.2.8", "0-0:96.1.4")  # only telegrams that have a CRC carry a version
_ELECTRICITY = "1-0:"
_WANTED = {_TIME, *_IDENTITIES, *(_ELECTRICITY + key for key in UNIT_OF)}
_UNSIGNED = frozenset(POWERS) - {NET}
_DATED = re.compile(rb"[0-9]{12}[SW]?\)\(")
_DECIMALS = {
    "W": {b"kW)": 3, b"W)": 0},
    "Wh": {b"kWh)": 3, b"Wh)": 0},
    "var": {b"kvar)": 3, b"var)": 0},
}
_REACTIVE = re.compile(rb"[0-9]{1,6}(?:\.[0-9]{1,3})?\*k?var\)", re.IGNORECASE)
_MAX_DIGITS = 11  # 8 before the point, 3 after it: Swedish meters, and as IEC 62056-61 allows
_COSEM_TIME = re.compile(
    rb"([0-9A-F]{4})(..)(..)..(..)(..)(..)..([0-9A-F]{4})(..)\)".replace(b"..", b"[0-9A-F]{2}")
)
_NO_OFFSET, _DOUBTFUL = 0x8000, 0x07  # invalid, in doubt, of another clock
_IDENTIFICATION = re.compile(rb"/[A-Za-z]{3}[0-9A-Z]")
_HEADER_BYTES = 128
_MOST_STARTS = 4  # half a header may come before one that holds a second mark itself


@dataclass(frozen=True, slots=True)
class RawTelegram:
    """A telegram's bytes as received: `body` from `/` to `!`, `tail` from there to before LF."""

    body: bytes = field(repr=False)
    tail: bytes = field(repr=False)

    @property
    def size(self) -> int:
        """How many bytes were received for it, LF included."""
        return len(self.body) + len(self.tail) + 1


class P1Framer(Framer[RawTelegram]):
    """Holds an open frame from its "/" on; CR and LF between frames are no noise.

    Returns at most two events for a received byte.
    """

    def feed(self, data: bytes) -> list[RawTelegram | Discarded]:
        """Take received bytes; return what they complete, oldest first."""
        events: list[RawTelegram | Discarded] = []
        before, *pieces = _pieces(self._held + data, min(_HEADER_BYTES, self._limit))
        self._held = b""
        events += self._noise.add(beside_ends(before))
        for at, piece in enumerate(pieces, start=1):
            events += self._noise.end()
            self._judge_piece(piece, is_last=at == len(pieces), events=events)
        return events

    def _judge_piece(
        self, piece: bytes, *, is_last: bool, events: list[RawTelegram | Discarded]
    ) -> None:
        """Judge one piece that begins with "/" and has no other but in its header."""
        bang = piece.find(b"!")
        end = piece.find(b"\n", bang) if bang > 0 else -1
        size = end + 1 if end > 0 else len(piece)
        if size > self._limit:
            events.append(Discarded(self._limit, "length"))
            events += self._noise.add(beside_ends(piece[self._limit :]))
        elif end > 0:
            frame = RawTelegram(piece[: bang + 1], piece[bang + 1 : end])
            if start := _start(frame):
                events.append(Discarded(start, "cut"))
                frame = RawTelegram(frame.body[start:], frame.tail)
            events.append(frame)
            events += self._noise.add(beside_ends(piece[size:]))
        elif is_last:
            self._held = piece
        else:
            events.append(Discarded(size, "cut"))


def _pieces(stream: bytes, header_bytes: int) -> list[bytes]:
    """Return what comes before the first "/", and the pieces that each later one begins.

    One in a header, before its line ends, begins none: `_start` decides about it.
    """
    before, *parts = stream.split(b"/")
    pieces: list[bytes] = []
    for part in parts:
        is_header = pieces and len(pieces[-1]) < header_bytes
        if is_header and b"\n" not in pieces[-1] and b"!" not in pieces[-1]:
            pieces[-1] += b"/" + part
        else:
            pieces.append(b"/" + part)
    return [before, *pieces]


def _start(frame: RawTelegram) -> int:
    """Return where in a frame the telegram begins: later than at 0 after half a header.

    The checksum decides; without one the last mark that begins an identification.
    """
    header = frame.body.partition(b"\n")[0]
    starts = [at for at, byte in enumerate(header) if byte == ord("/")][-_MOST_STARTS:]
    if len(starts) == 1:
        return starts[0]
    proven = (at for at in starts if _proves(frame.body[at:], frame.tail))
    named = (at for at in reversed(starts) if _IDENTIFICATION.match(header, at))
    return next(proven, next(named, 0))


def _proves(body: bytes, tail: bytes) -> bool:
    """Say whether a checksum line is that of a telegram.

    Its CR counts for nothing: network bridges strip it, and the CRC ends before it.
    """
    crc = crc16_arc(body)
    return tail.removesuffix(b"\r") in (b"%04X" % crc, b"%X" % crc)  # some print no zeros


class P1Meter(FramedMeter[RawTelegram]):
    """Framer and parser of one P1 port."""

    def __init__(
        self,
        *,
        limit_bytes: int = LIMIT_BYTES,
        crc: CrcRule = "required",
        meter_id: str | None = None,
        beside: bool = False,
    ) -> None:
        """Read telegrams of any meter, or only of `meter_id` (as `Telegram.meter_id` gives it)."""
        super().__init__(P1Framer(limit_bytes), meter_id)
        self._crc: CrcRule = crc
        self._beside = beside

    def _parse(self, frame: RawTelegram) -> Telegram:
        return parse_telegram(frame, crc=self._crc, beside=self._beside)


def parse_telegram(frame: RawTelegram, *, crc: CrcRule, beside: bool = False) -> Telegram:
    """Return the telegram in a frame, `beside`: with what it tells besides; raises DamagedError.

    Units and decimals are judged by their form, never by their value, and only those of registers
    that are used. A time that cannot be read costs nothing but itself.
    """
    header, lines = _whole(frame, crc)
    found, has_others = _found(lines)
    shown = {key.removeprefix(_ELECTRICITY): text for key, text in found.items()}

    def value(key: str) -> int:
        return _scaled(key, shown[key])

    read = electricity(shown, value, Signs(unsigned=_UNSIGNED, has_others=has_others))
    names = [name for key in _IDENTITIES if (name := _identity(found.get(key, b"")))]
    meter_id, *aliases = (*names, _shown(header))
    time_s = _time_s(found.get(_TIME, b""))
    behind = _channels(lines) if b":24." in frame.body else ()
    more = _beside(lines) if beside else ()
    return Telegram(meter_id, time_s, read.readings, read.withheld, tuple(aliases), behind, more)


def _channels(lines: list[bytes]) -> tuple[SubMeter, ...]:
    from agent.meters.obis.channels import channels  # noqa: PLC0415 (memory: who has such meters)

    return channels(lines)


def _beside(lines: list[bytes]) -> tuple[SubMeter, ...]:
    from agent.meters.obis.channels import beside  # noqa: PLC0415 (memory: who has a tap)

    return beside(lines)


def _whole(frame: RawTelegram, crc: CrcRule) -> tuple[bytes, list[bytes]]:
    """Return header and lines of a telegram that its checksum proves, or that may lack one."""
    header, *lines = frame.body[1:].split(b"\r\n")
    if crc == "absent-allowed" and frame.tail == b"\r" and not _has_version(lines):
        if not shown_text(header):  # no checksum proves that it is one
            raise DamagedError("syntax")
    elif not _proves(frame.body, frame.tail):
        raise DamagedError("crc")
    if not lines or lines[-1] != b"!" or not header.strip():
        raise DamagedError("syntax", "header")
    return header, lines


def _has_version(lines: list[bytes]) -> bool:
    return any(line.partition(b"(")[0].decode("latin-1") in _VERSIONS for line in lines)


def _found(lines: list[bytes]) -> tuple[dict[str, bytes], bool]:
    """Return what follows the first bracket of each wanted line, and if any is of another phase.

    A list of past values (98.1.0) may repeat registers, below its line or each with its time: such
    a one is not of now.
    """
    found: dict[str, bytes] = {}
    of_now: set[str] | None = None  # once a list began: what stood above it
    has_others = False
    for line in lines:
        name, _, rest = line.partition(b"(")
        key = name.decode("latin-1")
        number = key.partition(":")[2]
        if of_now is None and is_profile(number):
            of_now = set(found)
        has_others = has_others or (key.startswith(_ELECTRICITY) and is_other_phase(number))
        if key not in _WANTED or _DATED.match(rest):
            continue
        if number not in JUDGED and number in UNIT_OF and not _REACTIVE.fullmatch(rest):
            continue
        if key not in found:
            found[key] = rest
        elif number in UNIT_OF and number not in JUDGED:
            continue
        elif of_now is None or key not in of_now:
            raise DamagedError("syntax", key)
    return found, has_others


def _scaled(key: str, text: bytes) -> int:
    """Return `00.378*kW)` in NANO parts, exactly, by shifting digits; only net power has a sign."""
    is_negative = key == NET and text[:1] == b"-"
    number, _, suffix = text[is_negative:].partition(b"*")
    unit = UNIT_OF[key]
    decimals = _DECIMALS[unit].get(suffix.lower() if unit == "var" else suffix)
    whole, point, part = number.partition(b".")
    if (
        decimals is None
        or not whole.isdigit()
        or not (part.isdigit() if point else True)
        or len(part) > decimals
    ):
        raise DamagedError("value", f"1-0:{key}")
    if len(whole) > _MAX_DIGITS - decimals:
        raise DamagedError("width", f"1-0:{key}")
    scaled = int(whole + part.ljust(decimals, b"0")) * NANO
    return -scaled if is_negative else scaled


def _time_s(text: bytes) -> int | None:
    """Return a time as seconds since 1970 UTC; None where it is none, or says no offset to UTC.

    `YYMMDDhhmmssX)` has its offset in X; the twelve octets of COSEM in hexadecimal have minutes of
    it, and a bit each for a clock that is invalid or in doubt.
    """
    if text.endswith((b"S)", b"W)")):
        return stamp(text[:-1])
    if form := _COSEM_TIME.fullmatch(text):
        year, month, day, *clock, west, status = (int(part, 16) for part in form.groups())
        if west == _NO_OFFSET or status & _DOUBTFUL:
            return None
        east_s = -60 * (west - (west >> 15 << 16))  # COSEM counts minutes from local time to UTC
        return seconds(year, month, day, clock, east_s)
    return None


def _identity(text: bytes) -> str:
    """Return an identifier, decoded where it is text in hexadecimal; "" where there is none."""
    printed = text.removesuffix(b")")
    try:
        decoded = shown_text(unhexlify(printed))
    except ValueError:
        decoded = ""
    return decoded or shown_text(printed)


def _shown(header: bytes) -> str:
    """Return a header; what is no printable ASCII in one that a checksum proves is `?`."""
    shown = bytes(byte if 0x20 <= byte < 0x7F else ord("?") for byte in header)  # noqa: PLR2004 (ASCII)
    return shown_text(shown)
