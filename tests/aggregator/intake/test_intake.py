"""Nothing is acknowledged before its commit: AGG-02, AGG-03, AGG-04, REP-01, REP-02, REP-12."""

import asyncio
import logging
import random
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np
import pytest

from aggregator.counting.refusals import Codes, Rules, StreamRules
from aggregator.errors import StoreError
from aggregator.intake.intake import Intake, read_messages, topics
from aggregator.intake.last_times import LastTimes
from aggregator.intake.receipt_schedule import ReceiptSchedule
from aggregator.store.sqlite.store import SqliteStore
from aggregator.store.store_thread import StoreThread
from edge_ldp.device import frame
from edge_ldp.protocol.messages import Status, StreamStatus
from edge_ldp.service.clock import Clock
from edge_ldp.service.mqtt import LinkLostError, Message
from tests.aggregator.fakes import FakeLink, make_config, until

NOW = 1_000_000
RULES = Rules(
    streams={1: StreamRules(900, 4, {1: Codes(np.ones(8, bool), 0)})},
    devices=None,
    max_devices=100,
    window_s=35 * 86_400,
    tolerance_s=300,
    now_s=float(NOW * 900),
)
STATUS = Status("online", "test", (StreamStatus(1, 1, 4, 1, 9, 0),)).to_json()


def report(batch: int, mid: int, device: str = "home") -> Message:
    payload = frame.encode(1, batch, 1, [NOW - 50 + batch], [3])
    return Message(f"edge-ldp/v1/demo/report/{device}", payload, mid=mid)


class Bench:
    def __init__(
        self, path: Path, intake: str = "", make_rules: Callable[[], Rules] = lambda: RULES
    ) -> None:
        config = make_config(path, intake)
        self.path = path
        self.store = SqliteStore.open(path)
        self.keeper = StoreThread(self.store)
        self.due = ReceiptSchedule()
        self.link = FakeLink()
        self.last_times = LastTimes(Clock())
        self.intake = Intake(config, self.keeper, self.due, make_rules, last_times=self.last_times)

    def count(self) -> int:
        return int(self.store.totals(1).count.sum())


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path / "a.db")
    yield made
    made.keeper.close()


def test_messages_are_sorted_and_what_is_not_ours_is_only_counted() -> None:
    good = report(1, 1)
    status = Message("edge-ldp/v1/demo/status/home", STATUS)
    others = [
        Message("edge-ldp/v1/demo/report/home", b"junk"),
        Message("edge-ldp/v1/demo/report/home", good.payload + b"\x00"),
        Message("edge-ldp/v1/demo/report/home", b"x" * (1 << 20)),
        Message("edge-ldp/v1/demo/report/No Name", good.payload),
        Message("edge-ldp/v1/demo/report/a/b", good.payload),
        Message("edge-ldp/v1/other/report/home", good.payload),
        Message("", good.payload),
        Message("edge-ldp/v1/demo/status/home", b"[" * 100_000),
        Message("edge-ldp/v1/demo/status/home", b'{"v":' + b"1" * 10_000 + b"}"),
        *(Message(f"edge-ldp/v1/demo/{kind}/home", b"") for kind in ("report", "stream", "status")),
    ]
    flush = read_messages("demo", [good, status, *others])
    assert [one.device for one in flush.frames] == ["home"]
    assert flush.statuses.keys() == {"home"}
    assert flush.broken == {"frame": 3, "identity": 4, "status": 2}
    assert flush.devices == {"home"}


def test_several_batches_of_one_message_are_each_settled_and_acknowledged_once_NET_25() -> None:
    first, second = report(1, 1), report(2, 2)
    several = Message(first.topic, first.payload + second.payload)
    damaged = Message(first.topic, several.payload + b"LD")
    assert read_messages("demo", [several]).broken == {}  # no refusal of nothing
    flush = read_messages("demo", [report(4, 4), several, damaged, report(3, 3)])
    assert [one.head.batch for one in flush.frames] == [4, 1, 2, 3]  # in the order they came
    assert flush.broken == {"frame": 1}  # a message that is damaged anywhere is none


def test_only_reports_streams_and_statuses_are_subscribed() -> None:
    kinds = ("report", "stream", "status")
    assert topics("demo") == [f"edge-ldp/v1/demo/{kind}/+" for kind in kinds]


async def test_what_aggregators_publish_is_handed_on_and_acknowledged_and_counts_as_nothing_NET_27(
    bench: Bench,
) -> None:
    heard = []
    intake = Intake(
        make_config(bench.path),
        bench.keeper,
        bench.due,
        lambda: RULES,
        last_times=bench.last_times,
        heed=lambda at, payload: heard.append((at, payload)),
    )
    task = asyncio.create_task(intake.run(bench.link))
    at = "edge-ldp/v1/demo"
    plan, presence = (
        Message(f"{at}/plan/power", b"{}", mid=1),
        Message(f"{at}/presence/a", b"", mid=2),
    )
    bench.link.send(plan, presence)
    await until(lambda: bench.link.acked == [1, 2])  # no commit is waited for
    assert bench.store.last_commit_s() is None
    bench.link.send(plan, report(1, 3), presence)
    await until(lambda: bench.link.acked == [1, 2, 1, 3, 2])
    assert heard == [(one.topic, one.payload) for one in (plan, presence)] * 2
    assert (bench.count(), bench.store.refused()) == (1, [])
    task.cancel()


