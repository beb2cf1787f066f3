"""AGG-16: a clock that jumps is held back and told, a clock that drifts is followed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.plans.clock_jumps import BELIEVE_S, SteadyTime

DAY_S = 86_400
WALL_S = 1_700_000_000.0
TOLERANCE_S = 300


def ticks(low_s: int, high_s: int) -> st.SearchStrategy[float]:
    """Times of day that floats add up without rounding: whole 1024ths of a second."""
    return st.integers(low_s * 1024, high_s * 1024).map(lambda tick: tick / 1024)


def started() -> SteadyTime:
    time = SteadyTime(TOLERANCE_S)
    assert time.at(WALL_S, 50.0) == WALL_S
    return time


@pytest.mark.parametrize("jump_s", [DAY_S, -DAY_S, 301, -301])
def test_AGG_16_time_goes_on_evenly_through_a_jump_and_back(jump_s: int) -> None:
    time = started()
    assert time.at(WALL_S + 10 + jump_s, 60.0) == WALL_S + 10
    assert time.jump_s == jump_s
    assert time.at(WALL_S + 20, 70.0) == WALL_S + 20
    assert time.jump_s == 0


@pytest.mark.parametrize("jump_s", [DAY_S, -DAY_S])
def test_AGG_16_a_jump_that_lasts_an_hour_was_a_correction(jump_s: int) -> None:
    time = started()
    time.at(WALL_S + 10 + jump_s, 60.0)
    wall_s = WALL_S + 10 + BELIEVE_S + jump_s
    assert time.at(wall_s - 1, 60.0 + BELIEVE_S - 1) == wall_s - 1 - jump_s
    assert time.at(wall_s, 60.0 + BELIEVE_S) == wall_s
    assert time.jump_s == 0


@given(st.lists(st.tuples(st.floats(0.1, 1000), st.floats(-TOLERANCE_S, TOLERANCE_S))))
def test_a_clock_that_is_slewed_is_followed(steps: list[tuple[float, float]]) -> None:
    time, wall_s, monotonic_s = started(), WALL_S, 50.0
    for passed_s, drift_s in steps:
        monotonic_s += passed_s
        wall_s += passed_s + 0.99 * drift_s
        assert time.at(wall_s, monotonic_s) == wall_s
    assert time.jump_s == 0


@given(st.lists(st.tuples(ticks(0, 1000), ticks(-(10**6), 10**6)), max_size=30))
def test_AGG_16_whatever_the_wall_clock_says_time_goes_at_most_as_far_as_it_is_held(
    steps: list[tuple[float, float]],
) -> None:
    """Within the hour that a jump is held, time never leaves the steady one by the tolerance."""
    time, monotonic_s, offset = started(), 50.0, WALL_S - 50.0
    for passed_s, off_s in steps:
        monotonic_s += passed_s
        found = time.at(monotonic_s + WALL_S - 50.0 + off_s, monotonic_s)
        if time.jump_s:
            assert found == monotonic_s + offset
        offset = found - monotonic_s
