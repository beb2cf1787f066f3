"""`edge-ldp aggregator streams …`: what is retired counts nothing, in a running service, and stays.

On either store, with several workers, and through a backup.
"""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aggregator.counting.seen_batches import build_receipt
from aggregator.plans.publisher import PlanPublisher
from aggregator.store.administration.registry import reinstate_stream, retire_stream
from aggregator.store.contract import Session, Store
from aggregator.store.opening import open_session
from aggregator.store.store_thread import StoreThread
from edge_ldp.device.frame import encode
from edge_ldp.protocol.messages import Status, StreamStatus, topic
from edge_ldp.protocol.plan import parse_plan
from edge_ldp.service.clock import Clock
from edge_ldp.service.mqtt import Message
from tests.aggregator.engines import Engine
from tests.aggregator.fakes import FakeLink, until
from tests.aggregator.home_traffic import (
    CODES,
    FIRST_SLOT,
    REPORTS,
    RULES,
    report,
    seen,
    take,
)
from tests.aggregator.operator import Operator, operator

GAS = """
[[streams]]
name = "gas"
id = 2
unit = "W"
ceiling = 1000
epsilon = 2
size = 16
survey_size = 32
horizon = 10000
"""
BOTH_STREAMS = replace(RULES, streams={1: RULES.streams[1], 2: RULES.streams[1]})
AT_S = 1_750_000_000
# pg_dump and pg_restore take a second each
BOTH = pytest.mark.parametrize(
    "engine", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)], indirect=True
)


