"""Plans: stored before published, never a lower epoch: NET-04, AGG-08, AGG-17, AGG-20."""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from aggregator.answers.dossier import dossier_answer, dossier_text
from aggregator.answers.fleet.audit import FILE, orders, read_audit
from aggregator.answers.fleet.status import read_status
from aggregator.answers.fleet.status_text import status_text
from aggregator.answers.lookup import read_plans
from aggregator.answers.plan_view import standing_plan, standing_text
from aggregator.config import AggregatorConfig, parse_config
from aggregator.config.streams import HomeSums
from aggregator.counting.records import Changes
from aggregator.errors import StoreError
from aggregator.plans import planner
from aggregator.plans import revision as estimating
from aggregator.plans.cache import read_recent_counts
from aggregator.plans.epsilons import epsilon_changes
from aggregator.plans.publisher import REFUSED, PlanPublisher
from aggregator.plans.revision import read_revision
from aggregator.plans.rivals import Rivals
from aggregator.store.administration.registry import hold_plan
from aggregator.store.contract import PlanRow, RevisionRow, identity
from aggregator.store.opening import open_session
from aggregator.store.rows import AuditRow
from aggregator.store.sqlite.store import SqliteStore
from aggregator.store.store_thread import StoreThread
from edge_ldp.protocol.plan import Plan, parse_plan, plan_tag
from edge_ldp.service.clock import Clock
from edge_ldp.vectorized import perturb_many
from tests.aggregator.fakes import CONFIG, FakeLink, make_config, until
from tests.aggregator.tallies import count_batches

Ints = NDArray[np.int64]


TOPIC = "edge-ldp/v1/demo/plan/power"


