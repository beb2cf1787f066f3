"""What several workers on one database agree upon: names, receipts' turns, plans: AGG-08."""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from aggregator.config import AggregatorConfig, ConfigError, parse_config
from aggregator.counting.records import Changes, Record
from aggregator.counting.refusals import Rules
from aggregator.counting.seen_batches import DeviceState
from aggregator.errors import StoreHeldError
from aggregator.intake.intake import commit, topics
from aggregator.intake.last_times import LastTimes
from aggregator.intake.receipt_post import ReceiptSeal, post_receipts
from aggregator.intake.receipt_schedule import ReceiptSchedule
from aggregator.plans import planner
from aggregator.plans.publisher import PlanPublisher
from aggregator.running.election import Election, LeadLostError
from aggregator.running.service import do_chores, make_broker
from aggregator.store.contract import PlanRow, Store
from aggregator.store.opening import make_worker
from aggregator.store.postgres.locks import Leadership, PostgresTurns
from aggregator.store.postgres.store import PostgresStore
from aggregator.store.sqlite.store import SqliteStore
from aggregator.store.store_thread import StoreThread
from aggregator.store.worker import ALONE, AlwaysOurs, Turns, Worker
from edge_ldp.device.frame import encode
from edge_ldp.protocol.messages import parse_receipt
from edge_ldp.protocol.plan import Plan, parse_plan
from edge_ldp.service.clock import Clock
from edge_ldp.service.mqtt import Message
from tests.aggregator.fakes import CONFIG, FakeLink, make_config, until
from tests.aggregator.store_contract import changes
from tests.postgres import PostgresServer

DEVICE = "home"
PLAN_TOPIC = "edge-ldp/v1/demo/plan/power"
SHARED = CONFIG.replace('path = "{path}"', 'url = "postgresql:///x"').replace(
    'host = "127.0.0.1"', 'host = "127.0.0.1"\nshare = "fleet"'
)


@pytest.fixture
def pair(server: PostgresServer) -> Iterator[list[PostgresStore]]:
    url = server.new_database()
    made = [PostgresStore.open(url, alone=False, worker=name) for name in ("one", "two")]
    yield made
    for store in made:
        store.close()


def shared_config(**replaced: str) -> AggregatorConfig:
    text = SHARED.format(intake="")
    for old, new in replaced.items():
        text = text.replace(old, new)
    return parse_config(text, "a.toml")


# --- who it is


def test_workers_share_reports_under_names_of_their_own() -> None:
    config = shared_config()
    broker = make_broker(config, None, Worker("one"))
    assert (broker.client_id, broker.protocol) == ("edge-ldp-demo-aggregator-one", "5")
    assert broker.session_s > 0
    assert topics("demo", config.broker.share) == [
        "$share/fleet/edge-ldp/v1/demo/report/+",
        "$share/fleet/edge-ldp/v1/demo/stream/+",
    ]


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        (SHARED.replace('"postgresql:///x"', '""'), "store.url", "postgresql://"),
        (SHARED.replace('url = "postgresql:///x"', 'path = "a.db"'), "broker.share", "SQLite"),
        (SHARED.replace('"fleet"', '"a/b"'), "broker.share", "a-z"),
        (SHARED.replace("share =", 'protocol = "3.1.1"\nshare ='), "broker.protocol", "MQTT 5"),
    ],
)
def test_a_share_that_cannot_be_is_refused_with_its_key(text: str, key: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected) as caught:
        parse_config(text.format(intake=""), "a.toml")
    assert caught.value.key == key


def test_a_worker_needs_a_name_and_a_share(tmp_path: Path) -> None:
    alone = make_config(tmp_path / "a.db")
    assert make_worker(alone, "a.toml", None) is ALONE
    for config, name, key in [
        (alone, "one", "broker.share"),
        (shared_config(), None, "--worker"),
        (shared_config(), "", "--worker"),
        (shared_config(), "a+", "--worker"),
    ]:
        with pytest.raises(ConfigError) as caught:
            make_worker(config, "a.toml", name)
        assert caught.value.key == key


def test_two_workers_of_one_name_are_one_too_many(server: PostgresServer) -> None:
    url = server.new_database()
    one = PostgresStore.open(url, alone=False, worker="one")
    with pytest.raises(StoreHeldError, match="another worker named one; give each worker"):
        PostgresStore.open(url, alone=False, worker="one")
    PostgresStore.open(url, alone=False, worker="two").close()
    with pytest.raises(StoreHeldError, match="in use by another aggregator"):
        PostgresStore.open(url)
    one.close()
    PostgresStore.open(url).close()


# --- receipts


class Board(FakeLink):
    """What a broker retains of a device's receipt; this link needs `delay_s` to get there."""

    def __init__(self, shown: list[int], delay_s: float) -> None:
        super().__init__()
        self._shown = shown
        self._delay_s = delay_s

    async def publish(
        self, topic: str, payload: bytes, *, retain: bool = False, qos: int = 1
    ) -> None:
        await asyncio.sleep(self._delay_s)
        await super().publish(topic, payload, retain=retain, qos=qos)
        self._shown.append(parse_receipt(payload).streams[0].highest)


