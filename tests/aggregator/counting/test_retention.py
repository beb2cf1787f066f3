"""Roll-ups are planned oldest first, only of closed buckets, and every range knows its borders."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.counting.retention import (
    CLOCKS_S,
    DAY_S,
    GONE,
    SUMMED,
    Keeping,
    RolledUp,
    Step,
    next_step,
    spans,
    wanted_from,
)

WINDOW_S = 35 * DAY_S


@dataclass(frozen=True)
class Stream:
    bucket_s: int
    id: int = 1


QUARTERS = Stream(900)


def steps(stream: Stream, keeping: Keeping, buckets: range, now_s: float) -> list[Step]:
    """Take steps until none is left, of a stream with counts in every bucket."""
    until: dict[int, int] = {}
    done: list[Step] = []
    while True:
        oldest = {
            what: max(first, buckets.start)
            for what, first in wanted_from(stream, keeping, RolledUp(until)).items()
            if first < buckets.stop
        }
        step = next_step(stream, keeping, RolledUp(until), oldest, now_s)
        if step is None:
            return done
        assert step.end > until.get(step.what, 0)
        until[step.what] = step.end
        done.append(step)


def test_spans_are_hours_and_days_where_buckets_divide_them() -> None:
    assert [spans(Stream(s)) for s in (900, 3600, 7200, 86_400, 7000)] == [
        *((4, 96), (1, 24), (1, 12), (1, 1), (1, 1))
    ]


def test_without_retention_only_sums_are_kept_and_only_of_closed_hours() -> None:
    now_s = WINDOW_S + CLOCKS_S + 30 * 3600 + 1799
    done = steps(QUARTERS, Keeping(WINDOW_S), range(8, 1000), now_s)
    assert done == [Step(1, SUMMED, 8, 104), Step(1, SUMMED, 104, 120)]


def test_each_level_is_added_up_after_its_age_and_deleted_at_last() -> None:
    keeping = Keeping(WINDOW_S, 40, 50, 60)
    done = steps(QUARTERS, keeping, range(96 * 70), 70 * DAY_S)
    ends = {what: max(step.end for step in done if step.what == what) for what in (4, 96, GONE)}
    assert ends == {4: 96 * 30, 96: 96 * 20, GONE: 96 * 10}
    assert done[0].what == SUMMED  # before hours are added up to days their sums are kept


def test_an_age_below_the_window_waits_for_the_window() -> None:
    done = steps(QUARTERS, Keeping(WINDOW_S, bucket_days=1), range(400), 36 * DAY_S)
    assert max(step.end for step in done) * 900 <= DAY_S - CLOCKS_S


def test_empty_years_are_skipped() -> None:
    far = 10**6 + 2
    found = next_step(QUARTERS, Keeping(WINDOW_S, 40), RolledUp({}), {SUMMED: far}, 10**10)
    assert found is not None
    assert found.first == 10**6


@pytest.mark.parametrize(
    ("bucket", "span"),
    [(0, (0, 24)), (47, (24, 48)), (48, (48, 52)), (99, (96, 100)), (100, (100, 101))],
)
def test_a_bucket_lies_in_the_longest_span_that_reaches_it(
    bucket: int, span: tuple[int, int]
) -> None:
    assert RolledUp({24: 48, 4: 100, SUMMED: 500, GONE: 5}).span_of(bucket) == span


@given(st.integers(0, 200), st.integers(0, 200))
def test_a_widened_range_cuts_nothing_and_holds_what_was_asked(one: int, other: int) -> None:
    kept = RolledUp({24: 48, 4: 100})
    first, last = min(one, other), max(one, other)
    low, high = kept.widened(first, last)
    assert low <= first <= last <= high
    assert kept.widened(low, high) == (low, high)
    assert low == kept.span_of(low)[0]


def test_where_hours_are_whole_follows_from_the_longer_spans() -> None:
    kept = RolledUp({24: 48, 4: 100, SUMMED: 500})
    assert (kept.whole_from(1), kept.whole_from(4), kept.whole_from(24)) == (100, 48, 0)
