"""Linky and older French meters: the two modes of the TIC output, to integer readings.

A frame runs from STX to ETX and holds groups between LF and CR: label, value and a checksum of six
bits, parted by spaces (historique, 1200 baud) or tabs (standard, 9600 baud, with times). The mode
shows in each frame. The checksum does not notice a changed bit 6, but then a digit becomes a letter
and a separator or letter becomes what cannot stand there, so no reading changes unnoticed by one
bit. Power is apparent power, in VA: no meter of this kind tells watts, and none are made up.
Standard: Enedis-NOI-CPT_54E (docs/adr/0013-meters.md). docs/faults.md, SER-01..06, SER-18.
"""

import re
from dataclasses import dataclass, field

from agent.meters.framed_meter import DamagedError, FramedMeter, Framer, beside_ends
from agent.meters.reading import Discarded, Reading, Telegram
from agent.meters.told_time import SUMMER_S, WINTER_S, seconds

_STX, _ETX = 2, 3
_MARKS = re.compile(rb"[\x02\x03\x04]")  # start, end, interrupted
_PRINTABLE = re.compile(rb"[\x20-\x7e\t]*")
_IDENTITY = re.compile(rb"[0-9A-Z]{1,16}")
_MAX_DIGITS = 9
_LABEL_BYTES = 9  # SMAXSN1-1 is the longest: a changed separator makes a longer one
_TIME = re.compile(rb"([EHeh ])(\d\d)(\d\d)(\d\d)([01]\d|2[0-3])([0-5]\d)([0-5]\d)")
_OFFSET_S = {b"E": SUMMER_S, b"H": WINTER_S}  # lower case or space: the clock is in doubt
_QUANTITIES = {
    label: quantity
    for quantity, labels in (
        ("apparent_power", ("PAPP", "SINSTS")),
        ("apparent_power_export", ("SINSTI",)),
        # historique shows each tariff of the contract and no total; standard shows the total
        ("energy_import", ("BASE", "HCHC", "HCHP", "EJPHN", "EJPHPM", "EAST")),
        ("energy_import", tuple(f"BBRH{hour}J{day}" for day in "BWR" for hour in "CP")),
        ("energy_export", ("EAIT",)),
    )
    for label in labels
}
_IDENTITIES = ("ADCO", "ADSC")
_CLOCK = "DATE"


@dataclass(frozen=True, slots=True)
class TicFrame:
    """What stands between STX and ETX."""

    body: bytes = field(repr=False)

    @property
    def size(self) -> int:
        """How many bytes were received for it, STX and ETX included."""
        return len(self.body) + 2


class TicFramer(Framer[TicFrame]):
    """Holds an open frame from its STX on; CR and LF between frames are no noise."""

    def feed(self, data: bytes) -> list[TicFrame | Discarded]:
        """Take received bytes; return what they complete, oldest first."""
        buffer, at = self._held + data, 0
        self._held = b""
        events: list[TicFrame | Discarded] = []
        while at < len(buffer):
            if buffer[at] != _STX:
                start = buffer.find(b"\x02", at)
                stop = start if start >= 0 else len(buffer)
                events += self._noise.add(beside_ends(buffer[at:stop]))
                at = stop
                continue
            events += self._noise.end()
            size = self._frame(buffer, at, events)
            if not size:
                self._held = buffer[at:]
                break
            at += size
        return events

    def _frame(self, buffer: bytes, at: int, events: list[TicFrame | Discarded]) -> int:
        """Judge the frame at `at`; return its size, or 0 while it is open."""
        stop = min(len(buffer), at + self._limit)
        end = _MARKS.search(buffer, at + 1, stop)
        if end is None:
            if stop - at < self._limit:
                return 0
            events.append(Discarded(self._limit, "length"))
            return self._limit
        if buffer[end.start()] == _ETX:
            events.append(TicFrame(buffer[at + 1 : end.start()]))
            return end.end() - at
        events.append(Discarded(end.start() - at, "cut"))
        return end.start() - at


class LinkyMeter(FramedMeter[TicFrame]):
    """Framer and parser of one TIC output."""

    def __init__(self, *, meter_id: str | None = None) -> None:
        """Read telegrams of any meter, or only of `meter_id` (ADCO or ADSC)."""
        super().__init__(TicFramer(), meter_id)

    def _parse(self, frame: TicFrame) -> Telegram:
        return parse_tic(frame)


def parse_tic(frame: TicFrame) -> Telegram:
    """Return the telegram in a frame; raises DamagedError: one bad group spoils it.

    A time that cannot be read costs nothing but itself.
    """
    groups = _groups(frame.body)
    sums: dict[str, int] = {}
    for label, quantity in _QUANTITIES.items():
        if label in groups:
            sums[quantity] = sums.get(quantity, 0) + _number(label, groups[label])
    names = [_identity(label, groups[label]) for label in _IDENTITIES if label in groups]
    meter_id, time_s = "".join(names[:1]), _time_s(groups.get(_CLOCK, [b""])[0])
    return Telegram(meter_id, time_s, tuple(Reading(*found) for found in sums.items()))


def _groups(body: bytes) -> dict[str, list[bytes]]:
    """Return the fields after the label of each group that is read."""
    *lines, rest = body.split(b"\r")
    if rest or not lines:
        raise DamagedError("syntax")
    found: dict[str, list[bytes]] = {}
    for line in lines:
        group, separator = line[1:-2], line[-2:-1]
        if line[:1] != b"\n" or separator not in (b" ", b"\t"):
            raise DamagedError("syntax")
        if not _PRINTABLE.fullmatch(line, 1) or (separator == b" " and b"\t" in line):
            raise DamagedError("syntax")
        summed = sum(group) + (9 if separator == b"\t" else 0)  # a last tab counts, a space not
        if line[-1] != (summed & 0x3F) + 0x20:
            raise DamagedError("crc")
        label, *fields = group.split(separator, 1 if separator == b" " else 2)
        name = label.decode("ascii")
        if not fields or len(label) > _LABEL_BYTES or (name in found and name in _READ):
            raise DamagedError("syntax")
        if len(fields) > 1 and name != _CLOCK and not _TIME.fullmatch(fields[0]):
            raise DamagedError("value", name)
        found[name] = fields
    return found


def _number(label: str, fields: list[bytes]) -> int:
    text = fields[0]
    if len(fields) != 1 or not text.isdigit() or len(text) > _MAX_DIGITS:
        raise DamagedError("value", label)
    return int(text)


def _identity(label: str, fields: list[bytes]) -> str:
    if len(fields) != 1 or not _IDENTITY.fullmatch(fields[0]):
        raise DamagedError("value", label)
    return fields[0].decode("ascii")


def _time_s(text: bytes) -> int | None:
    """Return `SYYMMDDhhmmss` as seconds since 1970 UTC; None for none, or where it is in doubt."""
    found = _TIME.fullmatch(text)
    if found is None or found[1] not in _OFFSET_S:
        return None
    year, month, day, *clock = map(int, found.groups()[1:])
    return seconds(2000 + year, month, day, clock, _OFFSET_S[found[1]])


_READ = {*_QUANTITIES, *_IDENTITIES, _CLOCK}
