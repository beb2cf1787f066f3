"""Seconds as dates: what the C library may not know, arithmetic does."""

from datetime import UTC, datetime

import pytest

from edge_ldp.protocol.utc import utc


@pytest.mark.parametrize("seconds", [0, 1, -1, 2**31 - 1, 1_800_000_000.5])
def test_a_date_is_what_the_standard_library_says_where_it_can(seconds: float) -> None:
    """It asks the C library, whose time may end in 2038."""
    assert utc(seconds) == datetime.fromtimestamp(seconds, UTC)


def test_dates_after_2038_are_in_the_calendar() -> None:
    assert utc(2**31).isoformat() == "2038-01-19T03:14:08+00:00"
    assert utc(2**32 + 1).isoformat() == "2106-02-07T06:28:17+00:00"


def test_dates_go_from_the_year_1_to_9999() -> None:
    assert utc(253_402_300_799).year == 9999
    with pytest.raises(OverflowError):
        utc(253_402_300_800)
