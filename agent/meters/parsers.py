"""The parser for a [meter] table. Its module is imported now: the others cost no memory."""

from collections.abc import Callable

from agent.meters.port_names import source_of
from agent.meters.reading import Asker, Meter
from agent.meters.section import MeterTable


def p1_meter(table: MeterTable, *, beside: bool = False) -> Meter:
    """Return the parser of a P1 port; `beside`: telling tariffs, phases and volts besides."""
    from agent.meters.obis.dsmr import P1Meter  # noqa: PLC0415 (memory: one protocol at a time)

    return P1Meter(crc=table.crc, meter_id=table.meter_id, beside=beside)


def _sml(table: MeterTable) -> Meter:
    from agent.meters.obis.sml import SmlMeter  # noqa: PLC0415 (same)

    return SmlMeter(meter_id=table.meter_id)


def _linky(table: MeterTable) -> Meter:
    from agent.meters.linky import LinkyMeter  # noqa: PLC0415 (same)

    return LinkyMeter(meter_id=table.meter_id)


def _readout(table: MeterTable) -> Meter | Asker:
    if table.mode == "request":
        from agent.meters.obis.readout_request import RequestMeter  # noqa: PLC0415 (same)

        return RequestMeter(
            poll_ms=table.poll_ms or 10_000,
            device_address=table.device_address,
            meter_id=table.meter_id,
            bare_unit=table.bare_unit,
            sign_on_baud=table.line.baud,
            keep_speed=table.keep_speed,
        )
    from agent.meters.obis.readout import ReadoutMeter  # noqa: PLC0415 (same)

    return ReadoutMeter(meter_id=table.meter_id, bare_unit=table.bare_unit)


def _lines(table: MeterTable) -> Meter:
    from agent.meters import lines  # noqa: PLC0415 (same)

    return lines.LinesMeter(
        [lines.field(f.field or f.column or 1, f.quantity, f.unit, f.scale) for f in table.fields],
        limit_bytes=lines.LIMIT_BYTES if source_of(table.port) is None else lines.PAGE_BYTES,
    )


def modbus_meter(table: MeterTable, *, prove: bool = False) -> Asker:
    """Return the parser of a Modbus meter; with `prove` it reads no other model than the table's.

    Raises ConfigError for a file of the owner's that is no model's table.
    """
    from agent.meters.modbus import models  # noqa: PLC0415 (same)
    from agent.meters.modbus.frames import RtuFrames, TcpFrames  # noqa: PLC0415 (same)
    from agent.meters.modbus.meter import ModbusMeter  # noqa: PLC0415 (same)

    frames = TcpFrames if table.framing == "tcp" else RtuFrames
    return ModbusMeter(
        models.own(table.model_file) if table.model_file else models.shipped(table.model),
        frames(table.address),
        poll_ms=table.poll_ms or 1000,
        prove=prove,
    )


PARSERS: dict[str, Callable[[MeterTable], Meter | Asker]] = {
    "dsmr": p1_meter,
    "sml": _sml,
    "linky": _linky,
    "iec62056-21": _readout,
    "lines": _lines,
    "modbus": modbus_meter,
}
