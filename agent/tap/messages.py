"""The local tap: raw readings for the household's own Home Assistant, and for nobody else.

The one exception to "a reading never leaves": an owner who writes a [tap] table asks for it. Here
are its types. A LocalReading goes into a LocalMessage and a LocalMessage into the tap's own link
(agent/tap/link.py); the outgoing link takes neither, nothing here can make an Outgoing, and
neither side imports the other. Topics and payloads: Home Assistant's MQTT discovery.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agent.meters.reading import UNITS, Telegram
from edge_ldp.protocol.group_month import GroupMonth
from edge_ldp.protocol.utc import utc
from edge_ldp.version import __version__

ONLINE, OFFLINE = "online", "offline"
EXPIRE_INTERVALS = 6
LEAST_EXPIRE_S = 60
_KINDS = {  # device_class and state_class of each quantity
    "power": ("power", "measurement"),
    "power_export": ("power", "measurement"),
    "apparent_power": ("apparent_power", "measurement"),
    "apparent_power_export": ("apparent_power", "measurement"),
    "energy_import": ("energy", "total_increasing"),
    "energy_export": ("energy", "total_increasing"),
    "power_net": ("power", "measurement"),
    "reactive_power": ("reactive_power", "measurement"),
    # what a P1 port tells besides; a number follows
    "energy_import_tariff": ("energy", "total_increasing"),
    "energy_export_tariff": ("energy", "total_increasing"),
    "power_phase": ("power", "measurement"),
    "power_export_phase": ("power", "measurement"),
    "voltage_phase": ("voltage", "measurement"),
    "current_phase": ("current", "measurement"),
    "gas": ("gas", "total_increasing"),
    "water": ("water", "total_increasing"),
    "hot_water": ("water", "total_increasing"),
    "heat": ("energy", "total_increasing"),
    "cooling": ("energy", "total_increasing"),
}
_SHOWN = {"dm3": ("m³", 3), "mV": ("V", 3), "mA": ("A", 3)}
"""Units that Home Assistant has, and the decimals that make them of ours."""


@dataclass(frozen=True, slots=True)
class LocalReading:
    """One raw reading that its household asked for: `text` in a unit that Home Assistant knows."""

    quantity: str
    kind: str
    text: str = field(repr=False)
    unit: str


@dataclass(frozen=True, slots=True)
class LocalMessage:
    """What the tap's link takes; `text` may hold a reading, so no representation shows it."""

    topic: str
    text: str = field(repr=False)
    retain: bool = False


def local_readings(telegram: Telegram) -> tuple[LocalReading, ...]:
    """Return a telegram's readings for the tap."""
    told = [
        LocalReading(one.quantity, one.quantity, str(one.value), UNITS[one.quantity])
        for one in telegram.readings
    ]
    for one in (*telegram.channels, *telegram.beside):
        if one.kind in _KINDS:
            unit, decimals = _SHOWN.get(one.unit, (one.unit, 0))
            text = _with_point(one.value, decimals)
            told.append(LocalReading(f"{one.kind}_{one.number}", one.kind, text, unit))
    return tuple(told)


def _with_point(value: int, decimals: int) -> str:
    digits = str(value).rjust(decimals + 1, "0")
    return f"{digits[:-decimals]}.{digits[-decimals:]}" if decimals else digits


def availability_topic(device: str) -> str:
    """Return where the tap says whether it is there; also its will's topic."""
    return f"edge-ldp-tap/{device}/availability"


def availability(device: str, state: str) -> LocalMessage:
    """Return the tap's word on itself, retained."""
    return LocalMessage(availability_topic(device), state, retain=True)


def states(device: str, readings: Iterable[LocalReading]) -> list[LocalMessage]:
    """Return the messages of the newest readings: never retained, so no broker keeps them."""
    return [
        LocalMessage(_state_topic(device, reading.quantity), reading.text) for reading in readings
    ]


def discovery(device: str, reading: LocalReading, prefix: str, interval_s: float) -> LocalMessage:
    """Return what makes a reading's quantity a sensor of Home Assistant, retained.

    A sensor that was not renewed for six intervals counts as unavailable.
    """
    quantity, (device_class, state_class) = reading.quantity, _KINDS[reading.kind]
    return _sensor(
        device,
        quantity,
        prefix,
        {
            "name": quantity.replace("_", " ").capitalize(),
            "unit_of_measurement": reading.unit,
            "device_class": device_class,
            "state_class": state_class,
            "expire_after": max(LEAST_EXPIRE_S, int(EXPIRE_INTERVALS * interval_s)),
        },
    )


def month_messages(
    device: str, streams: Iterable[str], month: GroupMonth | None, prefix: str
) -> tuple[LocalMessage, ...]:
    """Return a sensor and its state, retained, of each stream's mean in this home's group.

    Of a stream of which nothing is told both are cleared.
    """
    told = {one.stream: one for one in month.streams} if month is not None else {}
    found = []
    for stream in streams:
        quantity, one = f"group_{stream}", told.get(stream)
        kind, text = None, ""
        if month is not None and one is not None:
            days = [f"{utc(at):%Y-%m-%d}" for at in (month.from_s, month.to_s - 1)]
            facts = {"from": days[0], "to": days[1], **one._asdict()}
            text = json.dumps(facts)
            kind = {
                "name": f"{stream} of group {month.group}, last month",
                "unit_of_measurement": one.unit,
                "value_template": "{{ value_json.mean if value_json is defined else none }}",
                "json_attributes_topic": _state_topic(device, quantity),
            }
        found.append(_sensor(device, quantity, prefix, kind))
        found.append(LocalMessage(_state_topic(device, quantity), text, retain=True))
    return tuple(found)


def _sensor(
    device: str, quantity: str, prefix: str, kind: Mapping[str, object] | None
) -> LocalMessage:
    """Return what makes a sensor of Home Assistant, or (None) takes it away."""
    name = f"edge-ldp-{device}"
    common = {
        "unique_id": f"{name}-{quantity}",
        "state_topic": _state_topic(device, quantity),
        "availability_topic": availability_topic(device),
        "device": {"identifiers": [name], "name": f"Meter {device}"},
        "origin": {"name": "edge-ldp", "sw_version": __version__},
    }
    text = "" if kind is None else json.dumps({**kind, **common})
    return LocalMessage(f"{prefix}/sensor/{name}/{quantity}/config", text, retain=True)


def _state_topic(device: str, quantity: str) -> str:
    return f"edge-ldp-tap/{device}/{quantity}"
