"""IEC 62056-21 readouts that a meter pushes by itself (mode D), to integer readings.

A telegram runs from `/` over CRLF-ended lines of data sets `address(value*unit)` to `!` and CRLF.
There is no checksum: a changed shape is noticed, a changed digit cannot be. The line's parity is
all the protection there is: what breaks it comes as NUL and is refused.
Standard: IEC 62056-21, mode D (docs/adr/0013-meters.md).
docs/faults.md, SER-01..05, SER-13, SER-14.
"""

import re
from collections.abc import Iterator
from typing import Literal

from agent.meters.dsmr import LIMIT_BYTES, P1Framer, RawTelegram
from agent.meters.framed_meter import FramedMeter
from agent.meters.obis import UNIT_OF, electricity
from agent.meters.reading import Discarded, Reason, Telegram
from agent.meters.scale import printed

BareUnit = Literal["refuse", "Wh", "kWh"]
"""What an energy register printed without unit is in; some meters' manuals say it."""

_EXPONENTS = {"W": {b"W": 0, b"kW": 3, b"MW": 6}, "Wh": {b"Wh": 0, b"kWh": 3, b"MWh": 6}}
_SETS = re.compile(rb"([^()]*)\(([^()]*)\)")
_PRESENT = (b"", b"255")  # *F: others are values of earlier months
_ELECTRICITY = re.compile(rb"(?:1-\d{1,3})?")  # A-B
_IDENTITIES = ("96.1.0", "96.1.255", "0.0.0", "C.1.0", "C.1")


class ReadoutMeter(FramedMeter[RawTelegram]):
    """Framer and parser of one meter that pushes its readout."""

    def __init__(
        self,
        *,
        limit_bytes: int = LIMIT_BYTES,
        meter_id: str | None = None,
        bare_unit: BareUnit = "refuse",
    ) -> None:
        """Read telegrams of any meter, or only of `meter_id` (as `Telegram.meter_id` gives it)."""
        super().__init__(P1Framer(limit_bytes), meter_id)
        self._bare_unit: BareUnit = bare_unit

    def _parse(self, frame: RawTelegram) -> Telegram | Discarded:
        if frame.tail != b"\r":
            return Discarded(frame.size, "syntax")
        return parse_readout(frame.body, frame.size, bare_unit=self._bare_unit)


def parse_readout(body: bytes, size: int, *, bare_unit: BareUnit) -> Telegram | Discarded:
    """Return the telegram from `/` to `!`, or why the `size` bytes it came in are none."""
    try:
        header, *lines = body[:-1].split(b"\r\n")
        identity = _text(header[1:])
        if not lines or not identity:
            return Discarded(size, "syntax")
        found: dict[str, int] = {}
        names: dict[str, str] = {}
        for address, value in _sets(lines):
            _keep_known(address, value, found, names, bare_unit)
    except _DamagedError as damage:
        return Discarded(size, damage.reason)
    meter_id = next((names[key] for key in _IDENTITIES if names.get(key)), identity)
    return Telegram(meter_id, None, electricity(found))


class _DamagedError(Exception):
    """A readout that must not be believed; never leaves this module."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason: Reason = reason


def _sets(lines: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield (address, value) of each data set; a line may hold several."""
    for line in lines:
        at = 1 if line[:1] == b"\x02" else 0  # the start of the text, where a mode has it
        while at < len(line):
            found = _SETS.match(line, at)
            if found is None:
                raise _DamagedError("syntax")
            yield found[1], found[2]
            at = found.end()


def _keep_known(
    address: bytes, value: bytes, found: dict[str, int], names: dict[str, str], bare_unit: BareUnit
) -> None:
    """Keep a data set that is a register or an identity."""
    medium, _, rest = address.rpartition(b":")
    number, _, past = rest.partition(b"*")
    key = number.decode("latin-1")
    if f"{key}.0" in UNIT_OF:  # `16.7` is 16.7.0: the last group may be left out
        key += ".0"
    if past not in _PRESENT:
        return
    if key in _IDENTITIES:
        names[key] = _text(value)
    elif key in UNIT_OF and _ELECTRICITY.fullmatch(medium):
        if key in found:
            raise _DamagedError("syntax")
        found[key] = _scaled(value, UNIT_OF[key], bare_unit)


def _scaled(value: bytes, unit: str, bare_unit: BareUnit) -> int:
    text, _, suffix = value.partition(b"*")
    if not suffix and unit == "Wh" and bare_unit != "refuse":
        suffix = bare_unit.encode()
    exponent = _EXPONENTS[unit].get(suffix)
    scaled = None if exponent is None else printed(text, exponent, signed=unit == "W")
    if scaled is None:
        raise _DamagedError("value")
    return scaled


def _text(raw: bytes) -> str:
    """Return printable ASCII without spaces around it, or "" for anything else."""
    text = raw.decode("ascii") if raw.isascii() else ""
    return text.strip() if text.isprintable() else ""
