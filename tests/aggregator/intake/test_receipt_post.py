"""Receipts: retained, from what is committed, asked for again when the link is lost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from aggregator.counting.records import Changes, Record
from aggregator.counting.seen_batches import DeviceState, Gap
from aggregator.counting.tally import Tally
from aggregator.intake.moments import Moments
from aggregator.intake.receipt_post import post_receipts
from aggregator.intake.receipt_schedule import ReceiptSchedule
from aggregator.store.sqlite.store import SqliteStore
from aggregator.store.store_thread import StoreThread
from edge_ldp.protocol.messages import parse_receipt
from edge_ldp.service.clock import Clock
from edge_ldp.service.mqtt import LinkLostError, RefusedError
from tests.aggregator.fakes import FakeLink, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CLOCK = Clock()
TOPIC = "edge-ldp/v1/demo/receipt/home"


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[StoreThread]:
    store = SqliteStore.open(tmp_path / "a.db")
    state = DeviceState(highest=9, gaps=(Gap(3, 4, -1, None),))
    records = {("home", 1): Record(state), ("home", 2): Record()}
    change = Changes(records, {}, Tally(), {}, {}, frozenset(), frozenset(), frozenset())
    store.update(frozenset(), frozenset(), 1, lambda _: change)
    made = StoreThread(store)
    yield made
    made.close()


async def test_a_receipt_says_what_is_committed_of_each_stream(keeper: StoreThread) -> None:
    due, link, moments = ReceiptSchedule(), FakeLink(), Moments(CLOCK)
    due.note("home", 0.0)
    due.note("stranger", 0.0)
    task = asyncio.create_task(post_receipts(link, keeper, due, "demo", 1000, moments=moments))
    await until(lambda: len(link.published) == 2)
    task.cancel()
    receipt = parse_receipt(link.published[TOPIC])
    assert [(s.stream, s.highest, s.gaps) for s in receipt.streams] == [
        (1, 9, ((3, 4),)),
        (2, 0, ()),
    ]
    assert parse_receipt(link.published[TOPIC.replace("home", "stranger")]).streams == ()
    assert moments.ages["receipt"] >= 0


async def test_receipts_not_given_before_the_link_was_lost_are_given_later(
    keeper: StoreThread,
) -> None:
    due, link = ReceiptSchedule(), FakeLink()
    due.note("home", 0.0)
    link.fails, moments = [LinkLostError("fake:1", "gone")], Moments(CLOCK)
    with pytest.raises(LinkLostError):
        await post_receipts(link, keeper, due, "demo", 1000, moments=moments)
    assert len(due) == 1
    assert moments.ages == {}  # none went out


async def test_a_refusal_is_said_once_and_the_others_get_theirs(
    keeper: StoreThread, caplog: pytest.LogCaptureFixture
) -> None:
    due, link = ReceiptSchedule(), FakeLink()
    link.fails = [RefusedError(TOPIC, "not authorized")] * 2
    task = asyncio.create_task(
        post_receipts(link, keeper, due, "demo", 1000, moments=Moments(CLOCK))
    )
    for _ in range(3):
        due.note("home", 0.0)
        await until(lambda: not len(due))
    await until(lambda: TOPIC in link.published)
    task.cancel()
    assert len(caplog.messages) == 1


async def test_receipts_go_out_no_faster_than_allowed(keeper: StoreThread) -> None:
    due, link = ReceiptSchedule(), FakeLink()
    for at in range(120):
        due.note(f"home-{at}", 0.0)
    task = asyncio.create_task(post_receipts(link, keeper, due, "demo", 1, moments=Moments(CLOCK)))
    await until(lambda: len(link.published) >= 50)
    await asyncio.sleep(0.1)
    assert len(link.published) == 50  # a chunk, and the next after 50 s
    task.cancel()