async def test_messages_are_acknowledged_in_order_after_their_commit(bench: Bench) -> None:
    link = bench.link
    task = asyncio.create_task(bench.intake.run(link))
    link.send(Message("edge-ldp/v1/demo/status/home", STATUS, mid=10))
    await until(lambda: len(link.events) == 1)
    assert bench.last_times.ages.keys() == {"commit"}
    link.events.clear()
    link.send(*(report(batch, mid=batch + 10) for batch in range(1, 6)))
    await until(lambda: len(link.events) == 5)
    assert bench.last_times.ages["report"] >= bench.last_times.ages["commit"] >= 0
    assert link.events == [("ack", mid) for mid in range(11, 16)]
    assert bench.count() == 5
    link.break_off()
    with pytest.raises(LinkLostError):
        await task


async def test_nothing_is_acknowledged_while_the_store_is_held_AGG_04(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """Hold, one line; then it goes on by itself with every message counted once."""
    other = sqlite3.connect(bench.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    task = asyncio.create_task(bench.intake.run(bench.link))
    with caplog.at_level(logging.WARNING):
        bench.link.send(report(1, 1), report(2, 2))
        await until(lambda: bench.keeper.is_held)
        await asyncio.sleep(1.0)
        assert bench.link.events == []
        other.execute("ROLLBACK")
        await until(lambda: len(bench.link.events) == 2)
    other.close()
    assert bench.count() == 2
    assert not bench.keeper.is_held
    assert len(caplog.messages) == 2
    task.cancel()


async def test_a_small_window_does_not_stall_a_large_flush_AGG_03(bench: Bench) -> None:
    """The broker sends 3 messages and waits for their acknowledgement."""
    link = bench.link
    task = asyncio.create_task(bench.intake.run(link))
    for start in range(1, 31, 3):
        link.send(*(report(batch, mid=batch) for batch in range(start, start + 3)))
        await link.acknowledged(start + 2)
    assert bench.count() == 30
    task.cancel()


async def test_a_flush_that_is_delivered_again_counts_once(bench: Bench) -> None:
    """AGG-01: killed between commit and acknowledgement, the broker sends it all again."""
    found: list[int] = []
    for _ in range(2):
        link = FakeLink([report(batch, mid=batch) for batch in range(1, 6)])
        task = asyncio.create_task(bench.intake.run(link))
        await link.acknowledged(5)
        twice = 5 * len(found)  # what came again is told a little later (AGG-37)
        await until(lambda: bench.store.states("home")[0][1].duplicates == twice)  # noqa: B023
        found.append(bench.count())
        task.cancel()
    assert found == [5, 5]


async def test_killed_200_times_under_backlog_it_counts_every_message_once(bench: Bench) -> None:
    """AGG-01, AGG-02: whatever was acknowledged was committed, and the rest is sent again."""
    names = [f"home-{at}" for at in range(10)]
    messages = [
        report(batch, mid=batch * 10 + at, device=name)
        for batch in range(1, 41)
        for at, name in enumerate(names)
    ]
    draw = random.Random(11)  # noqa: S311 (when to kill)
    unacknowledged = {message.mid: message for message in messages}
    for _ in range(200):
        link = FakeLink(list(unacknowledged.values())[:20])
        task = asyncio.create_task(bench.intake.run(link))
        await asyncio.sleep(draw.random() * 0.008)
        task.cancel()
        await asyncio.wait([task])
        states = await bench.keeper.call(lambda store: {k: r for (k, _), r in store.records()})
        for mid in link.acked:
            message = unacknowledged.pop(mid)
            device = message.topic.rsplit("/", 1)[1]
            assert states[device].state.receipt(1).covers(mid // 10)
    link = FakeLink(unacknowledged.values())
    task = asyncio.create_task(bench.intake.run(link))
    await link.acknowledged(len(unacknowledged))
    task.cancel()
    assert bench.count() == 400
    assert {r.counted for _, r in bench.store.records()} == {40}


async def test_an_unusable_store_ends_the_intake_with_nothing_acknowledged(bench: Bench) -> None:
    with bench.store.reading() as db:
        db.execute("DROP TABLE counts")
    bench.link.send(report(1, 1))
    with pytest.raises(StoreError):
        await bench.intake.run(bench.link)
    assert bench.link.events == []


async def test_statuses_ask_at_once_gaps_soon_and_news_lazily(bench: Bench) -> None:
    task = asyncio.create_task(bench.intake.run(bench.link))
    now = asyncio.get_running_loop().time()
    bench.link.send(
        report(1, 1, "steady"),
        report(5, 2, "gapped"),
        Message("edge-ldp/v1/demo/status/asking", STATUS, mid=3),
    )
    await until(lambda: len(bench.due) == 3)
    assert bench.due.take(now + 0.9, 9) == ["asking"]
    assert bench.due.take(now + 30, 9) == ["gapped"]
    assert bench.due.take(now + 3590, 9) == []
    assert bench.due.take(now + 3700, 9) == ["steady"]
    task.cancel()
