"""`edge-ldp aggregator plan …` beside a running service: shown, proposed, ordered and held."""

import asyncio
import io
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aggregator.config import parse_config
from aggregator.plans import planner
from aggregator.plans.publisher import PlanPublisher
from aggregator.store.contract import PlanRow, Store
from aggregator.store.sqlite.store import SqliteStore
from aggregator.store.store_thread import StoreThread
from edge_ldp.protocol.plan import Plan, last_epoch, parse_plan
from edge_ldp.service.clock import Clock
from edge_ldp.vectorized import perturb_many
from tests.aggregator.engines import Engine
from tests.aggregator.fakes import CONFIG, FakeLink, until
from tests.aggregator.operator import Operator, operator
from tests.aggregator.store_contract import changes
from tests.aggregator.tallies import count_batches

TOPIC = "edge-ldp/v1/demo/plan/power"


@asynccontextmanager
async def serving(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, retained: bytes | None = None
) -> AsyncIterator[tuple[Store, FakeLink]]:
    """Run the part of the service that issues plans."""
    monkeypatch.setattr("aggregator.plans.publisher.POLL_S", 0.02)
    store = engine.open()
    keeper, link = StoreThread(store), FakeLink()
    plans = PlanPublisher(engine.config(), Clock(), keeper)
    await plans.load()
    running = asyncio.create_task(plans.run(link, {} if retained is None else {TOPIC: retained}))
    await until(lambda: TOPIC in link.published)
    try:
        yield store, link
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        keeper.close()


def count_surveys(store: Store, plan: Plan, reports: int) -> None:
    rng = np.random.default_rng(1)
    codes = perturb_many(plan.survey_mechanism, rng.integers(0, 100, reports), entropy=rng.bytes)
    codes += plan.stream_mechanism.code_count
    slots = int(time.time()) // plan.slot_seconds - np.arange(reports)
    tally = count_batches([((1, plan.epoch, 0, 0), 4, slots, codes)])
    store.update(frozenset(), frozenset(), 1, lambda _: changes(tally=tally))


async def ask(desk: Operator, *command: str, code: int = 0) -> Any:
    return await asyncio.to_thread(desk.json, *command, code=code)


