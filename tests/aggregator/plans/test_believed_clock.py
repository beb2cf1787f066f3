"""AGG-16: a machine's clock that jumps, drifts, or stands behind what was committed."""

import logging

import pytest

from aggregator.plans.clock_jumps import BELIEVE_S, BelievedClock
from edge_ldp.service.clock import Clock

DAY_S = 86_400
NOW_S = 1_700_000_000.0


class SetClock(Clock):
    """A clock that is set by hand; `wall` may jump, `steady` does not."""

    wall, steady = NOW_S, 77.0

    def now(self) -> float:
        return type(self).wall

    def monotonic(self) -> float:
        return type(self).steady


@pytest.fixture(autouse=True)
def reset() -> None:
    SetClock.wall, SetClock.steady = NOW_S, 77.0


def passed(seconds: float, *, jump_s: float = 0.0) -> None:
    SetClock.wall += seconds + jump_s
    SetClock.steady += seconds


@pytest.mark.parametrize("jump_s", [DAY_S, -DAY_S])
def test_a_jump_is_told_once_and_not_followed_AGG_16(
    jump_s: int, caplog: pytest.LogCaptureFixture
) -> None:
    clock = BelievedClock(SetClock(), 300)
    clock.begin(int(NOW_S))
    passed(10, jump_s=jump_s)
    for _ in range(50):
        passed(1)
        clock.now()
    assert clock.now() == NOW_S + 60
    assert clock.closed_s == NOW_S + 60
    assert clock.health == "degraded: clock jumped"
    passed(1, jump_s=-jump_s)
    assert clock.now() == NOW_S + 61
    assert clock.health == "ok"
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    assert f"{jump_s:+d} s" in caplog.messages[0]


def test_what_was_closed_before_the_start_stays_closed_AGG_16(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = BelievedClock(SetClock(), 300)
    clock.begin(int(NOW_S) + DAY_S)
    assert clock.now() == NOW_S
    assert clock.closed_s == NOW_S + DAY_S
    assert clock.health == "degraded: clock behind the store"
    assert "86400 s behind the last commit" in caplog.text
    passed(DAY_S - 200)
    clock.now()
    assert clock.health == "ok"


def test_a_clock_that_stands_behind_the_store_for_an_hour_was_ahead_before_PLN_18(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = BelievedClock(SetClock(), 300)
    clock.begin(int(NOW_S) + 400 * DAY_S)
    passed(BELIEVE_S - 1)
    clock.now()
    assert (clock.closed_s, clock.health) == (
        NOW_S + 400 * DAY_S,
        "degraded: clock behind the store",
    )
    passed(1)
    assert clock.now() == clock.closed_s == NOW_S + BELIEVE_S
    assert clock.health == "ok"
    assert "ahead once" in caplog.text
