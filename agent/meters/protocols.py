"""The protocols by name, and how each line is set up by default; `parsers` makes their parsers.

Meters of other makers plug in from outside (docs/meters.md); their names begin with PLUG_IN.
"""

from typing import Literal, NamedTuple

PLUG_IN = "plugin:"


class Line(NamedTuple):
    """Speed and form of a serial line; None: as `open_port` chooses by the speed."""

    baud: int
    data_bits: Literal[7, 8] | None = 8
    parity: Literal["N", "E", "O"] | None = "N"


class Entry(NamedTuple):
    """A protocol: its usual line, what its telegrams may show, the keys of [meter] only it has.

    `quantities` is empty where the configuration names them ([[meter.fields]]).
    """

    line: Line
    quantities: tuple[str, ...]
    keys: frozenset[str] = frozenset()


ACTIVE = ("power", "power_export", "energy_import", "energy_export")
APPARENT = ("apparent_power", "apparent_power_export", "energy_import", "energy_export")

PROTOCOLS = {
    "dsmr": Entry(Line(115_200, None, None), ACTIVE, frozenset({"crc"})),
    "sml": Entry(Line(9600), ACTIVE),
    "linky": Entry(Line(1200, 7, "E"), APPARENT),  # as delivered; the standard mode has 9600 baud
    "iec62056-21": Entry(
        Line(9600, 7, "E"),
        ACTIVE,
        frozenset({"bare_unit", "mode", "device_address", "poll_ms"}),
    ),
    "lines": Entry(Line(9600), (), frozenset({"fields"})),
    "modbus": Entry(Line(9600), ACTIVE, frozenset({"model", "address", "poll_ms"})),
}
PLUG_IN_LINE = Line(9600)