async def test_a_plan_that_is_ordered_is_published_by_the_running_service(
    engine: Engine, desk: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(engine, monkeypatch) as (store, link):
        first = parse_plan(link.published[TOPIC])
        made = await ask(desk, "plan", "publish", "--theta", "300", "--share", "1/8", "--hold")
        assert (made["plan"]["epoch"], made["plan"]["theta"]) == (first.epoch + 1, 300)
        await until(lambda: parse_plan(link.published[TOPIC]).epoch == 2)
        plan = parse_plan(link.published[TOPIC])
        assert (plan.theta, plan.share) == (300, (8192, 65_536))
        assert plan.certificate == made["plan"]["certificate"] != first.certificate
        shown = await ask(desk, "plan", "show")
        assert shown["plan"] == made["plan"]
        assert shown["held_s"] is not None
        assert [row.epoch for row in store.plans()] == [1, 2]


async def test_one_retained_plan_at_the_top_stops_no_start_PLN_15(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(engine, monkeypatch) as (_, link):
        first = parse_plan(link.published[TOPIC])
    for epoch in ((1 << 32) - 1, last_epoch(time.time()) + 9):
        hostile = replace(first, epoch=epoch).to_json()
        async with serving(engine, monkeypatch, hostile) as (store, link):
            await until(lambda: parse_plan(link.published[TOPIC]).epoch < 10)
            assert max(row.epoch for row in store.plans()) < 10


async def test_a_repair_goes_above_what_devices_took_from_somebody_else_PLN_15(
    engine: Engine, desk: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = last_epoch(time.time())
    async with serving(engine, monkeypatch) as (_, link):
        first = parse_plan(link.published[TOPIC])
        for above in (str(most + 2), str((1 << 32) - 1), "-1"):
            said = await asyncio.to_thread(desk.text, "plan", "repair", "--above", above, code=2)
            assert f"expected 0 to {most}, the last epoch that devices believe now" in said
            assert "edge-ldp agent plans forget" in said
        made = await ask(desk, "plan", "repair", "--above", str(most - 5))
        assert made["plan"]["epoch"] == most - 4
        await until(lambda: parse_plan(link.published[TOPIC]).epoch == most - 4)
        plan = parse_plan(link.published[TOPIC])
        assert plan.certificate == first.certificate
        assert plan.survey_mechanism == first.survey_mechanism


@pytest.mark.parametrize("above", [(1 << 32) - 1, 0], ids=["2^32-1", "believed by 1"])
async def test_a_repair_deletes_stored_plans_that_no_device_believes_PLN_15(
    engine: Engine, desk: Operator, monkeypatch: pytest.MonkeyPatch, above: int
) -> None:
    """An earlier version went above any retained epoch, so that none was left for a next plan."""
    async with serving(engine, monkeypatch) as (store, link):
        first = parse_plan(link.published[TOPIC])
        top = above or last_epoch(time.time()) + 9
        taken = replace(first, epoch=top)
        store.add_plan(PlanRow(1, top, taken.issued_s, taken.to_json()))
        made = await ask(desk, "plan", "repair", "--above", "7")
        assert made["plan"]["epoch"] == 8
        await until(lambda: parse_plan(link.published[TOPIC]).epoch == 8)
        assert [row.epoch for row in store.plans()] == [1, 8]
        assert parse_plan(link.published[TOPIC]).certificate == first.certificate


async def test_a_repair_deletes_no_plan_that_reports_were_counted_under_PLN_15(
    engine: Engine, desk: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(engine, monkeypatch) as (store, link):
        taken = replace(parse_plan(link.published[TOPIC]), epoch=(1 << 32) - 1)
        store.add_plan(PlanRow(1, taken.epoch, taken.issued_s, taken.to_json()))
        count_surveys(store, taken, 5)
        said = await asyncio.to_thread(desk.text, "plan", "repair", "--above", "7", code=5)
        assert "reports were counted under epoch 4294967295" in said
        assert [row.epoch for row in store.plans()] == [1, taken.epoch]


@pytest.mark.parametrize(
    "engine", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)], indirect=True
)
async def test_a_held_plan_stays_until_it_is_released_and_a_proposal_writes_nothing(
    engine: Engine, desk: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(engine, monkeypatch) as (store, link):
        first = parse_plan(link.published[TOPIC])
        assert await ask(desk, "plan", "hold") == {
            "stream": "power", "held": True, "changed": True,
        }  # fmt: skip
        assert (await ask(desk, "plan", "hold"))["changed"] is False
        none = await ask(desk, "plan", "propose")
        assert (none["proposed"], none["look"], none["reports"]) == (None, None, 0)
        assert none["held_s"] is not None
        count_surveys(store, first, 2000)
        await asyncio.sleep(0.3)
        assert (link.published[TOPIC], store.revisions()) == (first.to_json(), [])
        proposal = await ask(desk, "plan", "propose")
        assert proposal["proposed"]["epoch"] == 2
        assert proposal["proposed"]["theta"] < first.theta
        assert (len(store.plans()), store.revisions()) == (1, [])
        await ask(desk, "plan", "release")
        await until(lambda: parse_plan(link.published[TOPIC]).epoch == 2)
        plan = parse_plan(link.published[TOPIC])
        assert (plan.theta, plan.certificate) == (
            proposal["proposed"]["theta"],
            proposal["proposed"]["certificate"],
        )
        shown = await ask(desk, "plan", "show")
        assert shown["look"]["survey_reports"] == 2000
        assert shown["look"]["forecast"][0]["question"] == "hour-of-day over 28 days"
        assert shown["plan"]["forecast"] == shown["look"]["forecast"]
        assert (await ask(desk, "theta"))["theta"][-1]["forecast"] == shown["look"]["forecast"]
        assert shown["held_s"] is None


def test_what_no_plan_can_ask_is_refused_with_its_range(engine: Engine, desk: Operator) -> None:
    engine.open().close()
    assert "no plan was issued yet" in desk.text("plan", "show", code=5)
    assert "no plan was issued yet" in desk.text("plan", "publish", "--theta", "9", code=5)
    asyncio.run(_first(engine))
    for options, said in (
        (("--theta", "0"), " to 1000 W (theta_halvings)"),
        (("--theta", "1001"), " to 1000 W (theta_halvings)"),
        (("--share", "2"), "at least 1/65536 and at most 1"),
        (("--share", "0"), "at least 1/65536 and at most 1"),
        (("--survey", "50:50"), "a range within 0 to 1000"),
        (("--survey", "0:1001"), "a range within 0 to 1000"),
    ):
        assert said in desk.text("plan", "publish", *options, code=2)
    assert "expected one of power" in desk.text("plan", "show", "--stream", "gas", code=2)
    assert "asks the same" in desk.text("plan", "publish", "--share", "1", code=5)
    text = desk.text("plan", "publish", "--theta", "300", "--survey", "0:500")
    assert "epoch 2, θ = 300 W, 0.5000 of the slots survey 0 to 500" in text
    assert re.search(r"1 % of liars move a mean by at most [\d,.]+ W\n", text)
    assert "half-range" not in text
    bound = "devices refuse this plan by default ([policy.plans]): survey: survey 0 to 500: from 0"
    assert f"warning: {bound} to 1000; no setting of theirs allows it" in text
    said = desk.text("plan", "repair", "--above", "5")
    assert "epoch 6, θ = 300 W" in said
    assert f"warning: {bound} to 1000; no setting of theirs allows it" in said
    said = desk.text("plan", "publish", "--theta", "350", "--survey", "0:1000")
    assert "warning" not in said
    assert re.search(
        r"note: by default devices take it from \d{4}-.* UTC on: a plan stays for", said
    )
    assert "the plan would stay" in desk.text("plan", "propose")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def large(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Operator:
    """Give an operator of a stream of 3 × 63 A at 230 V: θ is 6,701 W at least with its ε."""
    path = tmp_path / "a.db"
    text = CONFIG.format(path=path, intake="").replace("ceiling = 1000", "ceiling = 43470")
    text = text.replace("survey_size = 32", "survey_size = 1024")
    stream = parse_config(text, "test.toml").streams[0]
    plan = planner.first_plan("demo", stream, epoch=1, now_s=int(time.time()) - 60)
    with closing(SqliteStore.open(path)) as store:
        store.add_plan(PlanRow(1, 1, plan.issued_s, plan.to_json()))
    return operator(tmp_path, text, capsys)


REFUSED = (
    "warning: devices refuse this plan by default ([policy.plans]): θ 7 W: at least 6701 W (their"
    " theta_halvings); it takes theta_halvings = 14 in [policy.plans] of each device's agent.toml\n"
)
RANGE = "expected 6701 to 43470 W (theta_halvings); it is"


def test_kilowatts_where_watts_are_meant_are_told_and_how_to_force_them(large: Operator) -> None:
    assert large.text("plan", "publish", "--theta", "7", code=2) == (
        f"edge-ldp aggregator: plan publish: power: theta: {RANGE} 7 W of 0 to 43470 W: is θ in"
        " another unit? 7000 W is --theta 7000. theta_halvings = 14 in [[streams]] forces it, and"
        " devices refuse it unless their owners' [policy.plans] says so, too\n"
    )
    said = large.text("plan", "publish", "--theta", "7000000", code=2)
    assert said.endswith(f"{RANGE} 7000000 W of 0 to 43470 W: is θ in another unit?"
                         " 7000 W is --theta 7000\n")  # fmt: skip
    said = large.text("plan", "publish", "--theta", "0", code=2)
    assert said.endswith(f"{RANGE} 0 W of 0 to 43470 W\n")
    assert large.json("plan", "show")["plan"]["epoch"] == 1
    text = large.file.read_text().replace("revise_slots", "theta_halvings = 14\nrevise_slots")
    large.file.write_text(text)
    said = large.text("plan", "publish", "--theta", "7")
    assert "epoch 2, θ = 7 W" in said
    assert REFUSED in said  # 7 W is the least by the operator's setting, not by theirs
    assert "warning" not in large.text("plan", "publish", "--theta", "6701")


def test_a_plan_that_devices_refuse_by_default_is_asked_back_at_a_terminal(
    large: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = large.file.read_text().replace("revise_slots", "theta_halvings = 14\nrevise_slots")
    large.file.write_text(text)
    monkeypatch.setattr("sys.stdin", Terminal("\n"))
    said = large.text("plan", "publish", "--theta", "7", code=2)
    asked = "publish it all the same? [y/N] "
    assert said == f"{REFUSED}{asked}edge-ldp aggregator: power: nothing was published\n"
    assert large.json("plan", "show")["plan"]["epoch"] == 1
    assert large.json("audit")["audit"] == []
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert "epoch 2, θ = 7 W" in large.text("plan", "publish", "--theta", "7")
    (row,) = large.json("audit")["audit"]
    assert row["command"].endswith("--theta 7")
    monkeypatch.setattr("sys.stdin", Terminal("\n"))
    said = large.text("plan", "repair", "--above", "5", code=2)
    assert said.endswith(
        "issue it all the same? [y/N] edge-ldp aggregator: power: nothing was issued\n"
    )
    assert large.json("plan", "show")["plan"]["epoch"] == 2


def test_who_sits_at_a_terminal_is_asked_back_and_the_answer_is_logged(
    large: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for answer in ("n\n", "\n", ""):
        monkeypatch.setattr("sys.stdin", Terminal(answer))
        said = large.text("plan", "publish", "--theta", "7", code=2)
        assert said.startswith(
            "θ 7 W of 0 to 43470 W: is θ in another unit? 7000 W is --theta 7000\n"
            "publish θ = 7000 W? [y/N] edge-ldp aggregator: plan publish: power: theta: expected"
        )
    assert large.json("audit")["audit"] == []
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert large.json("plan", "publish", "--theta", "7")["plan"]["theta"] == 7000
    (row,) = large.json("audit")["audit"]
    assert row["command"].endswith("--theta 7 --json --theta 7000")


@pytest.mark.parametrize(
    "command",
    [("status",), ("theta",), ("query",), ("plan", "show"), ("plan", "propose"),
     ("load-curve",)],
    ids=" ".join,
)  # fmt: skip
def test_a_damaged_plan_is_named_by_every_command_that_reads_it(
    engine: Engine, desk: Operator, command: tuple[str, ...]
) -> None:
    store = engine.open()
    store.add_plan(PlanRow(1, 1, 1, b"{"))
    store.close()
    assert "damaged plan (stream 1, epoch 1: " in desk.text(*command, code=4)


async def _first(engine: Engine) -> None:
    keeper = StoreThread(engine.open())
    plans, link = PlanPublisher(engine.config(), Clock(), keeper), FakeLink()
    await plans.load()
    running = asyncio.create_task(plans.run(link, {}))
    await until(lambda: TOPIC in link.published)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    keeper.close()


@pytest.mark.parametrize("theta", ["5kW", "5.5"])
def test_theta_is_a_whole_number_of_the_streams_unit(
    engine: Engine, desk: Operator, theta: str
) -> None:
    with closing(engine.open()) as store:
        plan = planner.first_plan("demo", engine.config().streams[0], epoch=1, now_s=1)
        store.add_plan(PlanRow(1, 1, plan.issued_s, plan.to_json()))
    told = desk.text("plan", "publish", "--theta", theta, code=2)
    assert f"--theta: expected a whole number of W, as 1000, not '{theta}'" in told
