"""What needs an operator: each alarm alone, at its threshold, and for as long as it is so."""

from copy import deepcopy
from typing import Any

import pytest
from msgspec import convert

from aggregator.answers.alarms import ALARMS, STEP_S, Lately, alarms
from aggregator.answers.fleet import FleetSummary

NOTHING = (0, 0)  # expired and refused lately
STREAM: dict[str, Any] = {
    "stream": "power",
    "unit": "W",
    "retired_s": None,
    "plan": {
        "epoch": 2,
        "theta": 900,
        "issued_s": 0,
        "expires_s": 10_000_000,
        "is_ahead": False,
        "survey_share": 0.1,
        "survey_low": 0,
        "survey_high": 900,
        "influence": 4.0,
        "shift_per_percent": 20.0,
        "forecast": None,
        "reasons": None,
    },
    "look": None,
    **dict.fromkeys(("created", "counted"), 1000),
    **dict.fromkeys(("rejected", "expired", "pending", "duplicates", "conflicts"), 0),
}
ALARM = {"kind": "survey", "low": 0, "high": 900, "reports": 9, "share": 0.1}
LOOK = {
    "at_s": 0,
    "theta": 900,
    "survey": [0, 900],
    "survey_share": 0.1,
    "stream_reports": 9,
    "survey_reports": 9,
    "forecast": [],
    "least": None,
    "reasons": [],
    "alarms": [{**ALARM, "warnings": ["too many at the top"]}],
}
_FINE: dict[str, Any] = {
    "fleet": "demo",
    "now_s": 1_000_000,
    "last_commit_s": 999_990,
    "service": {"runs": True, "workers": [], "is_late": False, "last_commit_age_s": 10},
    "quiet_s": 7200,
    "is_fast": False,
    "devices": {
        "enrolled": 100,
        "online": 95,
        "silent": 3,
        "revoked": 1,
        "held": 1,
        "refusing": 0,
        "marked": 0,
    },
    "streams": [STREAM],
    "refused": [{"reason": "late", "stream": None, "messages": 2, "reports": 20}],
}
FINE = convert(_FINE, FleetSummary)


def _faulty(**change: Any) -> FleetSummary:
    found = deepcopy(_FINE)
    for path, value in change.items():
        at: Any = found
        *way, last = path.split("__")
        for step in way:
            at = at[int(step) if step.isdecimal() else step]
        at[last] = value
    return convert(found, FleetSummary)


# the alarm, and what is then so; and what is not yet so
STATES: dict[str, tuple[FleetSummary, FleetSummary]] = {
    "NothingCounted": (_faulty(last_commit_s=992_799), _faulty(last_commit_s=992_800)),
    "DevicesSilent": (_faulty(devices__silent=11), _faulty(devices__silent=10)),
    "PlansRefused": (_faulty(devices__refusing=1), FINE),
    "DevicesMarked": (_faulty(devices__marked=2), FINE),
    "LookAlarm": (
        _faulty(streams__0__look=LOOK),
        _faulty(streams__0__look=LOOK, streams__0__retired_s=999_000),
    ),
    "NoPlan": (
        _faulty(streams__0__plan=None),
        _faulty(streams__0__plan=None, streams__0__retired_s=999_000),
    ),
    "PlanAhead": (_faulty(streams__0__plan__is_ahead=True), FINE),
    "ReportsExpired": (_faulty(streams__0__expired=1), FINE),
    "ReportsRefused": (_faulty(refused__0__messages=103), _faulty(refused__0__messages=102)),
}


@pytest.mark.parametrize("name", ALARMS)
def test_each_alarm_is_raised_alone_at_its_threshold_and_says_what_to_do(name: str) -> None:
    wrong, fine = STATES[name]
    lately = Lately()
    assert list(alarms(FINE, lately.note(FINE), "a.toml")) == []
    assert list(alarms(fine, lately.note(fine), "a.toml")) == []
    (found,) = alarms(wrong, lately.note(wrong), "a.toml")
    assert found["name"] == name
    assert found["command"].startswith(("edge-ldp aggregator ", "systemctl "))


def test_a_rehearsal_is_told_what_to_run_as_it_has_no_unit() -> None:
    (found,) = alarms(_faulty(last_commit_s=900_000, is_fast=True), NOTHING, "a.toml")
    assert found["text"] == "nothing was counted for 28 h: does the service run?"
    assert found["command"] == "edge-ldp aggregator run -c a.toml"


def test_one_marked_device_is_named_in_the_command_and_of_several_it_says_where_to_look() -> None:
    several, one = _faulty(devices__marked=2), _faulty(devices__marked=1)
    (found,) = alarms(several, NOTHING, "a.toml")
    assert found["command"] == "edge-ldp aggregator status -c a.toml"
    (found,) = alarms(one, NOTHING, "a.toml", "a b")
    assert found["command"] == "edge-ldp aggregator devices quarantine -c a.toml 'a b'"


def test_what_expired_or_was_refused_is_an_alarm_for_a_day_or_an_hour() -> None:
    lately, begun_s, hour, day = Lately(), FINE.now_s, 3600, 86_400
    assert lately.note(_faulty(streams__0__expired=10**6)) == NOTHING  # before anybody looked

    def noted(age_s: int) -> tuple[int, int]:
        after = {"streams__0__expired": 10**6 + 40, "refused__0__messages": 500}
        return lately.note(_faulty(now_s=begun_s + age_s, **after))

    assert noted(600) == noted(3500) == (40, 498)
    assert noted(600 + hour) == noted(day) == (40, 0)
    assert noted(600 + day) == NOTHING
    for age_s in range(2 * day, 4 * day, 60):
        noted(age_s)
    assert len(lately) <= day // STEP_S + 2
    assert lately.note(FINE) == NOTHING  # set back, and another store
