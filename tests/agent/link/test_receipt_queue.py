"""Receipts in a flood: the newest are looked at, slowly."""

import pytest

from agent.link.plan_queue import CHECKS_AT_ONCE, LONGEST_RECEIPT, WAITING, ReceiptQueue
from edge_ldp.service.mqtt import Message


def test_a_flood_of_receipts_is_looked_at_slowly_NET_24() -> None:
    queue, looked = ReceiptQueue(), []
    for at in range(100_000):
        queue.put(Message("r", str(at).encode()))
        while (message := queue.take(at / 10_000)) is not None:
            looked.append(int(message.payload))
    assert len(looked) == CHECKS_AT_ONCE + 9  # in ten seconds
    queue.put(Message("r", b"1" * (LONGEST_RECEIPT + 1)))
    rest = [queue.take(100.0) for _ in range(WAITING + 1)]
    assert [int(one.payload) for one in rest if one] == list(range(100_000 - WAITING, 100_000))


async def test_who_waits_is_told_how_long() -> None:
    queue = ReceiptQueue()
    for _ in range(CHECKS_AT_ONCE):
        queue.put(Message("r", b""))
        assert queue.take(5.0)
    queue.put(Message("r", b""))
    assert queue.take(5.0) is None
    assert await queue.due(lambda: 5.5) == pytest.approx(0.5)
    assert queue.take(6.0)
