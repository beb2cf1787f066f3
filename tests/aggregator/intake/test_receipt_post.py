"""Receipts: retained, from what is committed, asked for again when the link is lost."""

import asyncio
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from aggregator.counting.records import Changes, Record
from aggregator.counting.seen_batches import ClosedSeries, DeviceState, Gap
from aggregator.counting.tally import Tally
from aggregator.intake.last_times import LastTimes
from aggregator.intake.receipt_post import ReceiptSeal, post_receipts
from aggregator.intake.receipt_schedule import ReceiptSchedule
from aggregator.store.contract import identity
from aggregator.store.sqlite.store import SqliteStore
from aggregator.store.store_thread import StoreThread
from edge_ldp.protocol.messages import StreamReceipt, parse_receipt
from edge_ldp.protocol.signing import Signer, unwrap
from edge_ldp.service.clock import Clock
from edge_ldp.service.mqtt import LinkLostError, RefusedError
from tests.aggregator.fakes import FakeLink, until

CLOCK = Clock()
SEAL = ReceiptSeal(CLOCK.now)
NONE: frozenset[str] = frozenset()
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
    due, link, last_times = ReceiptSchedule(), FakeLink(), LastTimes(CLOCK)
    due.note("home", 0.0)
    due.note("stranger", 0.0)
    task = asyncio.create_task(
        post_receipts(link, keeper, due, "demo", 1000, last_times=last_times, seal=SEAL)
    )
    await until(lambda: len(link.published) == 2)
    task.cancel()
    receipt = parse_receipt(link.published[TOPIC])
    assert [(s.stream, s.highest, s.gaps) for s in receipt.streams] == [
        (1, 9, ((3, 4),)),
        (2, 0, ()),
    ]
    assert parse_receipt(link.published[TOPIC.replace("home", "stranger")]).streams == ()
    assert last_times.ages["receipt"] >= 0


async def test_a_receipt_of_a_series_names_store_device_and_time_and_is_signed_NET_24(
    keeper: StoreThread,
) -> None:
    other = ClosedSeries(0, 40, 1, (Gap(41, (1 << 32) - 1, 8, 9),), b"")
    state = DeviceState(9, 99, 0, (Gap(3, 4, -1, None),), b"", 77, (other,))
    change = Changes({("new", 1): Record(state, rejected=3)}, {}, Tally(), {}, {}, NONE, NONE, NONE)
    await keeper.call(lambda store: store.update(frozenset(), NONE, 1, lambda _: change))
    name = await keeper.call(identity)
    assert await keeper.call(identity) == name
    public = b"k" * 32
    signer = Signer(public, lambda signed: sha256(public + signed).digest() * 2)
    sealed = ReceiptSeal(lambda: 12.9, signer)
    payload = await keeper.call(lambda store: sealed.wrap(store, "new"))
    envelope = unwrap(payload)
    assert envelope is not None
    told = b"edge-ldp receipt v2\0" + envelope.content
    assert envelope.signature == sha256(public + told).digest() * 2
    receipt = parse_receipt(envelope.content)
    assert receipt[1:] == (name, 12, "new", 3)
    assert receipt.streams == (StreamReceipt(1, 9, ((3, 4),), 77, 99), StreamReceipt(1, 40, (), 0))
    old = await keeper.call(lambda store: sealed.wrap(store, "home"))
    assert (parse_receipt(old).store, old[:7]) == ("", b'{"v":1,')  # it sent frames v1 alone


async def test_receipts_not_given_before_the_link_was_lost_are_given_later(
    keeper: StoreThread,
) -> None:
    due, link = ReceiptSchedule(), FakeLink()
    due.note("home", 0.0)
    link.fails, last_times = [LinkLostError("fake:1", "gone")], LastTimes(CLOCK)
    with pytest.raises(LinkLostError):
        await post_receipts(link, keeper, due, "demo", 1000, last_times=last_times, seal=SEAL)
    assert len(due) == 1
    assert last_times.ages == {}  # none went out


async def test_a_refusal_is_said_once_and_the_others_get_theirs(
    keeper: StoreThread, caplog: pytest.LogCaptureFixture
) -> None:
    due, link = ReceiptSchedule(), FakeLink()
    link.fails = [RefusedError(TOPIC, "not authorized")] * 2
    task = asyncio.create_task(
        post_receipts(link, keeper, due, "demo", 1000, last_times=LastTimes(CLOCK), seal=SEAL)
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
    task = asyncio.create_task(
        post_receipts(link, keeper, due, "demo", 1, last_times=LastTimes(CLOCK), seal=SEAL)
    )
    await until(lambda: len(link.published) >= 50)
    await asyncio.sleep(0.1)
    assert len(link.published) == 50  # a chunk, and the next after 50 s
    task.cancel()
