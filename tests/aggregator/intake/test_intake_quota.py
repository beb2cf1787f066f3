"""REP-09: a device that floods is not read any more, and nothing that counts is lost by it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from edge_ldp.device import frame
from edge_ldp.service.mqtt import Message
from tests.aggregator.fakes import FakeLink, until
from tests.aggregator.intake.test_intake import NOW, RULES, STATUS, Bench, report

QUOTA = "quota_messages = 100\nreceipt_interval_s = 3600"


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path / "a.db", QUOTA)
    yield made
    made.keeper.close()


async def take(bench: Bench, *messages: Message) -> None:
    bench.link = FakeLink(one._replace(mid=at + 1) for at, one in enumerate(messages))
    task = asyncio.create_task(bench.intake.run(bench.link))
    await bench.link.acknowledged(len(messages))
    task.cancel()
    await asyncio.wait([task])


def refused(bench: Bench) -> dict[str, int]:
    return {row.reason: row.messages for row in bench.store.refused()}


@pytest.mark.parametrize(
    ("kind", "payload"),
    [("report", report(1, 1).payload), ("report", b"junk"), ("status", STATUS)],
    ids=["duplicates", "junk", "statuses"],
)
async def test_what_brings_nothing_new_is_refused_unread_above_the_quota_REP_09(
    bench: Bench, kind: str, payload: bytes
) -> None:
    flood = [Message(f"edge-ldp/v1/demo/{kind}/home", payload)] * 200
    await take(bench, report(1, 0), report(1, 0, "other"))
    await take(bench, *flood)
    assert "rate" not in refused(bench)
    await take(bench, *flood, report(2, 0), report(2, 0, "other"))
    assert refused(bench)["rate"] == 201
    states = dict(bench.store.states("home"))
    assert not states[1].state.receipt(1).covers(2)  # it is kept, and comes again
    assert dict(bench.store.states("other"))[1].counted == 2


async def test_a_backlog_that_counts_is_no_flood_REP_09(bench: Bench) -> None:
    slots = range(NOW - 2000, NOW)
    batches = [frame.encode(1, at + 1, 1, [slot], [3]) for at, slot in enumerate(slots)]
    await take(bench, *(Message("edge-ldp/v1/demo/report/home", one) for one in batches))
    assert refused(bench) == {}
    assert bench.count() == 2000


async def test_in_the_next_receipt_interval_it_is_heard_again_REP_09(tmp_path: Path) -> None:
    now = [RULES.now_s]
    bench = Bench(tmp_path / "a.db", QUOTA, lambda: replace(RULES, now_s=now[0]))
    await take(bench, *[report(1, 0)] * 300)
    await take(bench, report(2, 0))
    assert bench.count() == 1
    now[0] += 3600
    await take(bench, report(2, 0))
    assert bench.count() == 2
    await until(lambda: len(bench.due) == 1)  # and its receipt was asked for all the while
    bench.keeper.close()
