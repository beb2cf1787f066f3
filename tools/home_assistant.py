"""Home Assistant itself, without a window: what it makes of what a broker holds.

`$(sh tools/home_assistant.sh) tools/home_assistant.py PORT PLACE`: port of a broker on loopback,
an empty directory to live in. It is set up as in the browser, by the form for a broker. For each
line that it reads it prints a line of JSON:

version; entities by unique id: state, attributes; refused: discovery messages that break its
schema, or whose unit or state class is not in its tables for their device class; said: what it
logged as a warning or worse.
"""

import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import Any

import voluptuous
from homeassistant import bootstrap, config_entries, core, loader
from homeassistant.auth import auth_manager_from_config
from homeassistant.components import mqtt
from homeassistant.components.mqtt.sensor import DISCOVERY_SCHEMA, PLATFORM_SCHEMA_MODERN
from homeassistant.components.sensor.const import DEVICE_CLASS_STATE_CLASSES, DEVICE_CLASS_UNITS
from homeassistant.const import __version__
from homeassistant.helpers import entity_registry
from homeassistant.setup import async_setup_component

USER = "home-assistant"  # as in docs/console.md, MQTT and Home Assistant
PREFIX = "homeassistant"


class Heard(logging.Handler):
    """What was logged, as lines."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record, and the error that it is about."""
        error = record.exc_info[1] if record.exc_info else None
        told = "" if error is None else f": {error!r}"
        self.lines.append(f"{record.name}: {record.getMessage()}{told}")


def faults(text: str) -> list[str]:
    """Return what is wrong with a sensor's discovery message.

    The schema for discovery drops keys that it does not know; the one for files refuses them.
    """
    try:
        sensor = json.loads(text)
        DISCOVERY_SCHEMA(sensor)
        PLATFORM_SCHEMA_MODERN(sensor)
    except (ValueError, voluptuous.Invalid) as exc:
        return [str(exc)]
    found = []
    kind = sensor.get("device_class")
    for key, table in (
        ("unit_of_measurement", DEVICE_CLASS_UNITS),
        ("state_class", DEVICE_CLASS_STATE_CLASSES),
    ):
        value = sensor.get(key)
        if kind in table and value not in table[kind] and (key, value) != ("state_class", None):
            found.append(f"{key} {value} is none of {kind}")
    return found


async def started(place: str) -> core.HomeAssistant:
    """Return it with its registries loaded; its web server does not listen."""
    hass = core.HomeAssistant(place)
    hass.config.skip_pip = True
    loader.async_setup(hass)
    hass.config_entries = config_entries.ConfigEntries(hass, {})
    await bootstrap.async_load_base_functionality(hass)
    hass.auth = await auth_manager_from_config(hass, [], [])
    await async_setup_component(hass, "homeassistant", {})
    await hass.async_start()
    return hass


async def connect(hass: core.HomeAssistant, port: int) -> None:
    """Fill in its form for a broker; raises RuntimeError if it does not take that."""
    broker = {"broker": "127.0.0.1", "port": port, "username": USER, "password": "-"}
    flow = hass.config_entries.flow
    form = await flow.async_init(mqtt.DOMAIN, context={"source": config_entries.SOURCE_USER})
    done = await flow.async_configure(form["flow_id"], broker)
    await hass.async_block_till_done()
    (entry,) = hass.config_entries.async_entries(mqtt.DOMAIN) or (None,)
    if entry is None or entry.state is not config_entries.ConfigEntryState.LOADED:
        raise RuntimeError(f"the form came to {done}")


def entities(hass: core.HomeAssistant) -> dict[str, Any]:
    """Return the state and attributes of each entity that MQTT brought, by unique id."""
    found = {}
    for entry in entity_registry.async_get(hass).entities.values():
        state = hass.states.get(entry.entity_id)
        if state is not None:
            found[entry.unique_id] = {"state": state.state, "attributes": dict(state.attributes)}
    return found


async def main(port: int, place: str) -> None:
    """Tell what it shows for each line of standard input, until that ends."""
    heard, refused = Heard(), []
    logging.getLogger("homeassistant").addHandler(heard)
    hass = await started(place)
    await connect(hass, port)

    @core.callback
    def judge(message: mqtt.ReceiveMessage) -> None:
        if message.topic.endswith("/config") and message.payload:
            refused.extend(f"{message.topic}: {fault}" for fault in faults(message.payload))

    await mqtt.async_subscribe(hass, f"{PREFIX}/sensor/#", judge)
    while await asyncio.to_thread(sys.stdin.readline):
        shown = {"version": __version__, "entities": entities(hass)}
        print(json.dumps({**shown, "refused": refused, "said": heard.lines}), flush=True)
    await hass.async_stop(force=True)


if __name__ == "__main__":
    Path(sys.argv[2], "configuration.yaml").touch()
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
