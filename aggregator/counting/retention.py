"""Which time buckets are kept as counted, which as hours and days; and what is to be done next.

Adding up is exact: counts of codes are integers, and a span's counts are the sums of its buckets'.
They stand in the span's first bucket. Spans are of UTC, begin at multiples of their length since
1970, and are added up oldest first, so that one number says how far: `until`, the first bucket not
yet in a span. Only closed buckets are: no report is counted in them any more (docs/design.md, The
aggregator).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

HOUR_S, DAY_S = 3600, 86_400
CLOCKS_S = HOUR_S  # another worker's clock may be behind ours by less
GONE, SUMMED = 0, 1  # what `until` says beside spans: deleted; the hours' sums are kept
SUMS_AT_ONCE = 24  # hours in one step


class Lengths(Protocol):
    """What is asked of a stream's configuration."""

    @property
    def id(self) -> int:
        """Its number."""

    @property
    def bucket_s(self) -> int:
        """Seconds in a bucket."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """Days that each level is kept, None: for ever; a bucket closes `window_s` after its end."""

    window_s: int
    bucket_days: int | None = None
    hour_days: int | None = None
    day_days: int | None = None


class Step(NamedTuple):
    """The buckets first..end-1 of a stream: add them up to spans of `what`, or GONE, or SUMMED."""

    stream: int
    what: int
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class RolledUp:
    """How far a stream's buckets were added up: `until` by span, and by GONE and SUMMED."""

    until: Mapping[int, int]

    def span_of(self, bucket: int) -> tuple[int, int]:
        """Return first and end (exclusive) of the kept span that a bucket lies in."""
        for span in sorted(self.until, reverse=True):
            if span > SUMMED and bucket < self.until[span]:
                first = bucket - bucket % span
                return first, first + span
        return bucket, bucket + 1

    def widened(self, first: int, last: int) -> tuple[int, int]:
        """Return the buckets of all spans that first..last touch: the same where none is cut."""
        return self.span_of(first)[0], self.span_of(last)[1] - 1

    def whole_from(self, span: int) -> int:
        """Return the first bucket from which on no kept span is longer than `span` buckets."""
        return max((end for length, end in self.until.items() if length > span), default=0)


def spans(stream: Lengths) -> tuple[int, int]:
    """Return buckets in an hour and in a day: 1 where one is as long, or does not divide it."""
    hour, day = (
        length // stream.bucket_s if not length % stream.bucket_s else 1
        for length in (HOUR_S, DAY_S)
    )
    return hour, day


def next_step(
    stream: Lengths, keeping: Keeping, rolled_up: RolledUp, oldest: Mapping[int, int], now_s: float
) -> Step | None:
    """Return what is to be done next with a stream's counts, or None when nothing is.

    `oldest`: for each `what` of `wanted_from`, the first bucket with counts from there on, missing
    where there is none.
    """
    hour, day = spans(stream)
    closed_s = now_s - keeping.window_s - CLOCKS_S
    for what, length, age in _levels(hour, day, keeping):
        if what not in oldest:
            continue
        limit_s = closed_s if age is None else min(closed_s, now_s - age * DAY_S)
        first = max(rolled_up.until.get(what, 0), oldest[what] - oldest[what] % length)
        if what == SUMMED:
            first = max(
                first, rolled_up.whole_from(hour)
            )  # their sums are kept, their hours are not
        count = SUMS_AT_ONCE if what == SUMMED else 1
        most = (int(limit_s // stream.bucket_s) - first) // length
        if most > 0:
            return Step(stream.id, what, first, first + min(count, most) * length)
    return None


def wanted_from(stream: Lengths, keeping: Keeping, rolled_up: RolledUp) -> dict[int, int]:
    """Return for each thing to be done the bucket from which on counts matter to it."""
    return {what: rolled_up.until.get(what, 0) for what, _, _ in _levels(*spans(stream), keeping)}


def _levels(hour: int, day: int, keeping: Keeping) -> list[tuple[int, int, int | None]]:
    """Return (what, buckets a span, age in days or None: once closed), in the order of doing."""
    found: list[tuple[int, int, int | None]] = [(SUMMED, hour, None)]
    if keeping.bucket_days is not None and hour > 1:
        found.append((hour, hour, keeping.bucket_days))
    if keeping.hour_days is not None and day > hour:
        found.append((day, day, keeping.hour_days))
    if keeping.day_days is not None:
        found.append((GONE, day, keeping.day_days))
    return found
