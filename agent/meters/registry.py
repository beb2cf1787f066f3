"""The protocols by name: how each line is set up by default, and what makes its parser.

A parser's module is imported when its protocol is asked for: the others cost no memory.
Meters of other makers plug in from outside (docs/meters.md); their names begin with PLUG_IN.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from agent.meters.config import MeterTable
    from agent.meters.reading import Asker, Meter

PLUG_IN = "plugin:"


class Line(NamedTuple):
    """Speed and form of a serial line; None: as `open_port` chooses by the speed."""

    baud: int
    data_bits: Literal[7, 8] | None = 8
    parity: Literal["N", "E", "O"] | None = "N"


class Entry(NamedTuple):
    """A protocol: its usual line, its parser, and the keys of [meter] that only it has."""

    line: Line
    make: "Callable[[MeterTable], Meter | Asker]"
    keys: frozenset[str] = frozenset()


def _dsmr(table: "MeterTable") -> "Meter":
    from agent.meters.dsmr import P1Meter  # noqa: PLC0415 (memory: one protocol at a time)

    return P1Meter(crc=table.crc, meter_id=table.meter_id)


def _sml(table: "MeterTable") -> "Meter":
    from agent.meters.sml import SmlMeter  # noqa: PLC0415 (same)

    return SmlMeter(meter_id=table.meter_id)


def _linky(table: "MeterTable") -> "Meter":
    from agent.meters.linky import LinkyMeter  # noqa: PLC0415 (same)

    return LinkyMeter(meter_id=table.meter_id)


def _readout(table: "MeterTable") -> "Meter | Asker":
    if table.mode == "request":
        from agent.meters.readout_request import RequestMeter  # noqa: PLC0415 (same)

        return RequestMeter(
            poll_ms=table.poll_ms or 10_000,
            device_address=table.device_address,
            meter_id=table.meter_id,
            bare_unit=table.bare_unit,
        )
    from agent.meters.readout import ReadoutMeter  # noqa: PLC0415 (same)

    return ReadoutMeter(meter_id=table.meter_id, bare_unit=table.bare_unit)


def _lines(table: "MeterTable") -> "Meter":
    from agent.meters.lines import LinesMeter, field  # noqa: PLC0415 (same)

    return LinesMeter(
        [field(f.field or f.column or 1, f.quantity, f.unit, f.scale) for f in table.fields]
    )


def _modbus(table: "MeterTable") -> "Asker":
    from agent.meters.modbus import ModbusMeter  # noqa: PLC0415 (same)

    return ModbusMeter(model=table.model, address=table.address, poll_ms=table.poll_ms or 1000)


PROTOCOLS = {
    "dsmr": Entry(Line(115_200, None, None), _dsmr, frozenset({"crc"})),
    "sml": Entry(Line(9600), _sml),
    "linky": Entry(Line(1200, 7, "E"), _linky),  # as delivered; the standard mode has 9600 baud
    "iec62056-21": Entry(
        Line(9600, 7, "E"),
        _readout,
        frozenset({"bare_unit", "mode", "device_address", "poll_ms"}),
    ),
    "lines": Entry(Line(9600), _lines, frozenset({"fields"})),
    "modbus": Entry(Line(9600), _modbus, frozenset({"model", "address", "poll_ms"})),
}
PLUG_IN_LINE = Line(9600)
