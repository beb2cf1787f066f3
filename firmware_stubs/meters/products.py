"""What products in a network make of a meter's values: each its own words, units and decimals.

Written apart from the agent's table, from the makers' documents, so that each checks the other.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from firmware_stubs.meters.player import Show
from firmware_stubs.meters.telegram import Display, p1_telegram

Words = Callable[[int, int, int], object]
"""Net power in W, and the registers in Wh: what a product says of them."""


class Twin(NamedTuple):
    """Where a product tells: a page's path or a topic; and how its maker's own thing behaves."""

    show: Show
    path: str = ""
    topic: str = ""
    is_kept: bool = False  # by the broker
    gives_token: bool = False  # over TLS alone, while its button is pressed


def _says(words: Words) -> Show:
    def show(**shown: Any) -> bytes:
        now = Display(**shown)
        said = words(now.net_w, now.import_wh, now.export_wh)
        return json.dumps(said).encode("ascii")

    return show


def _gen2(net_w: int, import_wh: int, export_wh: int) -> object:
    phases: dict[str, Any] = {"id": 0}
    for phase, power in zip("abc", _thirds(net_w), strict=True):
        phases |= {f"{phase}_voltage": 236.1, f"{phase}_act_power": power, f"{phase}_pf": 1.0}
    phases |= {"n_current": None, "total_act_power": float(net_w), "user_calibrated_phase": []}
    energies = {"id": 0, "total_act": float(import_wh), "total_act_ret": float(export_wh)}
    return {
        "ble": {},
        "cloud": {"connected": False},
        "em:0": phases,
        "emdata:0": energies,
        "sys": {"mac": "A00000000001", "unixtime": 1707930973},
    }


def _gen1(net_w: int, import_wh: int, export_wh: int) -> object:
    """Three clamps, of which the second and third are of nothing."""
    emeters = [
        {"power": power, "pf": 0.9, "voltage": 231.1, "is_valid": True} for power in (net_w, 0, 0)
    ]
    emeters[0] |= {"total": float(import_wh), "total_returned": float(export_wh)}
    wifi = {"connected": True, "ssid": "home"}
    return {"wifi_sta": wifi, "emeters": emeters, "total_power": float(net_w), "fs_mounted": True}


def _tasmota(net_w: int, import_wh: int, _: int) -> object:
    energy = {"TotalStartTime": "2020-10-21T22:15:00", "Total": _kilo(import_wh), "Power": net_w}
    return {"Time": "2022-01-11T21:57:38", "ENERGY": {**energy, "Factor": 1.0, "Voltage": 233}}


def _tasmota_sml(net_w: int, import_wh: int, export_wh: int) -> object:
    told = {"Total_in": _kilo(import_wh), "Total_out": _kilo(export_wh), "Power_curr": net_w}
    return {"Time": "2024-03-01T10:00:05", "SML": told}


def _ams(net_w: int, _: int, __: int) -> object:
    told = {"P": max(net_w, 0), "Q": 0, "PO": max(-net_w, 0), "QO": 120, "U1": 231.5}
    return {"id": "00112233", "name": "ams-1f2e", "up": 1234, "data": {"lv": "KFM_001", **told}}


def _zigbee(net_w: int, import_wh: int, _: int) -> object:
    return {"energy": _kilo(import_wh), "linkquality": 120, "power": net_w, "voltage": 230}


def _thirds(whole: int) -> tuple[int, int, int]:
    part = whole // 3
    return part, part, whole - 2 * part


def _kilo(number: int) -> float:
    return number / 1000  # three decimals at most: printed as they are


TWINS = {
    "homewizard-v1": Twin(p1_telegram, path="/api/v1/telegram"),
    "homewizard-v2": Twin(p1_telegram, path="/api/telegram", gives_token=True),
    "shelly-gen2": Twin(_says(_gen2), path="/rpc/Shelly.GetStatus"),
    "shelly-gen1": Twin(_says(_gen1), path="/status"),
    "tasmota": Twin(_says(_tasmota), topic="tele/meter/SENSOR"),
    "tasmota-sml": Twin(_says(_tasmota_sml), topic="tele/meter/SENSOR"),
    "esphome": Twin(p1_telegram, topic="meter/sensor/telegram/state", is_kept=True),
    "ams-reader": Twin(_says(_ams), topic="meter/power"),
    "zigbee2mqtt": Twin(_says(_zigbee), topic="zigbee2mqtt/meter"),
}
"""Products by the name that `simulate meter --product` has. ESPHome's TCP is `--listen` alone."""
