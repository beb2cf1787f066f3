"""What is told of a device's last 30 days: what its row and the log say, and no more."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from aggregator.answers.fleet.one_device import SIGNS, DeviceAnswer, device_text, read_device
from aggregator.store.opening import open_session
from edge_ldp.service.zones import zone_of
from tests.aggregator.console.small_fleet import DAY_S, END_S, make_fleet

AGO = {ago: END_S - ago * DAY_S for ago in (1, 2, 3)}
ROW = {"device": "home-1", "state": "online", "software": "1", "seen_s": AGO[2], "heard": 3}
LOG = (
    (END_S - 31 * DAY_S, "devices enrol home-1"),
    (AGO[3], "devices group -c 'a b.toml' --to north home-1 home-2"),
    (AGO[3], "devices quarantine home-1 'cut off"),
    (AGO[1], "devices revoke home-10"),
    (AGO[1], "plan publish home-1"),
    (END_S, "devices release home-1"),
)


def shown(place: Path, zone: str, name: str = "home-1", **row: Any) -> DeviceAnswer | None:
    """Return the answer for a device with such a row, and LOG."""
    fleet = make_fleet(place)
    fields = ROW | row
    with closing(sqlite3.connect(place / "a.db")) as db, db:
        marks = ", ".join("?" * len(fields))
        db.execute(
            f"INSERT INTO devices ({', '.join(fields)}) VALUES ({marks})",  # noqa: S608 (ours)
            [*fields.values()],
        )
        for at, (at_s, command) in enumerate(LOG, 1):
            db.execute("INSERT INTO audit VALUES (?, ?, 'me@here', ?)", (at, at_s, command))
    with closing(open_session(fleet.config, str(fleet.file))) as session:
        return read_device(session, fleet.config, name, END_S, zone_of(zone))


@pytest.mark.parametrize(
    ("row", "days"),
    [
        ({}, f"{'?' * 27}H––"),
        ({"enrolled_s": AGO[3]}, f"{'·' * 26}?H––"),
        ({"enrolled_s": AGO[3], "heard": 0b101}, f"{'·' * 26}–H––"),
        ({"heard": 0b11011}, f"{'?' * 24}H–HH––"),
        ({"heard": 1 << 31 | 1, "health": "meter lost"}, f"{'–' * 27}T––"),
        ({"state": "unknown", "enrolled_s": AGO[3]}, f"{'·' * 26}––––"),
        ({"seen_s": END_S}, f"{'?' * 29}H"),
        ({"seen_s": END_S + 9 * DAY_S}, "?" * 30),  # as a rehearsal left it
        ({"seen_s": END_S - 90 * DAY_S}, "–" * 30),
        ({"health": "meter lost"}, f"{'?' * 27}T––"),
        ({"health": "meter lost", "refusals": "theta"}, f"{'?' * 27}R––"),
        ({"revoked_s": AGO[1]}, f"{'?' * 27}HXX"),
    ],
)
def test_a_day_is_told_from_the_last_status_and_the_registry(
    tmp_path: Path, row: dict[str, Any], days: str
) -> None:
    found = shown(tmp_path, "Pacific/Auckland", **row)
    assert found is not None
    assert "".join(SIGNS[day.state] for day in found.days) == days
    assert found.days[-1].date == "2023-11-15"  # of UTC, as it is kept
    assert [day.changes for day in found.days] == [*[0] * 26, 2, 0, 0, 1]
    text = device_text(found, ZoneInfo("Pacific/Auckland"))
    assert days in text
    assert text.count("me@here") == 3  # the oldest is before, and others name others


@pytest.mark.parametrize("name", ["home-10", "", "a\0b", "\udcff", "x" * 999])
def test_nobody_is_not_shown(tmp_path: Path, name: str) -> None:
    assert shown(tmp_path, "UTC", name=name) is None
