"""The clock that everything is given: the system's, or one that runs faster."""

import asyncio
import time

import pytest

from edge_ldp.service.clock import SYSTEM_CLOCK, Clock


def test_the_system_clock_is_the_systems() -> None:
    assert SYSTEM_CLOCK.now() == pytest.approx(time.time(), abs=1)
    assert SYSTEM_CLOCK.monotonic() == pytest.approx(time.monotonic(), abs=1)
    assert SYSTEM_CLOCK.real(5.0) == 5.0


def test_clocks_of_the_same_three_numbers_agree() -> None:
    started = time.time() - 2
    one, other = (Clock(1e9, started, 900) for _ in range(2))
    assert one.now() == pytest.approx(1e9 + 1800, abs=900)
    assert one.now() == pytest.approx(other.now(), abs=450)
    assert one.real(900) == 1


async def test_sleep_is_as_much_shorter_as_the_clock_is_faster() -> None:
    fast = Clock(rate=1000)
    before, before_there = time.monotonic(), fast.monotonic()
    await fast.sleep(50)
    assert 0.04 < time.monotonic() - before < 5
    assert fast.monotonic() - before_there >= 45
    async with asyncio.timeout(60):
        await fast.sleep(-1)
