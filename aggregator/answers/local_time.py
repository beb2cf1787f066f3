"""Hours, days and weeks as people of a time zone have them, also where their clocks change.

A day begins with the first second of its date and may have 23 or 25 hours; a week is Monday's to
Sunday's. Everything that groups by time, or asks for a day, asks here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from functools import lru_cache

import numpy as np

from aggregator.config import StreamTable
from aggregator.counting.retention import DAY_S, HOUR_S, spans
from edge_ldp.arrays import Ints
from edge_ldp.protocol.utc import utc

LATEST_S = 1 << 36  # what is asked for; calendars end later
DAYS = {"day": 1, "week": 7}
GROUPINGS = ("none", "hour-of-day", *DAYS)
LENGTHS = ("hour", *DAYS)
_FIRST = date(1970, 1, 1).toordinal()
_MONDAY = 4  # days since 1970 of the first one


def offset_s(zone: tzinfo, at_s: int) -> int:
    """Return how far the clocks of a zone are ahead of UTC at a moment."""
    found = utc(at_s).astimezone(zone).utcoffset()
    assert found is not None  # noqa: S101 (the time has a zone)
    return found.days * DAY_S + found.seconds


def period(zone: tzinfo, by: str, at_s: int) -> tuple[int, int]:
    """Return the first second (UTC) of the day or week that a moment is in, and of the next."""
    day = (at_s + offset_s(zone, at_s)) // DAY_S
    if by == "week":
        day -= (day - _MONDAY) % DAYS[by]
    return _begins(zone, day), _begins(zone, day + DAYS[by])


@lru_cache(maxsize=4096)
def _begins(zone: tzinfo, day: int) -> int:
    """Return the first second of a date; where clocks skip midnight, that of the change."""
    return int(datetime.fromordinal(_FIRST + day).replace(tzinfo=zone).timestamp())


def group_name(group: int, zone: tzinfo) -> str:
    """Return an hour of the day, or the date with which a day or week begins, as people read it.

    A day of UTC, as counts may be kept, is said to be one where it is none of the zone.
    """
    if 0 <= group < DAY_S // HOUR_S:
        return f"{group:02d} h"
    is_local = period(zone, "day", group)[0] == group
    return (
        f"{utc(group).astimezone(zone if is_local else UTC):%Y-%m-%d}{'' if is_local else ' UTC'}"
    )


@dataclass(frozen=True, slots=True)
class Grouping:
    """`by` one of GROUPINGS, by the clocks of `zone`; a bucket is of where it begins.

    Buckets before `whole` are kept as days of UTC: they are of these days, and of weeks of these.
    """

    by: str = "none"
    zone: tzinfo = UTC
    whole: int = 0

    def of(self, stream: StreamTable, bucket: int) -> int:
        """Return the group of a bucket: the hour, or the first second (UTC) of the day or week."""
        if self.by == "none":
            return 0
        at_s = bucket * stream.bucket_s
        if self.by == "hour-of-day":
            return (at_s + offset_s(self.zone, at_s)) // HOUR_S % (DAY_S // HOUR_S)
        return period(UTC if bucket < self.whole else self.zone, self.by, at_s)[0]

    def of_all(self, stream: StreamTable, buckets: Ints) -> Ints:
        """Return the group of each bucket."""
        if self.by == "none":
            return np.zeros_like(buckets)
        return _each_once(buckets, lambda bucket: self.of(stream, bucket))


@dataclass(frozen=True, slots=True)
class Spans:
    """The spans of a stream's curve, `by` one of LENGTHS, by the clocks of `zone`, in buckets.

    Sums are kept of hours of UTC, or of buckets where one is longer or does not divide them. A day
    or week is of those that begin in it: where clocks are half an hour off, it begins later.
    """

    stream: StreamTable
    by: str = "hour"
    zone: tzinfo = UTC

    def at(self, bucket: int) -> tuple[int, int]:
        """Return first and end (exclusive) of the span that a bucket is in."""
        hour = spans(self.stream)[0]
        first = bucket - bucket % hour
        if self.by == "hour":
            return first, first + hour
        hour_s = hour * self.stream.bucket_s
        begin_s, end_s = period(self.zone, self.by, first * self.stream.bucket_s)
        return max(0, -(-begin_s // hour_s) * hour), -(-end_s // hour_s) * hour

    def first_of(self, buckets: Ints) -> Ints:
        """Return the first bucket of the span that each is in."""
        hours: Ints = buckets - buckets % spans(self.stream)[0]
        if self.by == "hour":
            return hours
        return _each_once(hours, lambda hour: self.at(hour)[0])

    def sizes(self, buckets: Ints) -> Ints:
        """Return how many buckets are in the span that each is in."""
        if self.by == "hour":
            return np.full_like(buckets, spans(self.stream)[0])
        return np.array([end - begin for begin, end in map(self.at, buckets.tolist())], np.int64)

    def over(self, now_s: int) -> tuple[int, int]:
        """Return first and end of the last span that is over at a moment."""
        end = self.at(now_s // self.stream.bucket_s)[0]
        return self.at(end - 1)[0], end

    def is_late(self, bucket: int) -> bool:
        """Say whether the span that begins with a bucket begins later than its day or week."""
        at_s = bucket * self.stream.bucket_s
        return self.by != "hour" and period(self.zone, self.by, at_s)[0] != at_s


def _each_once(buckets: Ints, of: Callable[[int], int]) -> Ints:
    """Return what a function says of each; it is asked once for equal ones."""
    every, where = np.unique(buckets, return_inverse=True)
    return np.array([of(one) for one in every.tolist()], np.int64)[where.reshape(-1)]