class Bench:
    """A desk over a real store, with a clock that can be put on."""

    def __init__(self, path: Path, config: AggregatorConfig | None = None) -> None:
        self.config = config or make_config(path)
        self.stream = self.config.streams[0]
        self.store = SqliteStore.open(path)
        self.keeper = StoreThread(self.store)

    async def run(
        self, retained: dict[str, bytes] | None = None, *, silent: bool = False
    ) -> tuple[PlanPublisher, FakeLink]:
        """Return a new desk that has published, as after a start of the service, or is `silent`."""
        async with self.running(retained, published=False) as (desk, link):
            await until(lambda: bool(desk.rules().streams[1].plans))
            await until(lambda: silent or TOPIC in link.published)
            await asyncio.sleep(0.05)
        return desk, link

    @asynccontextmanager
    async def running(
        self,
        retained: dict[str, bytes] | None = None,
        read: Callable[[], Awaitable[dict[str, bytes] | None]] | None = None,
        *,
        published: bool = True,
        rivals: Rivals | None = None,
    ) -> AsyncIterator[tuple[PlanPublisher, FakeLink]]:
        """Give a desk at work, once it has published unless told."""
        link = FakeLink()
        desk = PlanPublisher(self.config, Clock(), self.keeper, rivals=rivals)
        await desk.load()
        task = asyncio.create_task(desk.run(link, retained or {}, read))
        await until(lambda: not published or TOPIC in link.published)
        yield desk, link
        task.cancel()

    def plan(self, epoch: int) -> Plan:
        return planner.first_plan("demo", self.stream, epoch=epoch, now_s=1)

    def count_surveys(self, plan: Plan, reports: int, *, lies: int = 0) -> None:
        rng = np.random.default_rng(1)
        values = rng.integers(0, 100, reports)
        codes = perturb_many(plan.survey_mechanism, values, entropy=rng.bytes)
        codes[:lies] = plan.survey_mechanism.code_count - 1
        codes += plan.stream_mechanism.code_count
        newest = int(Clock().now()) // self.stream.slot_seconds
        self.count(plan, newest - np.arange(reports), codes)

    def count(self, plan: Plan, slots: Ints, codes: Ints) -> None:
        """Store reports of these slots, and that the device was there in them."""
        tally = count_batches([((1, plan.epoch, 0, 0), self.stream.bucket_slots, slots, codes)])
        found, times = np.unique(slots // self.stream.bucket_slots, return_counts=True)
        present = {
            (1, bucket, 0, 0): n for bucket, n in zip(found.tolist(), times.tolist(), strict=True)
        }
        change = Changes({}, {}, tally, present, {}, frozenset(), frozenset(), frozenset())
        self.store.update(frozenset(), frozenset(), 1, lambda _: change)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aggregator.plans.publisher.POLL_S", 0.01)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "a.db")
    yield made
    made.keeper.close()


async def test_the_first_plan_is_stored_before_it_is_published(bench: Bench) -> None:
    desk, link = await bench.run()
    plan = parse_plan(link.published[TOPIC])
    assert (plan.epoch, plan.theta, planner.is_survey_only(plan)) == (1, 1000, True)
    assert [row.payload for row in bench.store.plans()] == [link.published[TOPIC]]
    assert desk.rules().streams[1].plans.keys() == {1}


async def test_a_restart_publishes_the_same_bytes_where_the_broker_lost_them(bench: Bench) -> None:
    _, first = await bench.run()
    _, again = await bench.run()
    assert again.published == first.published


async def test_a_plan_that_the_broker_still_retains_is_not_published_again(bench: Bench) -> None:
    _, first = await bench.run()
    _, again = await bench.run(dict(first.published), silent=True)
    assert again.published == {}


async def test_after_a_lost_database_epochs_go_on_rising(bench: Bench) -> None:
    _, link = await bench.run({TOPIC: bench.plan(41).to_json()})
    assert parse_plan(link.published[TOPIC]).epoch == 42


async def test_a_foreign_plan_of_a_higher_epoch_is_overruled(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    await bench.run()
    with caplog.at_level(logging.WARNING):
        _, link = await bench.run({TOPIC: bench.plan(7).to_json()})
    assert parse_plan(link.published[TOPIC]).epoch == 8
    assert "foreign plan of epoch 7 stands" in caplog.text


async def test_a_plan_that_the_broker_lost_or_holds_another_of_is_published_again_NET_23(
    bench: Bench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is retained then; what cannot be read stays as it was."""
    monkeypatch.setattr("aggregator.plans.publisher.LEAST_READ_S", 0.0)
    retained: list[dict[str, bytes] | None] = [None]
    readings = 0

    async def read() -> dict[str, bytes] | None:
        nonlocal readings
        readings += 1
        return retained[0]

    intake = replace(bench.config.intake, receipt_interval_s=0)
    bench.config = replace(bench.config, intake=intake)
    async with bench.running(read=read) as (_, link):
        await until(lambda: readings > 3)
        (first,) = link.published.values()
        assert link.events == [("publish", TOPIC)]
        retained[0] = {TOPIC: first}
        await until(lambda: readings > 6)
        assert link.events == [("publish", TOPIC)]
        link.published.clear()
        retained[0] = {}
        await until(lambda: link.published == {TOPIC: first})
        retained[0] = {TOPIC: bench.plan(7).to_json()}
        await until(lambda: parse_plan(link.published[TOPIC]).epoch == 8)
    assert "retains our plan no more" in caplog.text


def theirs(bench: Bench, epoch: int) -> bytes:
    """Return a plan that another store made just now."""
    now_s = int(Clock().now())
    plan = planner.first_plan("demo", bench.stream, epoch=epoch, now_s=now_s)
    return replace(plan, store="0" * 16).to_json()


async def test_no_plan_is_issued_for_gas_of_which_homes_give_sums_alone(tmp_path: Path) -> None:
    """Not even where another store's plan of it stands: nobody goes by either."""
    config = make_config(tmp_path / "fleet.db")
    sums = HomeSums(share=Decimal("0.125"), days=7)
    gas = replace(config.streams[0], name="gas", id=2, unit="dm3", home_sums=sums)
    bench = Bench(tmp_path / "fleet.db", replace(config, streams=(*config.streams, gas)))
    desk, link = await bench.run({TOPIC.replace("power", "gas"): theirs(bench, 9)})
    assert list(link.published) == [TOPIC]
    assert {row.stream for row in bench.store.plans()} == {1}
    assert not desk.rules().streams[2].plans


async def test_who_was_there_goes_above_another_stores_plan_and_counts_under_it_NET_27(
    bench: Bench,
) -> None:
    """So what was reported in between is counted; what it heard of itself is nothing."""
    rivals = Rivals()
    async with bench.running(rivals=rivals) as (desk, link):
        first = link.published[TOPIC]
        assert parse_plan(first).store == identity(bench.store) == rivals.store
        other = theirs(bench, 5)
        for heard in (first, other, other):
            desk.hear(TOPIC, heard)
            await asyncio.sleep(0.05)
        desk.hear("edge-ldp/v1/demo/plan/gas", theirs(bench, 9))
        await until(lambda: parse_plan(link.published[TOPIC]).epoch == 6)
        desk.hear(TOPIC, theirs(bench, 3))  # no device takes it
        await asyncio.sleep(0.05)
        assert link.events == [("publish", TOPIC)] * 2
        kept = {row.epoch: row.payload for row in bench.store.plans()}
        assert kept == {1: first, 5: other, 6: link.published[TOPIC]}
        assert desk.rules().streams[1].plans[5].tag == plan_tag(other)
        assert "publishes plans of store 0000" in rivals.health(time.monotonic())


async def test_another_stores_plan_that_asks_what_is_not_configured_is_not_kept(
    bench: Bench,
) -> None:
    """Nor one that is dated ahead, or above what devices believe."""
    plan, now_s = parse_plan(theirs(bench, 5)), int(Clock().now())
    for odd in (
        replace(plan, ceiling=2000),
        replace(plan, fleet="other"),
        replace(plan, issued_s=now_s + 86_400),
        replace(plan, epoch=(1 << 32) - 1),
    ):
        await bench.run({TOPIC: odd.to_json()})
        assert odd.to_json() not in [row.payload for row in bench.store.plans()]


@pytest.mark.parametrize("garbage", [b"", b"\xff" * 100, b"{}", b"[" * 10_000, b'{"v":1}'])
async def test_garbage_at_the_plan_topic_is_replaced(bench: Bench, garbage: bytes) -> None:
    _, first = await bench.run()
    _, link = await bench.run({TOPIC: garbage})
    assert link.published == first.published


@pytest.mark.parametrize("days", [1, 400])
async def test_a_plan_that_a_clock_ahead_dated_is_issued_anew_and_it_is_said_PLN_18(
    bench: Bench, caplog: pytest.LogCaptureFixture, days: int
) -> None:
    now_s = int(Clock().now())
    ahead = planner.first_plan("demo", bench.stream, epoch=1, now_s=now_s + days * 86_400)
    bench.store.add_plan(PlanRow(1, 1, ahead.issued_s, ahead.to_json()))
    desk, link = await bench.run({TOPIC: ahead.to_json()})
    plan = parse_plan(link.published[TOPIC])
    assert (plan.epoch, plan.theta, plan.share) == (2, ahead.theta, ahead.share)
    assert 0 <= plan.issued_s - now_s < 3600
    plans = desk.rules().streams[1].plans
    assert {epoch: codes.issued_s for epoch, codes in plans.items()} == {1: 0, 2: plan.issued_s}
    assert "epoch 1 is dated" in caplog.text
    _, again = await bench.run({TOPIC: plan.to_json()}, silent=True)
    assert again.published == {}


async def test_a_stored_plan_sharper_than_devices_admit_by_now_is_raised_and_it_is_said_PLN_22(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """θ 3,869 W is what the version before admitted at ε 2, also where an operator holds it."""
    text = CONFIG.format(path=tmp_path / "a.db", intake="").replace("1000", "43470")
    bench = Bench(tmp_path / "a.db", parse_config(text, "test.toml"))
    first, stream, now_s = bench.plan(1), bench.stream, int(Clock().now())
    sums = stream.sums(3869)
    sharp = planner.following(first, stream, sums, share=(1, 16), now_s=now_s)
    assert sharp is not None
    sharp = planner.proved(sharp)
    with closing(bench.keeper):
        bench.store.add_plan(PlanRow(1, 2, now_s, sharp.to_json()))
        with closing(open_session(bench.config, "test")) as session:
            hold_plan(session, 1, now_s)
        _, link = await bench.run({TOPIC: sharp.to_json()})
        plan = parse_plan(link.published[TOPIC])
        assert (plan.epoch, plan.theta, plan.share) == (3, stream.least_theta, (1, 16))
        assert planner.refused_by_default(stream, sharp) is not None
        assert planner.refused_by_default(stream, plan) is None
        assert planner.matches(plan, "demo", stream)
        assert "devices refuse θ = 3869 W, so it is raised" in caplog.text
        _, again = await bench.run({TOPIC: plan.to_json()}, silent=True)
        assert again.published == {}


async def test_another_configuration_starts_a_new_epoch(bench: Bench) -> None:
    bench.store.add_plan(PlanRow(1, 5, 1, bench.plan(5).to_json().replace(b"1000", b"2000")))
    desk, link = await bench.run()
    plan = parse_plan(link.published[TOPIC])
    assert (plan.epoch, plan.ceiling) == (6, 1000)
    assert desk.rules().streams[1].plans.keys() == {5, 6}


async def test_an_operators_plan_that_came_first_is_said_to_be_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As `plan repair` stores it while the service is about to issue one: nothing is wrong."""
    theirs = replace(bench.plan(7), issued_s=int(time.time()))
    store_it = bench.store.add_plan

    def overtaken(*args: Any) -> None:
        monkeypatch.setattr(bench.store, "add_plan", store_it)
        store_it(PlanRow(1, 7, theirs.issued_s, theirs.to_json()))
        words = "plan repair -c a.toml --above 6"
        bench.store.add_audit([AuditRow(theirs.issued_s, "anna@here", words)])
        store_it(*args)

    monkeypatch.setattr(bench.store, "add_plan", overtaken)
    with caplog.at_level(logging.INFO):
        _, link = await bench.run()
    said = "plan power: epoch 7, issued anew by anna@here, came first: ours is not issued"
    assert said in caplog.messages
    assert "only one aggregator" not in caplog.text
    assert parse_plan(link.published[TOPIC]).epoch == 7


async def test_enough_surveys_bring_a_threshold(bench: Bench) -> None:
    async with bench.running() as (desk, link):
        first = parse_plan(link.published[TOPIC])
        bench.count_surveys(first, 499)
        await asyncio.sleep(0.1)
        assert parse_plan(link.published[TOPIC]) == first
        bench.count_surveys(first, 2000)
        await until(lambda: parse_plan(link.published[TOPIC]).epoch == 2)
    plan = parse_plan(link.published[TOPIC])
    assert 0 < plan.theta <= 1000
    assert 1 / 16 <= plan.share[0] / plan.share[1] <= 3 / 4
    assert desk.rules().streams[1].plans.keys() == {1, 2}


async def second_plan(
    bench: Bench, *, reports: int = 2500, lies: int = 0
) -> tuple[PlanPublisher, Plan]:
    """Return a desk, and its plan that follows so many surveys."""
    async with bench.running() as (desk, link):
        bench.count_surveys(parse_plan(link.published[TOPIC]), reports, lies=lies)
        await until(lambda: parse_plan(link.published[TOPIC]).epoch == 2)
    return desk, parse_plan(link.published[TOPIC])


async def test_the_revision_behind_a_plan_is_stored_and_a_restart_goes_on_from_it(
    bench: Bench,
) -> None:
    desk, plan = await second_plan(bench)
    (row,) = bench.store.revisions()
    revision = read_revision(row.payload)
    assert (revision.epoch, revision.theta, revision.reports) == (2, plan.theta, (0, 2500))
    again = PlanPublisher(bench.config, Clock(), bench.keeper)
    await again.load()
    (stream,) = bench.config.streams
    assert again.cache.revision(stream) == desk.cache.revision(stream) == revision
    assert revision.share == plan.share[0] / plan.share[1]
    assert "refuse" not in " ".join(revision.reasons)


async def test_a_plan_of_ours_that_devices_refuse_by_default_is_warned_of_and_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The operator's theta_halvings let the planner go below what owners admit unasked."""
    text = CONFIG.format(path=tmp_path / "a.db", intake="").replace("1000", "43470")
    text = text.replace("survey_size = 32", "survey_size = 1024\ntheta_halvings = 14")
    bench = Bench(tmp_path / "a.db", parse_config(text, "test.toml"))
    with caplog.at_level(logging.WARNING), closing(bench.keeper):
        _, plan = await second_plan(bench, reports=20_000)
        assert plan.theta < 6701
        await asyncio.sleep(0.1)
        status = read_status(bench.store, bench.config, plan.issued_s)
    (told,) = [one.getMessage() for one in caplog.records if "refuse" in one.getMessage()]
    refused = told.removeprefix("plan power: ")
    assert refused.startswith(
        f"devices refuse this plan by default ([policy.plans]): θ {plan.theta} W: at least 6701 W"
    )
    assert "; it takes theta_halvings = " in refused
    assert f"  {refused}" in status_text(status).splitlines()


@pytest.mark.parametrize(("horizon", "days"), [("day over 3 days", 3), (10_000, 28)])
def test_a_revision_goes_by_the_days_of_its_horizon_and_forgets_what_was_before(
    bench: Bench, horizon: str | int, days: int
) -> None:
    """To the bucket: the one that begins so many days ago is in it, the one before is not."""
    stream, plan = replace(bench.stream, horizon=horizon), bench.plan(1)
    first = 5000 * stream.bucket_slots
    now_s = (first * stream.slot_seconds) + days * 86_400
    slots = first + np.array([-9000, -1, 0, 1, 40])
    bench.count(plan, slots, np.array([1, 1, 2, 2, 3]))
    seen = read_recent_counts(bench.store, stream=stream, now_s=now_s)
    assert dict(zip(seen.rows.code.tolist(), seen.rows.count.tolist(), strict=True)) == {2: 2, 3: 1}
    assert seen.spanned_s == 11 * stream.bucket_s  # the buckets 0 to 10 of these days
    later = read_recent_counts(bench.store, stream=stream, now_s=now_s + stream.bucket_s)
    assert later.rows.code.tolist() == [3]
    nothing = read_recent_counts(bench.store, stream=stream, now_s=now_s + 99 * 86_400)
    assert (nothing.rows.count.sum(), nothing.spanned_s) == (0, 0)
    early = read_recent_counts(bench.store, stream=stream, now_s=9.5)  # a clock that is not set yet
    assert early.rows.count.sum() == 5


async def test_surveys_that_were_poisoned_are_told_of_and_left_out(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        _, plan = await second_plan(bench, lies=250)
    assert "ALARM" in caplog.text
    assert plan.theta < 300  # values lie below 100; the liars' code says 1000
    (row,) = bench.store.revisions()
    (found,) = read_revision(row.payload).screen
    assert found.rings
    counted = bench.store.totals(1)
    assert counted.count.sum() == 2500  # nothing stored is changed


async def test_the_loop_goes_on_while_the_first_plan_is_proved(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    proved = planner.first_plan

    def slow(*args: Any, **named: Any) -> Plan:
        begun.set()
        assert go_on.wait(300)
        return proved(*args, **named)

    monkeypatch.setattr(planner, "first_plan", slow)
    async with bench.running(published=False) as (_, link):
        await until(begun.is_set)
        assert TOPIC not in link.published
        go_on.set()
        await until(lambda: TOPIC in link.published)


async def test_the_rules_know_from_the_start_what_was_added_up(bench: Bench) -> None:
    with closing(open_session(bench.config, "test")) as session:
        for what, end in ((1, 400), (96, 960)):
            session.rows("INSERT INTO rolled (stream, what, until) VALUES (1, ?, ?)", (what, end))
    desk = PlanPublisher(bench.config, Clock(), bench.keeper)
    assert desk.rules().streams[1].added_up == 0
    await desk.load()
    assert desk.rules().streams[1].added_up == 960


@pytest.mark.parametrize("kind", ["revision", "plan"])
async def test_what_is_stored_damaged_ends_the_start(bench: Bench, kind: str) -> None:
    if kind == "revision":
        bench.store.add_revision(RevisionRow(1, 1, b"{}"))
    else:
        bench.store.add_plan(PlanRow(1, 1, 1, b"{}"))
    with pytest.raises(StoreError, match=f"damaged {kind}"):
        await PlanPublisher(bench.config, Clock(), bench.keeper).load()


class CrashError(Exception):
    """Where the process dies."""


@pytest.mark.parametrize("step", range(5))
async def test_dead_at_any_step_of_issuing_it_goes_on_with_the_same_plan_or_a_later_one_AGG_17(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Steps: before estimating, after it, before and after the plan is stored, when published."""
    _, first = await bench.run()
    bench.count_surveys(parse_plan(first.published[TOPIC]), 2500)
    dies = CrashError()
    store_it, estimate = bench.store.add_plan, estimating.revise

    def revise(*args: Any, **named: Any) -> Any:
        if step == 0:
            raise dies
        found = estimate(*args, **named)
        if step == 1:
            raise dies
        return found

    def add_plan(*args: Any) -> None:
        if step == 2:
            raise dies
        store_it(*args)
        if step == 3:
            raise dies

    link = FakeLink()
    link.fails = [dies] if step == 4 else []
    with monkeypatch.context() as patched:
        patched.setattr("aggregator.plans.publisher.revise", revise)
        patched.setattr(bench.store, "add_plan", add_plan)
        desk = PlanPublisher(bench.config, Clock(), bench.keeper)
        await desk.load()
        with pytest.raises(CrashError):
            await desk.run(link, dict(first.published))
    assert link.published == {}
    stored = [row.epoch for row in bench.store.plans()]
    assert stored == ([1] if step < 3 else [1, 2])

    async with bench.running(dict(first.published)) as (_, link):
        await asyncio.sleep(0.1)
    assert parse_plan(link.published[TOPIC]).epoch == 2
    assert [row.payload for row in bench.store.plans()][1] == link.published[TOPIC]
    assert len(bench.store.revisions()) == 1  # the reports were looked at once


async def test_AGG_35_an_epsilon_changed_in_the_file_is_told_wherever_one_looks(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    for epsilon in (1, 1, 2, 4, "0.5"):
        stream = replace(bench.stream, epsilon=Decimal(epsilon))
        bench.config = replace(bench.config, streams=(stream,))
        await bench.run()
    changes = epsilon_changes(read_plans(bench.store, bench.stream))
    assert [(one.epoch, one.before, one.after) for one in changes] == [
        (2, 1, 2),
        (3, 2, 4),
        (4, 4, 0.5),
    ]
    by_hand = ("1 → 2, plan 2", "2 → 4, plan 3", "4 → 0.5, plan 4")
    told = [f"power: ε of a report {one}" for one in by_hand]
    logged = [record.getMessage() for record in caplog.records]
    assert logged == [f"plan {told[0]}{REFUSED}", f"plan {told[1]}{REFUSED}", f"plan {told[2]}"]
    log = read_audit(bench.store, "demo").audit
    assert [(row.who, row.command) for row in log] == [(FILE, one) for one in told]
    assert read_audit(bench.store, "demo", since_s=changes[-1].at_s + 1).audit == []
    plan = read_plans(bench.store, bench.stream)[4]
    shown = standing_text(standing_plan("power", plan, None, None, changes))
    page = dossier_text(dossier_answer(bench.store, bench.config))
    for text in ("1 → 2 since plan 2", "2 → 4 since plan 3", "4 → 0.5 since plan 4"):
        assert f"ε of a report {text}, " in shown
        assert f"- power: ε of a report {text}, " in page
    by_whom = orders(
        bench.config, bench.stream, read_plans(bench.store, bench.stream), [], bench.store.audit()
    )
    assert by_whom[3] == ("ε 2 → 4 by a configuration",)
