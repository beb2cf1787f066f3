"""The local tap: raw readings for the household's own Home Assistant, and for nobody else.

The one exception to "a reading never leaves": an owner who writes a [tap] table asks for it. Here
are its types. A LocalReading goes into a LocalMessage and a LocalMessage into the tap's own link
(agent/tap/link.py); the outgoing link takes neither, nothing here can make an Outgoing, and
neither side imports the other. Topics and payloads: Home Assistant's MQTT discovery.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from agent.meters.reading import UNITS, Telegram
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
}


@dataclass(frozen=True, slots=True)
class LocalReading:
    """One raw reading that its household asked for, in the unit of its quantity."""

    quantity: str
    value: int = field(repr=False)


@dataclass(frozen=True, slots=True)
class LocalMessage:
    """What the tap's link takes; `text` may hold a reading, so no representation shows it."""

    topic: str
    text: str = field(repr=False)
    retain: bool = False


def local_readings(telegram: Telegram) -> tuple[LocalReading, ...]:
    """Return a telegram's readings for the tap."""
    return tuple(LocalReading(reading.quantity, reading.value) for reading in telegram.readings)


def availability_topic(device: str) -> str:
    """Return where the tap says whether it is there; also its will's topic."""
    return f"edge-ldp-tap/{device}/availability"


def availability(device: str, state: str) -> LocalMessage:
    """Return the tap's word on itself, retained."""
    return LocalMessage(availability_topic(device), state, retain=True)


def states(device: str, readings: Iterable[LocalReading]) -> list[LocalMessage]:
    """Return the messages of the newest readings: never retained, so no broker keeps them."""
    return [
        LocalMessage(_state_topic(device, reading.quantity), str(reading.value))
        for reading in readings
    ]


def discovery(device: str, quantity: str, prefix: str, interval_s: float) -> LocalMessage:
    """Return what makes a quantity a sensor of Home Assistant, retained.

    A sensor that was not renewed for six intervals counts as unavailable.
    """
    device_class, state_class = _KINDS[quantity]
    name = f"edge-ldp-{device}"
    text = json.dumps(
        {
            "name": quantity.replace("_", " ").capitalize(),
            "unique_id": f"{name}-{quantity}",
            "state_topic": _state_topic(device, quantity),
            "unit_of_measurement": UNITS[quantity],
            "device_class": device_class,
            "state_class": state_class,
            "availability_topic": availability_topic(device),
            "expire_after": max(LEAST_EXPIRE_S, int(EXPIRE_INTERVALS * interval_s)),
            "device": {"identifiers": [name], "name": f"Meter {device}"},
            "origin": {"name": "edge-ldp", "sw_version": __version__},
        }
    )
    return LocalMessage(f"{prefix}/sensor/{name}/{quantity}/config", text, retain=True)


def _state_topic(device: str, quantity: str) -> str:
    return f"edge-ldp-tap/{device}/{quantity}"