def grow(store: Store, highest: int) -> None:
    key = (DEVICE, 1)
    change = changes({key: Record(DeviceState(highest))})
    store.update(frozenset({key}), frozenset({DEVICE}), highest, lambda _: change)


async def race(pair: list[PostgresStore], turns: list[Turns], slow_s: float = 0.03) -> list[int]:
    """Let a slow and a quick worker post a device's receipt while it grows; return what showed."""
    shown: list[int] = []
    keepers = [StoreThread(store) for store in pair]
    dues = [ReceiptSchedule(), ReceiptSchedule()]
    links, last_times = [Board(shown, slow_s), Board(shown, 0.0)], LastTimes(Clock())
    tasks = [
        asyncio.create_task(
            post_receipts(
                link,
                keeper,
                due,
                "demo",
                10_000,
                last_times=last_times,
                seal=ReceiptSeal(lambda: 0.0),
                turns=turn,
            )
        )
        for link, keeper, due, turn in zip(links, keepers, dues, turns, strict=True)
    ]
    for highest in range(1, 31):
        before = len(shown)
        await keepers[1].call(partial(grow, highest=highest))
        for due in dues:
            due.note(DEVICE, 0.0)
        await asyncio.sleep(0.02)
        if highest % 2 == 0:  # however slow the machine: it is posted now and then
            await until(lambda before=before: len(shown) > before)  # type: ignore[misc]
    await until(lambda: shown[-1:] == [30] and not any(dues))
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for keeper in keepers:
        keeper.close()
    return shown


async def test_a_slower_worker_never_puts_an_older_receipt_in_place_of_a_newer_one(
    pair: list[PostgresStore],
) -> None:
    shown = await race(pair, [PostgresTurns(), PostgresTurns()])
    assert shown == sorted(shown)
    assert len(shown) > 10


async def test_without_turns_it_would(pair: list[PostgresStore]) -> None:
    """The control."""
    shown = await race(pair, [AlwaysOurs(), AlwaysOurs()], slow_s=0.3)
    assert shown != sorted(shown)


def test_a_turn_ends_with_its_connection_and_that_is_noticed(
    server: PostgresServer, pair: list[PostgresStore]
) -> None:
    one, two = PostgresTurns(), PostgresTurns()
    assert one.take(pair[0], ["a", "b"]) == ["a", "b"]
    assert two.take(pair[1], ["b", "c"]) == ["c"]
    with pair[0].reading() as db:
        pid = db.info.backend_pid
    server.ask(f"SELECT pg_terminate_backend({pid}, 5000)")
    assert two.take(pair[1], ["b", "c"]) == ["b", "c"]
    assert one.give_back(pair[0]) == ["a", "b"]
    assert two.give_back(pair[1]) == []
    assert one.take(pair[0], ["a", "b"]) == ["a", "b"]
    assert one.take(pair[0], ["c"]) == ["c"]  # what was taken before is given back first
    assert two.take(pair[1], ["a", "b"]) == ["a", "b"]


# --- plans


def issue(store: PostgresStore | SqliteStore, plan: Plan) -> None:
    store.add_plan(PlanRow(1, plan.epoch, plan.issued_s, plan.to_json()))


def plan_of(config: AggregatorConfig, epoch: int) -> Plan:
    return planner.first_plan("demo", config.streams[0], epoch=epoch, now_s=1_700_000_000)


def frame(batch: int, epoch: int, plan: Plan) -> Message:
    slot = plan.issued_s // plan.slot_seconds + batch
    payload = encode(1, batch, epoch, [slot], [plan.stream_mechanism.code_count])
    return Message("edge-ldp/v1/demo/report/home", payload)


async def test_a_plan_that_another_worker_issued_is_known_before_its_first_frame_is_judged(
    tmp_path: Path, pair: list[PostgresStore]
) -> None:
    config = make_config(tmp_path / "a.db")
    keeper = StoreThread(pair[0])
    desk = PlanPublisher(config, Clock(origin_s=1_700_900_000, rate=1e-6), keeper)
    first = plan_of(config, 1)
    issue(pair[0], first)
    await desk.load()

    def take(batch: int, epoch: int, rules: Rules | None = None) -> Changes:
        return commit(
            pair[0],
            fleet="demo",
            messages=[frame(batch, epoch, first)],
            rules=rules or desk.rules(),
            rules_for=desk.rules_for,
        )

    assert take(1, 1).refused == {}
    issue(pair[1], plan_of(config, 4))
    stale = desk.rules()
    assert take(2, 4).refused == {}
    assert take(3, 5).refused == {("foreign", 1): (1, 1)}  # which nobody issued
    assert take(4, 3).refused == {("foreign", 1): (1, 1)}
    assert take(5, 4, stale).refused == {}  # whatever read the plan again meanwhile
    (record,) = [record for _, record in pair[0].records()]
    assert (record.counted, record.rejected) == (3, 0)
    messages = [frame(6, 4, first)]  # the control: without it the report would wait
    found = commit(pair[0], fleet="demo", messages=messages, rules=stale)
    assert found.refused == {("foreign", 1): (1, 1)}
    keeper.close()


