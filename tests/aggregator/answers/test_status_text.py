"""What `status` says of alarms and marked devices, to machines and to people."""

from msgspec import to_builtins

from aggregator.answers.fleet.status import marked_device, troubled_devices
from aggregator.answers.fleet.status_answer import TroubledDevices
from aggregator.answers.fleet.status_text import looks_lines, trust_lines
from aggregator.answers.plan_view import look_of
from aggregator.counting.records import Marked
from aggregator.plans.revision import Revision
from aggregator.plans.screen import Screened
from aggregator.store.rows import DeviceRow, MarkRow

ALARM = Screened("survey", 0, 1000, 5000, rings=True, share=0.05, warnings=("taken out",))
CALM = Screened("sums", 0, 300, 5000, rings=False, share=0.0, warnings=())
REVISION = Revision(
    at_s=1_700_000_000,
    epoch=3,
    theta=300,
    survey=(0, 512),
    reports=(5000, 5000),
    reasons=(str(ALARM), "θ = 300"),
    share=0.25,
    forecast=(("whole over 7 days", 12.5),),
    least=12.0,
    screen=(ALARM, CALM),
)
NOBODY = TroubledDevices(revoked=[], held=[], refusing=[], degraded=[])
MARK = Marked("code 7", 40, 40, 0.44, 1e-12)


def test_only_alarms_that_rang_are_shown() -> None:
    made = to_builtins(look_of(REVISION))
    assert made["alarms"] == [
        {
            "kind": "survey",
            "low": 0,
            "high": 1000,
            "reports": 5000,
            "share": 0.05,
            "warnings": ["taken out"],
        }
    ]
    assert (made["theta"], made["survey"], made["survey_share"]) == (300, [0, 512], 0.25)
    assert made["forecast"] == [{"question": "whole over 7 days", "half_width": 12.5}]
    assert made["least"] == 12


def test_people_read_the_alarm_its_warnings_and_who_is_marked() -> None:
    row = MarkRow("home", 1, 1_700_000_000, 1_700_000_900, 2, MARK)
    lines = looks_lines([("power", look_of(REVISION))])
    text = "\n".join(lines + trust_lines(NOBODY, [marked_device(row, {1: "power"})]))
    assert "ALARM, 5.00% left out" in text
    assert "warning: taken out" in text
    assert "home power" in text
    assert "1.0e-12" in text
    assert "a mark takes nothing out of any count" in text


def test_without_looks_and_marks_there_is_nothing_to_say() -> None:
    assert looks_lines([("power", None)]) + trust_lines(NOBODY, []) == []


def test_who_is_revoked_and_who_is_held_is_shown_with_the_time_and_nobody_else() -> None:
    def device(name: str, revoked_s: int | None, held_s: int | None) -> DeviceRow:
        return DeviceRow(name, "online", "", 0, "", None, revoked_s, held_s)

    rows = [device("a", 60, None), device("b", None, None), device("c", 120, 180)]
    found = troubled_devices(rows)
    assert to_builtins(found) == {
        "revoked": [{"device": "a", "since_s": 60}, {"device": "c", "since_s": 120}],
        "held": [{"device": "c", "since_s": 180}],
        "refusing": [],
        "degraded": [],
    }
    assert "\n".join(trust_lines(found, [])).splitlines() == [
        "",
        "device       revoked UTC    quarantine UTC",
        "a       1970-01-01 00:01                 -",
        "c       1970-01-01 00:02  1970-01-01 00:03",
    ]
