"""The clock that everything is given: the system's, or one that runs faster."""

import asyncio
import time

from edge_ldp.service.clock import SYSTEM_CLOCK, Clock


def test_the_system_clock_is_the_systems() -> None:
    for ours, theirs in ((SYSTEM_CLOCK.now, time.time), (SYSTEM_CLOCK.monotonic, time.monotonic)):
        before, told, after = theirs(), ours(), theirs()
        assert before <= told <= after
    assert SYSTEM_CLOCK.real(5.0) == 5.0


def test_clocks_of_the_same_three_numbers_agree() -> None:
    started = time.time() - 2
    one, other = (Clock(1e9, started, 900) for _ in range(2))
    before, told, also, after = time.time(), one.now(), other.now(), time.time()
    assert (before - started) * 900 <= told - 1e9 <= also - 1e9 <= (after - started) * 900
    assert one.real(900) == 1


async def test_sleep_is_as_much_shorter_as_the_clock_is_faster() -> None:
    fast = Clock(rate=1000)
    before, before_there = time.monotonic(), fast.monotonic()
    async with asyncio.timeout(40):
        await fast.sleep(50)
    assert time.monotonic() - before > 0.04
    assert fast.monotonic() - before_there >= 45
    async with asyncio.timeout(300):
        await fast.sleep(-1)
