"""Seconds as dates: what the C library may not know, arithmetic does."""

from datetime import UTC, datetime

import pytest

from edge_ldp.protocol.utc import utc


@pytest.mark.parametrize("seconds", [0, 1, -1, 2**31 - 1, 2**31, 2**32, 2**32 + 1, 1_800_000_000.5])
def test_a_date_is_what_the_standard_library_says_where_it_can(seconds: float) -> None:
    assert utc(seconds) == datetime.fromtimestamp(seconds, UTC)


def test_dates_go_from_the_year_1_to_9999() -> None:
    assert utc(253_402_300_799).year == 9999
    with pytest.raises(OverflowError):
        utc(253_402_300_800)
