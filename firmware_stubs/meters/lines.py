"""Sensors that print lines, as Arduino sketches do: text with names, and JSON."""

import json
from typing import Any

from firmware_stubs.meters.telegram import Display, kilo


def text_line(**shown: Any) -> bytes:
    """Return `power=…,export=…,import_kwh=…,export_kwh=…` and CRLF."""
    now = Display(**shown)
    return (
        f"power={now.power_w},export={now.export_power_w},"
        f"import_kwh={kilo(now.import_wh)},export_kwh={kilo(now.export_wh)}\r\n"
    ).encode("ascii")


def json_line(**shown: Any) -> bytes:
    """Return the same as JSON, as Tasmota nests it."""
    now = Display(**shown)
    energy = {
        "Power": now.power_w,
        "Export": now.export_power_w,
        "In": now.import_wh,
        "Out": now.export_wh,
    }
    line = json.dumps({"Time": now.time_s, "Id": now.meter_id, "ENERGY": energy})
    return line.encode("ascii") + b"\r\n"
