"""What is announced of a fleet: what `query` answers, and what Home Assistant takes."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, StrictUndefined

from aggregator.answers.announcement import announcements
from aggregator.config import AnnounceTable
from aggregator.main import main
from aggregator.store.administration.registry import retire_stream
from aggregator.store.opening import open_reader, open_session
from tests.aggregator.console.small_fleet import (
    DAY_S,
    END_S,
    Fleet,
    add_plans,
    add_reports,
    add_sums,
    make_fleet,
)

NOW_S = END_S + 1000
OFF, ON = AnnounceTable(), AnnounceTable(discovery="homeassistant")
SUM = "edge-ldp/v1/demo/sum/power"
HOUR, DAY = (f"homeassistant/sensor/edge-ldp-demo/power-{part}/config" for part in ("hour", "day"))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    made = make_fleet(tmp_path_factory.mktemp("fleet"))
    add_reports(made, add_plans(made, 2), {"north": 12}, 2)
    return made


def announced(fleet: Fleet, table: AnnounceTable = OFF, now_s: int = NOW_S) -> dict[str, Any]:
    with closing(open_reader(fleet.config, "test")) as reader:
        found: dict[str, Any] = announcements(reader, fleet.config, table, now_s).announced
    return found


def test_the_command_shows_it(fleet: Fleet) -> None:
    (_, text), (_, printed) = fleet.ask(
        ["aggregator", "announced", "-c", str(fleet.file)], fleet.aggregator("announced")
    )
    found = json.loads(printed)
    assert found == {"fleet": "demo", "announced": announced(fleet, now_s=END_S)}
    assert text == f"{SUM} {json.dumps(found['announced'][SUM])}\n"


def test_where_nothing_is_published_it_says_so(
    fleet: Fleet, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said = "nothing is published: [announce] is not there"
    path = tmp_path / "with.toml"
    path.write_text(fleet.file.read_text() + "\n[announce]\n")
    for file, count in ((fleet.file, 1), (path, 0)):
        assert main(["announced", "-c", str(file)]) == 0
        assert capsys.readouterr().err.count(said) == count


def test_the_last_hour_and_day_are_what_query_answers(fleet: Fleet) -> None:
    (found,) = announced(fleet).values()
    keys = ("v", "stream", "unit", "slot_seconds")
    assert [found[key] for key in keys] == [1, "power", "W", fleet.config.streams[0].slot_seconds]
    midnight = END_S - DAY_S // 2
    for part, since, until in (("hour", END_S - 3600, END_S), ("day", midnight - DAY_S, midnight)):
        told = found[part]
        assert (told.pop("since_s"), told.pop("until_s")) == (since, until)
        asked = fleet.json("query", "--no-density", f"--since={since}", f"--until={until}")
        assert told == asked["whole"]
        assert told["low"] < told["high"]
        assert told["devices"] == 12


def test_an_hour_is_announced_once_it_has_been_over_for_long_enough(fleet: Fleet) -> None:
    late = AnnounceTable(delay_s=1001)
    assert announced(fleet, late)[SUM]["hour"]["until_s"] == END_S - 3600


def test_small_fleets_are_withheld_as_by_query_AGG_13(fleet: Fleet) -> None:
    config = replace(fleet.config, query=replace(fleet.config.query, min_devices=13))
    found = announced(replace(fleet, config=config))[SUM]
    for part in ("hour", "day"):
        assert found[part]["withheld"]
        assert {found[part][key] for key in ("mean", "low", "high", "total", "energy_kwh")} == {
            None
        }


def test_nothing_counted_yet_is_no_figure(tmp_path: Path) -> None:
    found = announced(make_fleet(tmp_path, least=1))[SUM]
    assert found["hour"]["mean"] is None
    assert found["day"]["devices"] == 0


def test_home_assistant_is_told_where_each_figure_stands(fleet: Fleet) -> None:
    """Keys, classes and units as in Home Assistant's MQTT sensor and its device classes."""
    found = announced(fleet, ON)
    assert list(found) == [SUM, HOUR, DAY]
    told = {part: found[at] for part, at in (("hour", HOUR), ("day", DAY))}
    for part, sensor in told.items():
        assert sensor["state_topic"] == sensor["json_attributes_topic"] == SUM
        assert f"value_json.{part} | tojson" in sensor["json_attributes_template"]
        assert sensor["expire_after"] == 3 * 900
        assert sensor["unique_id"] == f"edge-ldp-demo-power-{part}"
        assert sensor["device"] == {"identifiers": ["edge-ldp-demo"], "name": "Fleet demo"}
    facts = ("device_class", "unit_of_measurement")
    assert [told["hour"][key] for key in facts] == ["power", "W"]
    assert [told["day"][key] for key in facts] == ["energy", "kWh"]
    assert "value_json.hour.mean" in told["hour"]["value_template"]
    assert "value_json.day.energy_kwh" in told["day"]["value_template"]
    assert told["hour"]["state_class"] == "measurement"
    assert "state_class" not in told["day"]  # an energy that may be corrected is no meter's


def test_templates_give_the_message_and_nothing_of_a_topic_that_is_cleared(fleet: Fleet) -> None:
    """Of what is no JSON, Home Assistant makes no value_json; None is its word for unknown."""
    found = announced(fleet, ON)
    engine = Environment(undefined=StrictUndefined, autoescape=False)  # noqa: S701 (no page)
    for at, part, figure in ((HOUR, "hour", "mean"), (DAY, "day", "energy_kwh")):
        value, attributes = (
            engine.from_string(found[at][key])
            for key in ("value_template", "json_attributes_template")
        )
        assert float(value.render(value_json=found[SUM])) == found[SUM][part][figure]
        assert json.loads(attributes.render(value_json=found[SUM])) == found[SUM][part]
        assert (value.render(), attributes.render()) == ("None", "{}")


def test_gas_is_the_sums_of_its_last_period(tmp_path: Path) -> None:
    """No report is of it: there is one sensor, unknown until homes have sent sums."""
    fleet = make_fleet(tmp_path, units="dm3")
    at = DAY.replace("day", "sums")
    engine = Environment(undefined=StrictUndefined, autoescape=False)  # noqa: S701 (no page)
    before = announced(fleet, ON)
    assert list(before) == [SUM, at]
    facts = ("device_class", "unit_of_measurement")
    assert [before[at][key] for key in facts] == ["gas", "m³"]
    add_sums(fleet, add_plans(fleet, 2), [f"home-{one}" for one in range(12)], 2)
    after = announced(fleet, ON)
    for found in (before, after):
        sums = found[SUM]["sums"]
        value, attributes = (
            engine.from_string(found[at][key]).render(value_json=found[SUM])
            for key in ("value_template", "json_attributes_template")
        )
        assert value == str(sums and sums["volume_m3"])
        assert json.loads(attributes) == (sums or {})
    told = after[SUM]["sums"]
    assert told["volume_m3"] == pytest.approx(told["slots"] * told["mean"] / 1000)


def test_a_unit_without_energy_has_means_alone(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, units="°C")
    found = announced(fleet, ON)
    for at in (HOUR, DAY):
        assert found[at]["unit_of_measurement"] == "°C"
        assert ".mean" in found[at]["value_template"]
        assert "device_class" not in found[at]


def test_a_retired_stream_is_cleared(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path)
    with closing(open_session(fleet.config, "test")) as session:
        retire_stream(session, 1, NOW_S)
    assert announced(fleet, ON) == {SUM: None, HOUR: None, DAY: None}
