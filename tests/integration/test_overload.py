"""More comes than can be stored, for a while: AGG-15."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.aggregator_bench import (
    Aggregator,
    Wire,
    assert_counts_are_right,
    until,
    wires,
)
from tests.integration.conftest import EVERY_SECOND, RealBroker
from tests.integration.test_aggregator_kills import make_batches

pytestmark = pytest.mark.slow
QUEUE = 2000
SHORT_QUEUE = EVERY_SECOND.replace("max_queued_messages 10000000", f"max_queued_messages {QUEUE}")
HOLD_S, FREE_S = 0.4, 0.02
SECONDS, PER_SECOND = 20, 800
GROWTH_KIB = 16 << 10


def hold_mostly(store: Path, over: threading.Event) -> None:
    """Lock others out of the store nearly all the time; in a thread, so that it keeps its time."""
    with closing(sqlite3.connect(store, isolation_level=None)) as db:
        while not over.is_set():
            db.execute("BEGIN IMMEDIATE")
            over.wait(HOLD_S)
            db.execute("ROLLBACK")
            over.wait(FREE_S)


async def send_again(wire: Wire) -> None:
    """Do as devices do: ask, hear, and send what no receipt covers, no more at once than fits."""
    async with asyncio.timeout(120):
        while wire.kept():
            before = wire.heard()
            await wire.send(device.status() for device in wire.devices.values())
            await until(lambda before=before: wire.heard() >= before + len(wire.devices))
            kept = [
                (device.topic, payload)
                for device in wire.devices.values()
                for payload in device.kept.values()
            ]
            await wire.send(kept[: QUEUE // 2])
            await asyncio.sleep(0.2)


async def test_twice_what_it_can_store_is_held_back_bounded_and_made_up_for_AGG_15(
    tmp_path: Path, make_broker: Callable[[str], RealBroker]
) -> None:
    """The broker's queue overflows, as NET-05 says; memory is flat; devices send again."""
    broker = make_broker(SHORT_QUEUE)
    aggregator = Aggregator(tmp_path, broker, intake="flush_messages = 100")
    aggregator.start()
    over = threading.Event()
    try:
        async with wires(broker) as make:
            wire = await make()
            await wire.plan()
            messages = make_batches(wire, 200, SECONDS * PER_SECOND // 200, 2)
            holding = threading.Thread(target=hold_mostly, args=(aggregator.store, over))
            holding.start()
            memory: list[int] = []
            for start in range(0, len(messages), PER_SECOND):
                began = asyncio.get_running_loop().time()
                await wire.send(messages[start : start + PER_SECOND])
                memory.append(aggregator.memory_kib())
                spent = asyncio.get_running_loop().time() - began
                await asyncio.sleep(max(0.0, 1 - spent))
            behind = len(messages) - aggregator.counted() // 2
            over.set()
            await asyncio.to_thread(holding.join)
            assert behind > len(messages) // 2  # what it could store was less than half
            assert max(memory[5:]) - memory[5] < GROWTH_KIB
            log = (broker.directory / "mosquitto.log").read_text()
            assert "being dropped" in log
            assert "locked by another process" in aggregator.log.read_text()
            await until(lambda: aggregator.counted() // 2 >= len(messages) - behind + QUEUE // 2)
            await send_again(wire)
            await assert_counts_are_right(aggregator, wire)
    finally:
        over.set()
        aggregator.kill()
