"""When telegrams were true and slots are over: by this device's clock or the meter's."""

import pytest

from agent.claims.dating import Dating, parted
from agent.claims.slots import SlotValues

NOW_S = 1_800_000_000


@pytest.mark.parametrize("told_s", [None, 0, NOW_S - 10, NOW_S + 10**9])
def test_by_arrival_the_meters_time_does_not_matter_SER_17(told_s: int | None) -> None:
    assert Dating(by_meter=False, tolerance_s=30).date(told_s, NOW_S) == NOW_S


@pytest.mark.parametrize(
    ("told_s", "date_s"),
    [(None, None), (NOW_S, NOW_S), (NOW_S - 30, NOW_S - 30), (NOW_S + 30, NOW_S + 30),
     (NOW_S - 31, None), (NOW_S + 31, None)],
)  # fmt: skip
def test_by_the_meter_its_time_counts_within_the_tolerance_SER_17(
    told_s: int | None, date_s: int | None
) -> None:
    assert Dating(by_meter=True, tolerance_s=30).date(told_s, NOW_S) == date_s


def test_a_meter_that_dates_its_telegrams_may_be_behind() -> None:
    assert Dating(by_meter=False, tolerance_s=30).passed(NOW_S) == NOW_S
    assert Dating(by_meter=True, tolerance_s=30).passed(NOW_S) == NOW_S - 30


def test_slots_that_a_meter_ahead_closed_wait_for_our_clock() -> None:
    closed = [SlotValues(slot, (1,)) for slot in (4, 5, 6)]
    assert parted(closed, 5) == (closed[:1], closed[1:])
