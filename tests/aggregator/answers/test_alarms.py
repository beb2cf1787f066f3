"""What needs an operator: each alarm alone, at its threshold, and for as long as it is so."""

from copy import deepcopy
from typing import Any

import pytest
from msgspec import convert

from aggregator.answers.fleet.alarms import ALARMS, ENOUGH, STEP_S, Lately, OfLate, alarms
from aggregator.answers.fleet.status_answer import FleetSummary

NOTHING = OfLate()
HOUR_S, DAY_S = 3600, 86_400
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
    "service": {
        "runs": True,
        "workers": [
            {
                "worker": "",
                "at_s": 999_990,
                "health": "ok",
                "age_s": 10,
                "is_degraded": False,
                "is_late": False,
                "ages": {"report_s": 10, "receipt_s": 10, "link_s": 900, "lost_s": None},
                "valid_s": 1_000_000 + 91 * DAY_S,
            }
        ],
        "is_late": False,
        "last_commit_age_s": 10,
    },
    "quiet_s": 7200,
    "slot_s": 1140,
    "room_bytes": 1 << 30,
    "days": [],
    "is_fast": False,
    "devices": {
        "enrolled": 100,
        "online": 95,
        "silent": 3,
        "revoked": 1,
        "held": 1,
        "refusing": 0,
        "marked": 0,
        "heard": 60,
        "missing": 3,
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
LATER = {"now_s": 1_003_600, "last_commit_s": 1_003_590}
WORKER = "service__workers__0__"
STATES: dict[str, tuple[FleetSummary, FleetSummary]] = {
    "ServiceDown": (_faulty(service__runs=False), _faulty(service__runs=None)),
    "LinkLost": (
        _faulty(**{f"{WORKER}ages__lost_s": 60, f"{WORKER}is_degraded": True}),
        _faulty(**{f"{WORKER}ages__lost_s": 59, f"{WORKER}is_degraded": True}),
    ),
    "RoomLow": (_faulty(room_bytes=(1 << 30) - 1), _faulty(room_bytes=None)),
    "ServiceDegraded": (_faulty(**{f"{WORKER}is_degraded": True}), FINE),
    "CertificateExpires": (
        _faulty(**{f"{WORKER}valid_s": 1_000_000 + 90 * DAY_S}),
        _faulty(**{f"{WORKER}valid_s": 1_000_001 + 90 * DAY_S}),
    ),
    "NothingCounted": (_faulty(last_commit_s=992_799), _faulty(last_commit_s=992_800)),
    "DevicesSilent": (_faulty(devices__missing=7), _faulty(devices__missing=6)),
    "PlansRefused": (_faulty(devices__refusing=1), FINE),
    "DevicesMarked": (_faulty(devices__marked=2), FINE),
    "LookAlarm": (
        _faulty(streams__0__look=LOOK),
        _faulty(streams__0__look=LOOK, streams__0__retired_s=999_000),
    ),
    "NoPlan": (
        _faulty(streams__0__plan=None),
        _faulty(streams__0__plan=None, streams__0__is_summed_alone=True),
    ),
    "PlanAhead": (_faulty(streams__0__plan__is_ahead=True), FINE),
    "ReportsPending": (  # one was made in this hour, so 24 in a day
        _faulty(**LATER, streams__0__created=1001, streams__0__pending=25),
        _faulty(**LATER, streams__0__created=1001, streams__0__pending=24),
    ),
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
    assert found["severity"] == (ALARMS[name] or "info")
    assert found["name"] == name
    assert found["command"].startswith(("edge-ldp aggregator ", "systemctl "))


def test_a_rehearsal_is_told_what_to_run_as_it_has_no_unit() -> None:
    (found,) = alarms(_faulty(last_commit_s=900_000, is_fast=True), NOTHING, "a.toml")
    assert found["text"] == "nothing was counted for 28 h: do the devices reach the broker?"
    (found,) = alarms(_faulty(service__is_late=True, is_fast=True), NOTHING, "a.toml")
    assert found["command"] == "edge-ldp aggregator run -c a.toml"


def test_AGG_40_devices_are_heard_and_nothing_was_ever_counted() -> None:
    idle = {"last_commit_s": None, f"{WORKER}ages__link_s": 7201}
    (found,) = alarms(_faulty(**idle), NOTHING, "a.toml")
    assert (found["name"], found["severity"]) == ("NothingCounted", "critical")
    for less in ({f"{WORKER}ages__link_s": 7200}, {"devices__heard": 0, "devices__missing": 0}):
        assert list(alarms(_faulty(**idle | less), NOTHING, "a.toml")) == []


def test_what_follows_from_another_alarm_is_none_of_its_own() -> None:
    follows = {
        "last_commit_s": 900_000,
        "devices__missing": 60,
        "streams__0__pending": 10**6,
        f"{WORKER}is_degraded": True,
    }
    for cause, fault in (
        ("ServiceDown", {"service__runs": False}),
        ("LinkLost", {f"{WORKER}ages__lost_s": 60}),
        ("NothingCounted", {}),
    ):
        (found,) = alarms(_faulty(**follows, **fault), OfLate(made=1.0), "a.toml")
        assert found["name"] == cause


@pytest.mark.parametrize(("days", "severity"), [(7, "critical"), (30, "warning"), (90, "info")])
def test_a_certificate_is_more_urgent_the_sooner_it_expires(days: int, severity: str) -> None:
    ends = _faulty(**{f"{WORKER}valid_s": 1_000_000 + days * DAY_S})
    (found,) = alarms(ends, NOTHING, "a.toml")
    assert found["severity"] == severity
    assert f"expires in {days} days" in found["text"]


def test_nothing_comes_is_told_a_slot_and_some_minutes_after_a_fleet_that_sends_often() -> None:
    """Of 1,000 reports in 10,000 s twenty take 200 s; but all of a slot may come at its end."""
    lately = Lately()
    lately.note(FINE)
    then = {"now_s": 1_010_000, "last_commit_s": 1_010_000, "streams__0__counted": 2000}
    assert lately.note(_faulty(**then)).due_s == ENOUGH * 10
    for idle_s, counted, raised in (
        (1140, 2000, False),
        (1141, 2000, True),
        (1141, 1001, False),  # few homes: as before, after two hours
        (7200, 1001, False),
        (7201, 1001, True),
    ):
        now = then | {"now_s": 1_010_000 + idle_s, "streams__0__counted": counted}
        found = alarms(_faulty(**now), lately.note(_faulty(**now)), "a.toml")
        assert [one["name"] for one in found] == ["NothingCounted"] * raised, (idle_s, counted)


def test_one_marked_device_is_named_in_the_command_and_of_several_it_says_where_to_look() -> None:
    several, one = _faulty(devices__marked=2), _faulty(devices__marked=1)
    (found,) = alarms(several, NOTHING, "a.toml")
    assert found["command"] == "edge-ldp aggregator status -c a.toml"
    (found,) = alarms(one, NOTHING, "a.toml", "a b")
    assert found["command"] == "edge-ldp aggregator devices quarantine -c a.toml 'a b'"


def test_what_expired_or_was_refused_is_an_alarm_for_a_day_or_an_hour() -> None:
    lately, begun_s = Lately(), FINE.now_s
    assert lately.note(_faulty(streams__0__expired=10**6)) == NOTHING  # before anybody looked

    def noted(age_s: int) -> OfLate:
        after = {"streams__0__expired": 10**6 + 40, "refused__0__messages": 500}
        return lately.note(_faulty(now_s=begun_s + age_s, **after))

    assert noted(600) == noted(3500) == OfLate(40, 498)
    assert noted(600 + HOUR_S) == noted(DAY_S) == OfLate(40, 0)
    assert noted(600 + DAY_S) == NOTHING
    for age_s in range(2 * DAY_S, 4 * DAY_S, 60):
        noted(age_s)
    assert len(lately) <= DAY_S // STEP_S + 2
    assert lately.note(FINE) == NOTHING  # set back, and another store