class Slow(FakeLink):
    """A link that gets a plan to the broker only when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.at_it, self.go_on = asyncio.Event(), asyncio.Event()

    async def publish(
        self, topic: str, payload: bytes, *, retain: bool = False, qos: int = 1
    ) -> None:
        self.at_it.set()
        await self.go_on.wait()
        await super().publish(topic, payload, retain=retain, qos=qos)


async def test_a_leader_that_slept_while_publishing_puts_the_newest_plan_back_AGG_08(
    tmp_path: Path, pair: list[PostgresStore]
) -> None:
    config, link = make_config(tmp_path / "a.db"), Slow()
    keeper = StoreThread(pair[0])
    desk = PlanPublisher(config, Clock(), keeper)
    running = asyncio.create_task(desk.run(link, {}))
    await link.at_it.wait()  # epoch 1 is stored and on its way
    issue(pair[1], plan_of(config, 2))  # by who leads now, and published by him
    link.go_on.set()
    await until(lambda: len(link.events) == 2)
    assert parse_plan(link.published[PLAN_TOPIC]).epoch == 2
    running.cancel()
    keeper.close()


@pytest.mark.parametrize("sure_of", range(3))
async def test_who_does_not_lead_any_more_neither_stores_nor_publishes_AGG_08(
    tmp_path: Path, pair: list[PostgresStore], sure_of: int
) -> None:
    """The lead is lost at each moment at which it is asked for."""
    config, link = make_config(tmp_path / "a.db"), FakeLink()
    keeper = StoreThread(pair[0])
    left = iter(range(sure_of))

    async def sure() -> None:
        if next(left, None) is None:
            raise LeadLostError("the lead is lost")

    desk = PlanPublisher(config, Clock(), keeper, sure=sure)
    retained = {PLAN_TOPIC: b"garbage"}
    running = asyncio.create_task(desk.run(link, retained))
    if sure_of < 2:
        with pytest.raises(LeadLostError):
            await running
    else:
        await until(lambda: bool(link.published))
        running.cancel()
    assert len(pair[0].plans()) == min(sure_of, 1)
    assert len(link.published) == max(0, sure_of - 1)
    keeper.close()


async def test_a_plan_that_another_leader_stored_first_is_taken_over_and_ours_is_not_AGG_08(
    tmp_path: Path, pair: list[PostgresStore], caplog: pytest.LogCaptureFixture
) -> None:
    config, link = make_config(tmp_path / "a.db"), FakeLink()
    keeper = StoreThread(pair[0])
    theirs = plan_of(config, 3)
    asked = 0

    async def sure() -> None:
        nonlocal asked
        asked += 1
        if asked == 1:  # between asking and storing
            issue(pair[1], theirs)

    running = asyncio.create_task(PlanPublisher(config, Clock(), keeper, sure=sure).run(link, {}))
    await until(lambda: bool(link.published))
    assert parse_plan(link.published[PLAN_TOPIC]) == theirs
    assert [row.epoch for row in pair[0].plans()] == [3]
    assert "only one aggregator may issue plans" in caplog.text
    running.cancel()
    keeper.close()


async def test_a_silent_leader_is_none_any_more_and_one_whose_server_is_gone_neither_AGG_08(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aggregator.store.postgres.locks.LEASE_S", 8)
    monkeypatch.setattr("aggregator.running.election.PING_S", 0.1)
    url = server.new_database()
    one, two = Election(Leadership(url)), Election(Leadership(url))
    await one.won()
    waiting = asyncio.create_task(two.won())
    keeping = asyncio.create_task(one.held())
    await asyncio.sleep(9)
    assert not waiting.done()  # it asks often enough
    assert not keeping.done()
    keeping.cancel()
    await waiting  # it fell silent
    with pytest.raises(LeadLostError):
        await one.sure()
    await two.resign()
    await one.won()
    one.close()
    two.close()
    gone = Election(Leadership("postgresql://nobody@/none?host=/nonexistent"))
    with pytest.raises(LeadLostError):
        await gone.sure()
    gone.close()


async def test_chores_are_done_step_by_step_with_flushes_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aggregator.running.service.ROUND_S", 0.01)
    monkeypatch.setattr("aggregator.running.service.BETWEEN_S", 0.0)
    keeper = StoreThread(SqliteStore.open(tmp_path / "a.db"))
    done: list[str] = []

    def chore(_store: Store) -> bool:
        done.append("step")
        return done.count("step") % 3 != 0

    task = asyncio.create_task(do_chores(keeper, [chore]))
    while done.count("step") < 9:
        await keeper.call(lambda _: done.append("flush"))
    task.cancel()
    assert {"step", "flush"} == set(done[:6])
    keeper.close()
