"""IEC 62056-21 readouts that a meter pushes by itself (mode D), to integer readings.

A telegram runs from `/` over CRLF-ended lines of data sets `address(value*unit)` to `!` and CRLF.
There is no checksum: a changed shape is noticed, a changed digit cannot be. The line's parity is
all the protection there is: what breaks it comes as NUL and is refused.
Standard: IEC 62056-21, mode D (docs/adr/0013-meters.md).
docs/faults.md, SER-01..05, SER-13, SER-14.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Literal

from agent.meters.framed_meter import DamagedError, FramedMeter, shown_text
from agent.meters.obis import registers, status_word
from agent.meters.obis.dsmr import P1Framer, RawTelegram
from agent.meters.reading import Telegram
from agent.meters.scale import printed

BareUnit = Literal["refuse", "Wh", "kWh"]
"""What an energy register printed without unit is in; some meters' manuals say it."""

_EXPONENTS = {
    "W": {b"W": 0, b"kW": 3, b"MW": 6},
    "Wh": {b"Wh": 0, b"kWh": 3, b"MWh": 6},
    "var": {b"var": 0, b"kvar": 3},
}
_REACTIVE = re.compile(rb"[+-]?[0-9]{1,9}(?:\.[0-9]{1,6})?\*k?var", re.IGNORECASE)
_SETS = re.compile(rb"([^()]*)\(([^()]*)\)")
_PRESENT = (b"", b"255")  # *F: others are values of earlier months
_ELECTRICITY = re.compile(rb"(?:1-\d{1,3})?")  # A-B
_HOUSE = re.compile(rb"(?:0-0|1-\d{1,3})?")  # of the meter itself, not of a gas meter behind it
_IDENTITIES = ("96.1.0", "96.1.255", "96.1.1", "0.0.0", "C.1.0", "C.1", "0.0")
_ID = "id:"
_STATUS_WORD = re.compile(rb"[0-9A-Fa-f]{4,16}")


class ReadoutMeter(FramedMeter[RawTelegram]):
    """Framer and parser of one meter that pushes its readout."""

    def __init__(self, *, meter_id: str | None = None, bare_unit: BareUnit = "refuse") -> None:
        """Read telegrams of any meter, or only of `meter_id` (as `Telegram.meter_id` gives it)."""
        super().__init__(P1Framer(), meter_id)
        self._bare_unit: BareUnit = bare_unit

    def _parse(self, frame: RawTelegram) -> Telegram:
        if frame.tail != b"\r":
            raise DamagedError("syntax")
        return parse_readout(frame.body, self._bare_unit)


def parse_readout(body: bytes, bare_unit: BareUnit) -> Telegram:
    """Return the telegram from `/` to `!`; raises DamagedError where there is none."""
    header, *lines = body[:-1].split(b"\r\n")
    identity = shown_text(header[1:])
    if not lines or not identity:
        raise DamagedError("syntax")
    shown = _registers(lines)

    def value(key: str) -> int:
        return _scaled(key, shown[key], bare_unit)

    found = registers.electricity(shown, value, _signs(shown))
    names = [name for key in _IDENTITIES if (name := shown_text(shown.get(_ID + key, b"")))]
    return Telegram(
        (*names, identity)[0], None, found.readings, found.withheld, (*names[1:], identity)
    )


def _registers(lines: list[bytes]) -> dict[str, bytes]:
    """Return what stands in each data set of the present; identities under their marked names."""
    shown: dict[str, bytes] = {}
    of_now: set[str] | None = None  # once a list of past values began: what stood above it
    for address, value in _sets(lines):
        medium, _, rest = address.rpartition(b":")
        number, _, past = rest.partition(b"*")
        key = number.decode("latin-1")
        if f"{key}.0" in registers.UNIT_OF:  # `16.7` is 16.7.0: the last group may be left out
            key += ".0"
        if of_now is None and registers.is_profile(key):
            of_now = set(shown)
        if past not in _PRESENT:
            continue
        if key in _IDENTITIES and _HOUSE.fullmatch(medium):
            shown.setdefault(_ID + key, value)
        elif key and _ELECTRICITY.fullmatch(medium):
            if (
                key in registers.UNIT_OF
                and key not in registers.JUDGED
                and not _REACTIVE.fullmatch(value)
            ):
                continue
            if key in shown and key in registers.JUDGED and (of_now is None or key not in of_now):
                raise DamagedError("syntax", key)
            shown.setdefault(key, value)
    return shown


def _sets(lines: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield (address, value) of each data set; a line may hold several."""
    for line in lines:
        at = 1 if line[:1] == b"\x02" else 0  # the start of the text, where a mode has it
        while at < len(line):
            found = _SETS.match(line, at)
            if found is None:
                raise DamagedError("syntax")
            yield found[1], found[2]
            at = found.end()


def _signs(shown: Mapping[str, bytes]) -> registers.Signs:
    """Return which way the power goes, and which phases there are, as far as the meter says it."""
    word = shown.get(registers.STATUS, b"")
    words = [int(word, 16)] if _STATUS_WORD.fullmatch(word) else []
    return registers.Signs(
        status_word.direction(words),
        has_others=status_word.has_other_phases(words) or any(map(registers.is_other_phase, shown)),
    )


def _scaled(key: str, value: bytes, bare_unit: BareUnit) -> int:
    unit = registers.UNIT_OF[key]
    text, _, suffix = value.partition(b"*")
    if not suffix and unit == "Wh" and bare_unit != "refuse":
        suffix = bare_unit.encode()
    exponent = _EXPONENTS[unit].get(suffix.lower() if unit == "var" else suffix)
    scaled = None if exponent is None else printed(text, exponent, signed=unit != "Wh")
    if scaled is None:
        raise DamagedError("value", key)
    return scaled
