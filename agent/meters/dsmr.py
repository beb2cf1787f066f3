"""DSMR P1 telegrams, from received bytes to integer readings, without I/O and in bounded memory.

A telegram runs from `/` over CRLF-ended lines to `!`, the CRC in hexadecimal and CRLF. Neither `/`
nor `!` can occur in between (IEC 62056-21 keeps both out of identifications and values), so a `/`
always starts a frame: after any damage the very next telegram is read again.
Versions 4 and 5 (and the Belgian and Luxembourg ones) carry a CRC and must. Versions 2.2 and 3 have
none: allowed only where configured, and then a changed digit cannot be noticed, only a changed
shape. Sources: P1 Companion Standard 5.0.2 §5.2, §6; docs/design.md, Values and reports;
docs/faults.md, SER-01..SER-13, SER-24, SER-25.
"""

from binascii import unhexlify
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from agent.meters.crc import crc16_arc
from agent.meters.framed_meter import FramedMeter
from agent.meters.reading import Discarded, Reading, Reason, Telegram

LIMIT_BYTES = 8192
"""Longest telegram by default; real ones have 200 to 1,500 bytes."""

CrcRule = Literal["required", "absent-allowed"]

_TIME, _EQUIPMENT, _DEVICE = b"0-0:1.0.0", b"0-0:96.1.1", b"0-0:42.0.0"
_VERSIONS = (b"1-3:0.2.8", b"0-0:96.1.4")  # only telegrams that have a CRC carry a version
_REGISTERS = (
    # quantity, base unit, total, tariff registers that are summed where there is no total
    ("power", b"W", b"1-0:1.7.0", ()),
    ("power_export", b"W", b"1-0:2.7.0", ()),
    ("energy_import", b"Wh", b"1-0:1.8.0", tuple(b"1-0:1.8.%d" % n for n in (1, 2, 3, 4))),
    ("energy_export", b"Wh", b"1-0:2.8.0", tuple(b"1-0:2.8.%d" % n for n in (1, 2, 3, 4))),
)
_WANTED = {_TIME, _EQUIPMENT, _DEVICE, *_VERSIONS}.union(
    *((total, *tariffs) for _, _, total, tariffs in _REGISTERS)
)
_DECIMALS = {b"W": {b"kW)": 3, b"W)": 0}, b"Wh": {b"kWh)": 3, b"Wh)": 0}}
_MAX_DIGITS = 11  # 8 before the point, 3 after it: Swedish meters, and as IEC 62056-61 allows
_OFFSET_S = {b"S)": 7200, b"W)": 3600}  # Central European summer and winter time
_EPOCH_DAY = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class RawTelegram:
    """A telegram's bytes as received: `body` from `/` to `!`, `tail` from there to before LF."""

    body: bytes = field(repr=False)
    tail: bytes = field(repr=False)

    @property
    def size(self) -> int:
        """How many bytes were received for it, LF included."""
        return len(self.body) + len(self.tail) + 1


class P1Framer:
    """Cuts a byte stream into frames; any cut of the stream gives the same events.

    Holds at most `limit_bytes`; returns at most two events for a received byte.
    """

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self._held = b""  # an open frame, from its "/" on
        self._noise = 0  # bytes since the last frame, CR and LF not counted

    def feed(self, data: bytes) -> list[RawTelegram | Discarded]:
        """Take received bytes; return what they complete, oldest first."""
        events: list[RawTelegram | Discarded] = []
        before, *pieces = (self._held + data).split(b"/")
        self._held = b""
        self._add_noise(before, events)
        for at, piece in enumerate(pieces, start=1):
            events += self._end_noise()
            self._judge_piece(b"/" + piece, is_last=at == len(pieces), events=events)
        return events

    def silence(self) -> list[Discarded]:
        """Drop a half frame: the line has been silent for longer than a telegram pauses."""
        half = [Discarded(len(self._held), "cut")] if self._held else []
        self._held = b""
        return half + self._end_noise()

    def _judge_piece(
        self, piece: bytes, *, is_last: bool, events: list[RawTelegram | Discarded]
    ) -> None:
        """Judge one piece that begins with the only "/" in it."""
        bang = piece.find(b"!")
        end = piece.find(b"\n", bang) if bang > 0 else -1
        size = end + 1 if end > 0 else len(piece)
        if size > self._limit:
            events.append(Discarded(self._limit, "length"))
            self._add_noise(piece[self._limit :], events)
        elif end > 0:
            events.append(RawTelegram(piece[: bang + 1], piece[bang + 1 : end]))
            self._add_noise(piece[size:], events)
        elif is_last:
            self._held = piece
        else:
            events.append(Discarded(size, "cut"))

    def _add_noise(self, junk: bytes, events: list[RawTelegram | Discarded]) -> None:
        self._noise += len(junk) - junk.count(b"\r") - junk.count(b"\n")
        while self._noise >= self._limit:
            events.append(Discarded(self._limit, "noise"))
            self._noise -= self._limit

    def _end_noise(self) -> list[Discarded]:
        noise, self._noise = self._noise, 0
        return [Discarded(noise, "noise")] if noise else []


