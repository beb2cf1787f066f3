"""Home Assistant itself takes what is announced, shows its figures and finds what is wrong.

Its real MQTT integration reads a real broker, with the rights of docs/console.md; its schema and
its tables of units and classes judge each discovery message besides. Anything that it logs is a
fault.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.meters.obis.dsmr import P1Meter
from agent.meters.reading import UNITS, Reading, Telegram
from agent.tap.messages import (
    OFFLINE,
    ONLINE,
    LocalMessage,
    availability,
    discovery,
    local_readings,
    states,
)
from aggregator.answers.announcement import announcements
from aggregator.config import AnnounceTable
from aggregator.store.administration.registry import retire_stream
from aggregator.store.opening import open_reader, open_session
from edge_ldp.service.mqtt import Broker, open_link
from firmware_stubs.meters.telegram import full_p1_telegram
from tests.aggregator.console.small_fleet import (
    END_S,
    Fleet,
    add_plans,
    add_reports,
    add_sums,
    make_fleet,
)
from tests.integration.home_assistant import HomeAssistant, Shown, home_assistant
from tests.integration.test_announced import ANNOUNCE, SUM, fleet_at, retained, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
HOUR, DAY = "edge-ldp-demo-power-hour", "edge-ldp-demo-power-day"
ON = AnnounceTable(delay_s=0, discovery="homeassistant")
MANY = "W kW Wh kWh VA °C"  # power, power1, …, power5


def announced(fleet: Fleet) -> dict[str, dict[str, Any] | None]:
    with closing(open_reader(fleet.config, "test")) as reader:
        return announcements(reader, fleet.config, ON, END_S).announced


async def publish(house: HomeAssistant, messages: Mapping[str, object]) -> None:
    """Let the broker retain messages of JSON; null clears."""
    link = await open_link(Broker(house.broker.host, house.broker.port, "service"))
    for at, message in messages.items():
        payload = b"" if message is None else json.dumps(message).encode()
        await link.publish(at, payload, retain=True)
    await link.close()


def _all(shown: Shown, state: str, many: int = 12) -> bool:
    return list(shown.states.values()) == [state] * many


async def test_it_shows_what_a_service_announces_until_that_stays_away(tmp_path: Path) -> None:
    with home_assistant(tmp_path) as house:
        fleet = fleet_at(tmp_path, house.broker, ANNOUNCE + "interval_s = 10\n")
        with running(fleet):
            told = json.loads((await retained(house.broker, [SUM]))[SUM])
            shown = await house.until(lambda shown: {HOUR, DAY} <= set(shown.states))
            shown = await house.until(lambda shown: "unavailable" not in shown.states.values())
        assert float(shown.states[HOUR]) == told["hour"]["mean"] > 0
        assert float(shown.states[DAY]) == told["day"]["energy_kwh"] > 0
        for name, part in ((HOUR, "hour"), (DAY, "day")):
            assert shown.attributes[name].items() >= told[part].items()
        assert [shown.attributes[name]["unit_of_measurement"] for name in (HOUR, DAY)] == [
            "W",
            "kWh",
        ]
        assert shown.attributes[HOUR]["friendly_name"] == "Fleet demo power, mean of the last hour"
        shown = await house.until(lambda shown: _all(shown, "unavailable", 2))  # 3 are missing
        assert shown.faults == []


async def test_figures_of_every_unit_are_taken_and_those_withheld_are_unknown(
    tmp_path: Path,
) -> None:
    fleet = make_fleet(tmp_path, units=MANY)
    add_reports(fleet, add_plans(fleet, 2), {"north": 12}, 2)
    with home_assistant(tmp_path) as house:
        told = announced(fleet)
        await publish(house, told)
        shown = await house.until(lambda shown: list(shown.states.values()).count("unknown") == 10)
        assert float(shown.states[HOUR]) > 0  # the others have nothing counted yet
        figures = told[SUM]
        assert figures is not None
        sums = [at for at, message in told.items() if "/sum/" in at and message]
        await publish(house, {at: {**figures, "stream": at} for at in sums})
        shown = await house.until(lambda shown: "unknown" not in shown.states.values())
        day, hour = figures["day"], figures["hour"]["mean"]
        means = {float(shown.states[name]) for name in shown.states if name.endswith("-hour")}
        days = {float(shown.states[name]) for name in shown.states if name.endswith("-day")}
        assert means == {hour}
        assert days == {day["mean"], day["energy_kwh"]}
        few = replace(fleet.config, query=replace(fleet.config.query, min_devices=13))
        await publish(house, announced(replace(fleet, config=few)))
        shown = await house.until(lambda shown: _all(shown, "unknown"))
        assert shown.attributes[HOUR]["withheld"]
        with closing(open_session(fleet.config, "test")) as session:
            retire_stream(session, 1, END_S)
        await publish(house, announced(fleet))
        shown = await house.until(lambda shown: _all(shown, "unknown", 10))
        assert not {HOUR, DAY} & set(shown.states)
        assert shown.faults == []


async def test_gas_is_a_volume_of_its_last_period_and_unknown_before_one(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, units="dm3")
    gas = "edge-ldp-demo-power-sums"
    with home_assistant(tmp_path) as house:
        await publish(house, announced(fleet))
        shown = await house.until(lambda shown: _all(shown, "unknown", 1))
        add_sums(fleet, add_plans(fleet, 2), [f"home-{one}" for one in range(12)], 2)
        await publish(house, told := announced(fleet))
        shown = await house.until(lambda shown: "unknown" not in shown.states.values())
        sums = (told[SUM] or {})["sums"]
        assert float(shown.states[gas]) == sums["volume_m3"]
        assert shown.attributes[gas].items() >= {"device_class": "gas", **sums}.items()
        assert shown.faults == []


async def test_it_shows_a_households_readings_until_the_tap_goes(tmp_path: Path) -> None:
    data = full_p1_telegram(
        meter_id="E01", time_s=1_800_000_000, import_wh=4_101, power_w=378, export_wh=3
    )
    (p1,) = (e for e in P1Meter(beside=True).feed(data) if isinstance(e, Telegram))
    plain = tuple(Reading(quantity, at) for at, quantity in enumerate(UNITS))
    readings = local_readings(replace(p1, readings=plain))
    wanted = {f"edge-ldp-home-7-{one.quantity}": one.text for one in readings}
    with home_assistant(tmp_path, "topic read edge-ldp-tap/#") as house:
        link = await open_link(Broker(house.broker.host, house.broker.port, "tap"))

        async def send(messages: Iterable[LocalMessage]) -> None:
            for message in messages:
                await link.publish(message.topic, message.text.encode(), retain=message.retain)

        await send(discovery("home-7", one, "homeassistant", 10) for one in readings)
        await send([availability("home-7", ONLINE)])

        async def read() -> None:  # again and again, as the tap: nothing is retained
            await send(states("home-7", readings))
            await asyncio.sleep(0.1)

        await house.until(lambda shown: shown.states == wanted, each=read)
        await send([availability("home-7", OFFLINE)])
        shown = await house.until(lambda shown: _all(shown, "unavailable", len(readings)))
        await link.close()
        assert shown.faults == []


# what is wrong in a sensor's message, and what Home Assistant must say of it
FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"unit_of_measurement": "°C"}, "unit_of_measurement °C is none of power"),
    ({"unit_of_measurement": "m"}, "using native unit of measurement 'm' which is not a valid"),
    ({"state_class": "total"}, "state_class total is none of power"),
    ({"device_class": "energie"}, "for dictionary value @ data['device_class']"),
    ({"value_templat": "-"}, "extra keys not allowed @ data['value_templat']"),
    ({"device": {"identifiers": ["a"], "nam": "b"}}, "not allowed @ data['device']['nam']"),
    ({"state_topic": None}, "data['state_topic']"),
    ({"value_template": "{{ value_json.hour.mean "}, "invalid template"),
    ({"value_template": "{{ value_json.hours.mean }}"}, "has no attribute 'hours'"),
    ({"value_template": "{{ value_json.unit }}"}, "has the non-numeric value"),
    ({"json_attributes_template": "{{ value_json.hour.mean }}"}, "result was not a dictionary"),
    ({"expire_after": "soon"}, "expected int for dictionary value @ data['expire_after']"),
]  # fmt: skip


async def test_faults_in_discovery_messages_are_found(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path)
    add_reports(fleet, add_plans(fleet, 2), {"north": 12}, 2)
    sums, sensor = list(announced(fleet).values())[:2]
    assert sensor is not None
    wrong = {
        f"homeassistant/sensor/wrong/{at}/config": {
            **sensor,
            "unique_id": str(at),
            "name": f"wrong {at}",
            **fault,
        }
        for at, (fault, _) in enumerate(FAULTS)
    }
    told = [text for _, text in FAULTS]
    with home_assistant(tmp_path) as house:
        await publish(house, {**wrong, SUM: sums})
        await house.until(lambda shown: all(any(t in f for f in shown.faults) for t in told))