@pytest.fixture
def desk(engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Operator:
    """Give an operator of a fleet with two streams, whose store exists."""
    engine.open().close()
    return operator(tmp_path, engine.text(more=GAS), capsys)


@pytest.fixture
def store(engine: Engine) -> Iterator[Store]:
    with closing(engine.open()) as made:
        yield made


@pytest.fixture
def session(engine: Engine, store: Store) -> Iterator[Session]:  # noqa: ARG001 (it makes the tables)
    with closing(open_session(engine.config(), "test.toml")) as made:
        yield made


def gas(device: str, batch: int) -> Message:
    slots = range(FIRST_SLOT + batch * REPORTS, FIRST_SLOT + (batch + 1) * REPORTS)
    payload = encode(2, batch, 1, slots, [slot % CODES for slot in slots])
    return Message(topic("demo", "report", device), payload)


def receipted(store: Store, device: str) -> dict[int, int]:
    receipt = build_receipt((stream, record.state) for stream, record in store.states(device))
    return {one.stream: one.highest for one in receipt.streams}


def told(device: str, made: int) -> Message:
    """Return a status that tells of so many reports of stream 1 in two batches."""
    streams = (StreamStatus(1, first=1, next=3, oldest=3, created=made, expired=0),)
    return Message(topic("demo", "status", device), Status("online", "1", streams).to_json())


def test_what_comes_of_a_retired_stream_is_refused_for_good_and_receipted_so_that_accounts_close(
    store: Store, session: Session
) -> None:
    take(store, report("a", 1), gas("a", 1), rules=BOTH_STREAMS)
    before = seen(store)
    assert retire_stream(session, 1, AT_S)
    assert not retire_stream(session, 1, AT_S + 1)
    assert store.retired() == {1: AT_S}
    take(store, report("a", 2), gas("a", 2), told("a", 2 * REPORTS), rules=BOTH_STREAMS)
    after = seen(store)
    assert (after.tally, after.presence) == (before.tally, before.presence)
    assert store.totals(2).count.sum() == 2 * REPORTS
    (row,) = store.refused()
    assert (row.reason, row.stream, row.messages, row.reports) == ("plan", 1, 1, REPORTS)
    record = dict(store.states("a"))[1]
    assert (record.created, record.counted, record.rejected) == (2 * REPORTS, REPORTS, REPORTS)
    assert record.pending == 0
    assert receipted(store, "a") == {1: 2, 2: 2}


def test_a_stream_that_is_reinstated_counts_again_and_nothing_that_was_refused(
    store: Store, session: Session
) -> None:
    take(store, report("a", 1))
    retire_stream(session, 1, AT_S)
    take(store, report("a", 2))
    assert reinstate_stream(session, 1)
    assert not reinstate_stream(session, 1)
    take(store, report("a", 2), report("a", 3))
    record = dict(store.states("a"))[1]
    assert (record.counted, record.rejected, record.duplicates) == (2 * REPORTS, REPORTS, REPORTS)
    assert store.totals(1).count.sum() == 2 * REPORTS
    assert store.retired() == {}


def test_a_plan_that_is_held_and_a_stream_that_is_retired_are_two_things(session: Session) -> None:
    retire_stream(session, 1, AT_S)
    assert session.plan_holds() == {}
    retire_stream(session, 11, AT_S)
    reinstate_stream(session, 1)
    assert session.retired() == {11: AT_S}


async def ask(desk: Operator, *command: str, code: int = 0) -> Any:
    return await asyncio.to_thread(desk.json, *command, code=code)


async def test_the_planner_leaves_a_retired_stream_alone_until_it_is_reinstated(
    engine: Engine, desk: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aggregator.plans.publisher.POLL_S", 0.02)
    first, other = (topic("demo", "plan", name) for name in ("power", "gas"))
    await ask(desk, "streams", "retire", "power")
    keeper, link = StoreThread(engine.open()), FakeLink()
    plans = PlanPublisher(engine.config(more=GAS), Clock(), keeper)
    await plans.load()
    running = asyncio.create_task(plans.run(link, {}))
    await until(lambda: other in link.published)
    await asyncio.sleep(0.2)
    assert first not in link.published
    refused = await asyncio.to_thread(desk.text, "plan", "show", code=5)
    assert "no plan was issued yet" in refused
    await ask(desk, "streams", "reinstate", "power")
    await until(lambda: first in link.published)
    await ask(desk, "plan", "publish", "--theta", "300")
    await until(lambda: parse_plan(link.published[first]).epoch == 2)

    await ask(desk, "streams", "retire", "power")
    refused = await asyncio.to_thread(desk.text, "plan", "publish", "--theta", "200", code=5)
    assert "power: is retired: reinstate it first" in refused
    link.published.clear()
    monkeypatch.setattr("aggregator.plans.planner.needs_renewal", lambda *_: True)
    await asyncio.sleep(0.2)
    assert first not in link.published
    await until(lambda: other in link.published)  # the control: that one is renewed
    await ask(desk, "streams", "reinstate", "power")
    await until(lambda: first in link.published)
    assert parse_plan(link.published[first]).epoch > 2
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    keeper.close()


def test_streams_are_listed_and_every_command_says_what_it_did(desk: Operator) -> None:
    assert desk.json("streams", "retire", "gas") == {
        "stream": "gas", "retired": True, "changed": True,
    }  # fmt: skip
    assert desk.text("streams", "retire", "gas") == (
        "gas is retired: nothing more of it counts, as before\n"
    )
    power, gas_row = desk.json("streams", "list")["streams"]
    assert (power["stream"], power["id"], power["epoch"], power["retired_s"]) == (
        "power", 1, None, None,
    )  # fmt: skip
    assert gas_row["retired_s"] is not None
    head, *rows = desk.text("streams", "list").splitlines()
    assert head.split() == ["stream", "id", "unit", "slot", "s", "epoch", "retired", "UTC"]
    assert [row.split()[0] for row in rows] == ["power", "gas"]
    status = desk.json("status")["streams"]
    assert [one["retired_s"] for one in status] == [None, gas_row["retired_s"]]
    assert "no plan yet, retired since" in desk.text("status")
    assert desk.text("streams", "reinstate", "gas") == "gas counts\n"
    assert "retired since" not in desk.text("status")
    assert "stream: expected one of power, gas" in desk.text("streams", "retire", "oil", code=2)


@BOTH
def test_what_is_retired_is_still_so_after_a_backup_and_its_restoration(
    engine: Engine, desk: Operator, tmp_path: Path
) -> None:
    with closing(engine.open()) as store:
        take(store, report("a", 1))
    desk.text("streams", "retire", "power")
    desk.text("backup", str(tmp_path / "backup"))
    desk.text("streams", "reinstate", "power")
    desk.text("restore", str(tmp_path / "backup"))
    assert desk.json("streams", "list")["streams"][0]["retired_s"] is not None
    assert desk.json("completeness")["totals"]["counted"] == REPORTS
    with closing(engine.open()) as store:
        take(store, report("a", 2))
        assert dict(store.states("a"))[1].rejected == REPORTS