class P1Meter(FramedMeter[RawTelegram]):
    """Framer and parser of one P1 port."""

    def __init__(
        self,
        *,
        limit_bytes: int = LIMIT_BYTES,
        crc: CrcRule = "required",
        meter_id: str | None = None,
    ) -> None:
        """Read telegrams of any meter, or only of `meter_id` (as `Telegram.meter_id` gives it)."""
        super().__init__(P1Framer(limit_bytes), meter_id)
        self._crc: CrcRule = crc

    def _parse(self, frame: RawTelegram) -> Telegram | Discarded:
        return parse_telegram(frame, crc=self._crc)


def parse_telegram(frame: RawTelegram, *, crc: CrcRule) -> Telegram | Discarded:
    """Return the telegram in a frame, or why it is none.

    Registers give one reading per quantity: the total (x.8.0) where the meter prints it, else the
    sum of the tariffs it prints. Units and decimals are judged by their form, never by their value.
    """
    try:
        header, found = _lines(frame.body)
        is_optional = crc == "absent-allowed" and found.keys().isdisjoint(_VERSIONS)
        _check(frame, header, optional=is_optional)
        readings = _readings(found)
        time_s = _time_s(found[_TIME]) if _TIME in found else None
    except _DamagedError as damage:
        return Discarded(frame.size, damage.reason)
    return Telegram(_meter_id(header, found), time_s, readings)


class _DamagedError(Exception):
    """A telegram that must not be believed; never leaves this module."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason: Reason = reason


def _check(frame: RawTelegram, header: bytes, *, optional: bool) -> None:
    """Refuse a wrong checksum, and a header that is no text where no checksum proves it.

    The last line's CR counts for nothing: network bridges strip it, and the CRC ends before it.
    """
    if optional and frame.tail == b"\r":
        if not _text(header):
            raise _DamagedError("syntax")
        return
    crc = crc16_arc(frame.body)
    if frame.tail.removesuffix(b"\r") not in (b"%04X" % crc, b"%X" % crc):  # some print no zeros
        raise _DamagedError("crc")


def _lines(body: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    """Return the header after `/` and, for each wanted line, what follows its first bracket."""
    header, *lines = body[1:].split(b"\r\n")
    if not lines or lines[-1] != b"!" or not header.strip():
        raise _DamagedError("syntax")
    found: dict[bytes, bytes] = {}
    for line in lines:
        key, _, rest = line.partition(b"(")
        if key in _WANTED:
            if key in found:
                raise _DamagedError("syntax")
            found[key] = rest
    return header, found


def _readings(found: dict[bytes, bytes]) -> tuple[Reading, ...]:
    readings = []
    for quantity, unit, total, tariffs in _REGISTERS:
        keys = (total,) if total in found else [key for key in tariffs if key in found]
        if keys:
            readings.append(Reading(quantity, sum(_scaled(found[key], unit) for key in keys)))
    return tuple(readings)


def _scaled(text: bytes, unit: bytes) -> int:
    """Return `00.378*kW)` as 378: exactly, by shifting digits."""
    number, _, suffix = text.partition(b"*")
    decimals = _DECIMALS[unit].get(suffix)
    whole, point, part = number.partition(b".")
    if (
        decimals is None
        or not whole.isdigit()
        or not (part.isdigit() if point else True)
        or len(part) > decimals
    ):
        raise _DamagedError("value")
    if len(whole) > _MAX_DIGITS - decimals:
        raise _DamagedError("width")
    return int(whole + part.ljust(decimals, b"0"))


def _time_s(text: bytes) -> int | None:
    """Return `YYMMDDhhmmssX)` as seconds since 1970 UTC; None without the flag S or W."""
    digits, flag = text[:12], text[12:]
    if len(digits) != 12 or not digits.isdigit() or flag not in (b"S)", b"W)", b")"):  # noqa: PLR2004 (YYMMDDhhmmss)
        raise _DamagedError("value")
    year, month, day, hour, minute, second = (int(digits[at : at + 2]) for at in range(0, 12, 2))
    try:
        days = date(2000 + year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        raise _DamagedError("value") from None
    if hour > 23 or minute > 59 or second > 59:  # noqa: PLR2004 (a day's clock)
        raise _DamagedError("value")
    if flag == b")":
        return None
    return days * 86_400 + hour * 3600 + minute * 60 + second - _OFFSET_S[flag]


def _meter_id(header: bytes, found: dict[bytes, bytes]) -> str:
    """Return the equipment identifier, decoded where it is text in hexadecimal, else the header.

    What is no printable ASCII in a header that a checksum proves is shown as `?`.
    """
    for key in (_EQUIPMENT, _DEVICE):
        printed = found.get(key, b"").removesuffix(b")")
        try:
            text = _text(unhexlify(printed))
        except ValueError:
            text = ""
        if text := text or _text(printed):
            return text
    shown = bytes(byte if 0x20 <= byte < 0x7F else ord("?") for byte in header)  # noqa: PLR2004 (ASCII)
    return _text(shown)


def _text(raw: bytes) -> str:
    """Return printable ASCII without spaces around it, or "" for anything else."""
    text = raw.decode("ascii") if raw.isascii() else ""
    return text.strip() if text.isprintable() else ""
