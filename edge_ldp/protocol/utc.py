"""Seconds since 1970 as a date, on every platform.

`datetime.fromtimestamp` goes through the C library's time, which ends in January 2038 where it has
32 bits (armhf of Debian 12, and whatever runs on its C library). Adding has no such end.
"""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def utc(seconds: float) -> datetime:
    """Return the time in UTC; raises OverflowError outside of the years 1 to 9999."""
    return _EPOCH + timedelta(seconds=seconds)
