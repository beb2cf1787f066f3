"""Times by a home's clocks: summer time, the zone's name, and where the C library has no more."""

import time

import pytest

from agent.home_time import home_time

BERLIN = "CET-1CEST,M3.5.0,M10.5.0/3"  # needs no table of zones


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setenv("TZ", BERLIN)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (1_800_000_000, "2027-01-15 09:00:00 CET"),
        (1_790_000_000, "2026-09-21 16:13:20 CEST"),
        (1_792_887_600, "2026-10-25 02:20:00 CEST"),
        (1_792_891_200, "2026-10-25 02:20:00 CET"),
    ],
)
def test_times_are_those_of_the_clocks_at_home(seconds: int, shown: str) -> None:
    assert home_time(seconds) == shown


def test_without_a_zone_they_are_utc() -> None:
    assert home_time(1_800_000_000, "%H:%M") == "08:00 UTC"
    assert home_time(253_402_300_799) == "9999-12-31 23:59:59 UTC"


@pytest.mark.usefixtures("berlin")
def test_what_the_zone_cannot_tell_is_told_in_utc() -> None:
    assert home_time(253_402_300_799) == "9999-12-31 23:59:59 UTC"
