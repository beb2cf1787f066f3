"""Gas, water and heat meters behind a P1 port, tariffs and phases: for the household to see.

Only gas may be a stream, of sums by the hour; nothing here refuses a telegram: what cannot be read
is left out. Sources: P1 Companion Standard 5.0.2 §6.12 (registers 0-n:24.*), and 2.2 (24.3.0, the
number on a line of its own); e-MUCS P1 1.7 (24.2.3). docs/faults.md, SER-36.
"""

import re
from collections.abc import Sequence

from agent.meters.reading import SubMeter
from agent.meters.told_time import stamp

_LINE = re.compile(rb"0-([1-9]):24\.(1\.0|2\.1|2\.3|3\.0)\((.*)\)")
_DATED = re.compile(rb"([^()]*)\)\(([0-9]{1,8})(?:\.([0-9]{1,3}))?\*(m3|GJ|MJ)")
_OLD = re.compile(rb"([^()]*)\).*\(0-[1-9]:24\.2\.[0-9]\)\((m3|GJ|MJ)")
_OLD_NUMBER = re.compile(rb"\(([0-9]{1,8})(?:\.([0-9]{1,3}))?\)")
_KINDS = {
    3: "gas",
    **dict.fromkeys((4, 12), "heat"),
    **dict.fromkeys((10, 11), "cooling"),
    **dict.fromkeys((6, 21), "hot_water"),
    **dict.fromkeys((7, 22), "water"),
}
_MOST_DIGITS = 3  # of a kind
_BESIDE = re.compile(
    rb"1-0:(?:([12])\.8\.([1-9])|([2-7])([12])\.7\.0)\(([0-9]{1,8})(?:\.([0-9]{1,3}))?\*(kWh|kW|V|A)\)"
)
_REGISTERS = {b"1": "energy_import_tariff", b"2": "energy_export_tariff"}
_PHASES = {  # by whether the group is of power, and its last digit
    (b"kW", b"1"): "power_phase",
    (b"kW", b"2"): "power_export_phase",
    (b"V", b"2"): "voltage_phase",
    (b"A", b"1"): "current_phase",
}
_UNITS_BESIDE = {b"kWh": "Wh", b"kW": "W", b"V": "mV", b"A": "mA"}
_UNITS = {b"m3": ("dm3", 3), b"GJ": ("MJ", 3), b"MJ": ("MJ", 0)}


def channels(lines: Sequence[bytes]) -> tuple[SubMeter, ...]:
    """Return what each meter behind showed, and when, in whole dm³ or MJ.

    An unknown kind is `other`.
    """
    kinds, numbers = dict[int, str](), dict[int, tuple[int, str, int | None]]()
    for at, line in enumerate(lines):
        found = _LINE.fullmatch(line)
        if found is None:
            continue
        channel, what, inside = int(found[1]), found[2], found[3]
        if what == b"1.0":
            is_kind = inside.isdigit() and len(inside) <= _MOST_DIGITS
            kinds[channel] = _KINDS.get(int(inside), "other") if is_kind else "other"
        elif what == b"3.0":
            unit, text = (
                _OLD.fullmatch(inside),
                _OLD_NUMBER.fullmatch(b"".join(lines[at + 1 : at + 2])),
            )
            if unit and text:
                number = _scaled(text[1], text[2], unit[2])
                numbers.setdefault(channel, (*number, stamp(unit[1])))
        elif text := _DATED.fullmatch(inside):
            number = _scaled(text[2], text[3], text[4])
            numbers.setdefault(channel, (*number, stamp(text[1])))
    return tuple(
        SubMeter(channel, kinds.get(channel, "other"), *number)
        for channel, number in sorted(numbers.items())
    )


def beside(lines: Sequence[bytes]) -> tuple[SubMeter, ...]:
    """Return each tariff's registers and each phase's power, voltage and current, as told first."""
    found = dict[tuple[str, int], SubMeter]()
    for line in lines:
        if (form := _BESIDE.fullmatch(line)) is None:
            continue
        energy, tariff, tens, ones, whole, part, unit = form.groups()
        if energy:
            kind, number = (_REGISTERS[energy] if unit == b"kWh" else None), int(tariff)
        else:
            kind, number = _PHASES.get((unit, ones)), int(tens) // 2
        if kind is not None and (energy or int(tens) % 2 == (unit != b"kW")):
            value = int(whole + (part or b"").ljust(3, b"0"))
            found.setdefault((kind, number), SubMeter(number, kind, value, _UNITS_BESIDE[unit]))
    return tuple(found.values())


def _scaled(whole: bytes, part: bytes | None, shown: bytes) -> tuple[int, str]:
    unit, decimals = _UNITS[shown]
    digits = (part or b"").ljust(decimals, b"0")[:decimals]
    return int(whole + digits), unit
