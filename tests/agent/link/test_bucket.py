"""A bucket slows down and refuses nothing; plans of a flood wait their turn (PLN_13)."""

import asyncio

import pytest

from agent.link.bucket import Bucket
from agent.link.plan_queue import CHECKS_AT_ONCE, LONGEST, WAITING, PlanQueue


def test_a_burst_is_free_and_then_each_waits_its_turn() -> None:
    bucket = Bucket(2.0, 3)
    assert [bucket.take(0.0) for _ in range(5)] == [0, 0, 0, 0.5, 1.0]


def test_time_refills_up_to_the_burst_and_no_further() -> None:
    bucket = Bucket(2.0, 3)
    for _ in range(3):
        bucket.take(0.0)
    assert bucket.take(0.5) == 0
    assert bucket.take(0.5) == 0.5
    assert [bucket.take(1e9) for _ in range(4)] == [0, 0, 0, 0.5]


def test_a_clock_that_goes_back_lends_nothing() -> None:
    bucket = Bucket(1.0, 1)
    assert bucket.take(100.0) == 0
    assert bucket.take(50.0) == 1
    assert bucket.take(51.0) == 1


class Gate(Bucket):
    """A bucket that a test can let everything through."""

    is_open = False

    def take(self, now_s: float) -> float:
        return 0.0 if self.is_open else super().take(now_s)


async def test_a_flood_of_plans_keeps_the_newest_and_is_read_slowly_PLN_13() -> None:
    pace = Gate(0.001, CHECKS_AT_ONCE)  # however slow the machine
    queue = PlanQueue(pace)
    for number in range(10_000):
        queue.put("power", b"%d" % number)
    got = [await queue.get() for _ in range(WAITING)]
    assert got == [("power", b"%d" % number) for number in range(10_000 - WAITING, 10_000)]
    for number in range(CHECKS_AT_ONCE - WAITING):
        queue.put("power", b"%d" % number)
        await queue.get()
    queue.put("power", b"last")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await queue.get()
    pace.is_open = True
    assert await queue.get() == ("power", b"last"), "what was waited for in vain is still there"


async def test_no_plan_in_the_queue_is_longer_than_it_takes_to_refuse_it_NET_14() -> None:
    queue = PlanQueue()
    queue.put("power", b"x" * 10_000_000)
    assert len((await queue.get())[1]) == LONGEST
