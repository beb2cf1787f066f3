"""How fast and how old: by monotonic time, whatever the wall clock says."""

import pytest

from agent.claims.limits import DAY_SECONDS, BatchPace, SlotCount

SLOT_S = 900
FIRST = 2_000_000


@pytest.mark.parametrize(
    ("elapsed_s", "allowed"),
    [
        (0, 2),
        (899.9, 2),
        (900, 3),
        (1799, 3),
        (1800, 4),
        (86_400, 98),
        (10 * 365 * 86_400, 350_402),
    ],
)
def test_claims_are_allowed_at_one_for_each_slot_of_monotonic_time_AGT_10(
    elapsed_s: float, allowed: int
) -> None:
    count = SlotCount(SLOT_S, FIRST, 5000.0)
    assert count.oldest(1 << 40, 5000.0 + elapsed_s, 0) == FIRST + allowed


def test_slots_are_taken_no_faster_than_time_and_a_refused_one_is_not_counted() -> None:
    count = SlotCount(SLOT_S, FIRST, 5000.0)
    assert [count.take(5000.0) for _ in range(4)] == [True, True, False, False]
    assert [count.take(5000.0 + SLOT_S) for _ in range(2)] == [True, False]


def test_nothing_is_too_old_because_the_wall_clock_jumped_AGT_10_AGT_16() -> None:
    count = SlotCount(SLOT_S, FIRST, 5000.0)
    day = DAY_SECONDS // SLOT_S
    assert count.oldest(FIRST, 5000.0, 1) == FIRST - day
    assert count.oldest(FIRST + 10 * day, 5000.0, 1) == FIRST + 2 - day
    assert count.oldest(FIRST + 10 * day, 5000.0 + 10 * DAY_SECONDS, 1) == FIRST + 9 * day
    assert count.oldest(FIRST - 10 * day, 5000.0, 1) == FIRST - 11 * day


def test_batches_keep_their_interval() -> None:
    pace = BatchPace(60.0, 1000.0)
    assert [pace.is_time(at) for at in (1000.0, 1059.9, 1060.0)] == [False, False, True]
