"""Sensors that print lines, as Arduino sketches do: text with names, and JSON."""

import json


def text_line(  # noqa: PLR0913 (one interface for all meters)
    *,
    meter_id: str,  # noqa: ARG001 (lines carry none)
    time_s: int,  # noqa: ARG001 (same)
    import_wh: int,
    power_w: int,
    export_wh: int = 0,
    export_power_w: int = 0,
) -> bytes:
    """Return `power=…,export=…,import_kwh=…,export_kwh=…` and CRLF."""
    return (
        f"power={power_w},export={export_power_w},"
        f"import_kwh={_kilo(import_wh)},export_kwh={_kilo(export_wh)}\r\n"
    ).encode("ascii")


def json_line(  # noqa: PLR0913 (one interface for all meters)
    *,
    meter_id: str,
    time_s: int,
    import_wh: int,
    power_w: int,
    export_wh: int = 0,
    export_power_w: int = 0,
) -> bytes:
    """Return the same as JSON, as Tasmota nests it."""
    energy = {"Power": power_w, "Export": export_power_w, "In": import_wh, "Out": export_wh}
    line = json.dumps({"Time": time_s, "Id": meter_id, "ENERGY": energy})
    return line.encode("ascii") + b"\r\n"


def _kilo(number: int) -> str:
    return f"{number // 1000}.{number % 1000:03d}"
