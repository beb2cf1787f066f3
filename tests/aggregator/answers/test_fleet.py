"""How a fleet is: `status` and the summary in numbers alone say the same."""

import time
from dataclasses import replace
from datetime import date
from pathlib import Path

from aggregator.answers.fleet.status import is_silent, read_status, read_summary
from aggregator.answers.fleet.status_answer import DayCounts, FleetState
from aggregator.answers.parts import answer_json
from aggregator.counting.retention import DAY_S
from aggregator.running.process import keep_fleet_day
from aggregator.store.opening import open_reader, open_store
from aggregator.store.rows import FleetDay
from edge_ldp.service.clock import Clock
from tests.aggregator.console.small_fleet import (
    END_S,
    add_looks,
    add_plans,
    add_reports,
    frame,
    make_fleet,
    send,
    status,
)


def test_the_summary_says_what_status_says_without_a_devices_name(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, units="W kW")
    plan = add_plans(fleet, 1)
    add_reports(fleet, plan, {"north": 5}, 1, slots=2)
    add_looks(fleet, (900.0, 600.0))
    send(
        fleet,
        plan,
        [status("north-0001", refusals=("ratio",)), frame(plan, "north-9999", [60_000])],
    )
    reader = open_reader(fleet.config, str(fleet.file))
    told = read_status(reader, fleet.config, END_S)
    found = read_summary(reader, fleet.config, END_S)
    reader.close()
    for name in (*FleetState.__struct_fields__, "is_fast"):
        assert getattr(found, name) == getattr(told, name)
    assert "north-" not in answer_json(found)
    assert [row.stream for row in found.refused] == ["power"]
    power, other = found.streams
    assert power.plan is not None
    assert power.look is not None
    assert (power.plan.epoch, power.plan.expires_s) == (plan.epoch, plan.expires_s)
    assert (power.counted, power.look.forecast[0].half_width) == (10, 120)
    assert (other.plan, other.look, other.counted) == (None, None, 0)
    devices, counts = told.devices, found.devices
    assert (counts.enrolled, counts.online, counts.silent) == (
        *(devices.enrolled, devices.online, devices.silent),
    )
    few = [len(rows) for rows in (devices.revoked, devices.held, devices.refusing)]
    assert [counts.revoked, counts.held, counts.refusing, counts.marked] == [*few, 0]
    assert counts.refusing == 1
    assert counts.silent == devices.unknown > 0
    assert (counts.heard, counts.missing) == (counts.enrolled - devices.unknown, 0)


def test_a_device_is_silent_after_a_day_and_before_its_first_status(tmp_path: Path) -> None:
    old_s = make_fleet(tmp_path).config.silent_before(END_S)
    assert is_silent("unknown", END_S, old_s)
    assert not is_silent("online", END_S - DAY_S, old_s)
    assert is_silent("online", END_S - DAY_S - 1, old_s)


def test_each_day_keeps_how_devices_were_when_last_looked_at(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path)
    config = replace(fleet.config, query=replace(fleet.config.query, zone="Pacific/Auckland"))
    send(fleet, add_plans(fleet, 1), [status("one"), status("two", refusals=("ratio",))])
    store, days = open_store(config, str(fleet.file)), []
    for later_s in (0, 11 * 3600, DAY_S + 1, 1000 * DAY_S):  # its clocks are 13 hours ahead
        assert not keep_fleet_day(config, Clock(END_S + later_s, time.time(), 1e-9), store)
        days.append(store.fleet_days())
    store.close()
    today = date(2023, 11, 16).toordinal()
    first, then = FleetDay(today, 2, 0, 1), FleetDay(today + 1, 0, 2, 1)
    last = FleetDay(today + 1000, 0, 2, 1)
    assert days == [[first], [first], [first, then], [first, then, last]]
    reader = open_reader(config, str(fleet.file))
    found = read_summary(reader, config, END_S)
    reader.close()
    assert found.days[0] == DayCounts(date="2023-11-16", heard=2, missing=0, refusing=1)
