"""The protocols by name, and how each line is set up by default; `parsers` makes their parsers.

Meters of other makers plug in from outside (docs/meters.md); their names begin with PLUG_IN.
"""

from typing import Literal, NamedTuple

from agent.meters.reading import GAS

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


ACTIVE = (
    *("power", "power_export", "energy_import", "energy_export"),
    *("power_net", "reactive_power"),
)
APPARENT = ("apparent_power", "apparent_power_export", "energy_import", "energy_export")

PROTOCOLS = {
    "dsmr": Entry(Line(115_200, None, None), (*ACTIVE, GAS), frozenset({"crc"})),
    "sml": Entry(Line(9600), ACTIVE),
    "linky": Entry(Line(1200, 7, "E"), APPARENT),  # as delivered; the standard mode has 9600 baud
    "iec62056-21": Entry(
        Line(9600, 7, "E"),
        ACTIVE,
        frozenset({"bare_unit", "mode", "device_address", "keep_speed", "poll_ms"}),
    ),
    "lines": Entry(Line(9600), (), frozenset({"fields"})),
    "modbus": Entry(
        Line(9600),
        ACTIVE,
        frozenset({"model", "model_file", "address", "framing", "poll_ms"}),
    ),
}
SIGN_ON_LINE = Line(300, 7, "E")
"""How a meter of modes B and C is signed on to."""

MODELS = {
    "dtsu666": Line(9600),
    "orno-we-514": Line(9600, 8, "E"),
    "orno-we-516": Line(9600, 8, "E"),
    "sdm120": Line(9600),  # new ones come with 2400 baud
    "sdm230": Line(9600),
    "sdm630": Line(9600),
    "sdm72": Line(9600),
    "sdm72v2": Line(9600),
}
"""Modbus meters whose tables are shipped (modbus/models/), and how each line is set up."""

PLUG_IN_LINE = Line(9600)
