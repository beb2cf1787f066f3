"""The aggregator as a process: its main job, its commands, and frames that must not count."""

import re
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aggregator.config import load_config
from aggregator.main import main
from aggregator.plans.revision import revise
from edge_ldp.protocol.messages import topic
from edge_ldp.protocol.plan import Plan, parse_plan
from edge_ldp.vectorized import perturb_many
from tests.integration.aggregator_bench import FLEET, Aggregator, Wire, until, wires
from tests.integration.conftest import RealBroker

OpenWire = Callable[[], Awaitable[Wire]]


@pytest.fixture
async def open_wire(broker: RealBroker) -> AsyncIterator[OpenWire]:
    async with wires(broker) as make:
        yield make


@pytest.fixture
def aggregator(
    tmp_path: Path, broker: RealBroker, request: pytest.FixtureRequest
) -> Iterator[Aggregator]:
    made = Aggregator(
        tmp_path, broker, surveys=10_000, mechanism=getattr(request, "param", "hybrid")
    )
    made.start()
    yield made
    made.kill()


def reports(plan: Plan, values: np.ndarray, rng: np.random.Generator) -> list[int]:
    """Return one code for each value; seeded, so that the test has one outcome."""
    survey = rng.integers(0, plan.share[1], len(values)) < plan.share[0]
    sums = perturb_many(plan.stream_mechanism, values, entropy=rng.bytes)
    surveys = perturb_many(plan.survey_mechanism, values, entropy=rng.bytes)
    surveys += plan.stream_mechanism.code_count
    return np.where(survey, surveys, sums).tolist()  # type: ignore[no-any-return]


async def test_the_service_manager_hears_how_old_commits_and_reports_are_AGG_27(
    tmp_path: Path, broker: RealBroker, open_wire: OpenWire, monkeypatch: pytest.MonkeyPatch
) -> None:
    aggregator, heard = Aggregator(tmp_path, broker), [b""]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(str(tmp_path / "notify"))
        ear.setblocking(False)

        def says(pattern: bytes) -> bool:
            with suppress(BlockingIOError):
                while True:
                    heard.append(ear.recv(4096))
            return any(re.fullmatch(pattern, text) for text in heard)

        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        aggregator.start()
        try:
            wire = await open_wire()
            plan = await wire.plan()
            await until(lambda: says(rb"STATUS=degraded: link down; no link for \d+ s"))
            await until(lambda: says(rb"STATUS=ok; link up for \d+ s"))
            (device,) = wire.add(1, plan)
            await wire.send([device.make([1]), device.status()])
            last = rb"last report \d+ s ago, last receipt \d+ s ago, last commit \d+ s ago"
            await until(lambda: says(rb"STATUS=ok; link up for \d+ s, " + last))
        finally:
            aggregator.kill()


@pytest.mark.parametrize("aggregator", ["hybrid", "tuned"], indirect=True)
async def test_survey_threshold_sums_and_answers(
    open_wire: OpenWire, aggregator: Aggregator, capsys: pytest.CaptureFixture[str]
) -> None:
    """The main job: survey, θ, plan, stream reports, and a mean whose interval holds the truth."""
    wire = await open_wire()
    plan = await wire.plan()
    rng = np.random.default_rng(3)
    values = rng.integers(0, 400, (2, 50, 200))
    await wire.send(
        device.make(reports(plan, row, rng))
        for device, row in zip(wire.add(50, plan), values[0], strict=True)
    )
    following = await wire.plan(epoch=2)
    (stream,) = load_config(aggregator.config).streams
    now_s = following.issued_s
    found = revise(plan, stream, {1: plan}, aggregator.seen(stream, now_s), now_s=now_s)
    assert found is not None
    # the same counts give the same plan, which the store then puts its name to
    assert found[1] == replace(following, store=None, certificate=None) != following
    assert following.certificate is not None
    assert 1 / 16 <= following.share[0] / following.share[1] <= 3 / 4
    for device in wire.devices.values():
        device.plan = following
    await wire.send(
        device.make(reports(following, row, rng))
        for device, row in zip(wire.devices.values(), values[1], strict=True)
    )
    await until(lambda: aggregator.counted() == 20_000)
    assert aggregator.counts() == wire.expected()

    view = aggregator.ask("query", "--stream", "power")
    whole = view["whole"]
    assert whole["low"] < values[1].mean() < whole["high"]
    assert (whole["devices"], whole["missing"]) == (50, 0)
    assert whole["total"] == pytest.approx(whole["mean"] * whole["device_slots"])
    assert view["counts"] == {"counted": 20_000, "rejected": 0, "duplicates": 0}
    assert view["density"]["n"] > 10_000
    assert [row["share"] for row in view["quantiles"]][2] == 0.5
    assert [row["epoch"] for row in view["theta"]] == [1, 2]
    status = aggregator.ask("status", "--exact")
    look = status["streams"][0]["look"]
    assert (look["theta"], look["survey_reports"], look["alarms"]) == (following.theta, 10_000, [])
    assert look["forecast"][0]["question"] == "100,000 values as a whole"
    assert look["forecast"][0]["half_width"] == pytest.approx(look["least"], rel=0.05)
    assert [row["forecast"] for row in view["theta"]] == [None, look["forecast"]]
    assert status["marked"] == []
    assert aggregator.ask("theta")["theta"] == view["theta"]
    assert main(["query", "-c", str(aggregator.config)]) == 0
    assert "devices heard 50, missing 0" in capsys.readouterr().out


async def test_completeness_adds_up_and_every_status_is_answered(
    open_wire: OpenWire, aggregator: Aggregator
) -> None:
    wire = await open_wire()
    plan = await wire.plan()
    device, other = wire.add(2, plan)
    code = plan.stream_mechanism.code_count
    batches = [device.make([code] * 10) for _ in range(6)]
    await wire.send([*batches[:2], *batches[3:5], other.make([0, 0])])  # 3 lost, 6 not yet sent
    await until(lambda: aggregator.counted() == 40)
    await until(lambda: wire.heard() >= 1)  # a gap shows: a receipt soon, unasked
    assert set(device.kept) == {3, 6}
    before = wire.heard()
    await wire.send([device.status(), other.status()])
    await until(lambda: wire.heard() >= before + 2)
    rows = {row["device"]: row for row in aggregator.ask("status", "--exact")["completeness"]}
    one = rows[device.name]
    assert (one["created"], one["counted"], one["pending"]) == (60, 40, 20)
    assert one["gaps"] == [[3, 3]]
    two = rows[other.name]  # survey-only: a stream code is impossible, the batch is settled
    assert (two["created"], two["counted"], two["rejected"], two["pending"]) == (2, 0, 2, 0)
    await wire.settle()
    assert not device.kept
    status = aggregator.ask("status", "--exact")
    assert all(row["pending"] == 0 for row in status["completeness"])
    nobody: dict[str, list[object]] = {
        name: [] for name in ("revoked", "held", "refusing", "degraded")
    }
    silent = status["devices"].pop("longest_silent")
    assert silent["device"] in (device.name, other.name)
    numbers = {"enrolled": 2, "online": 2, "offline": 0, "unknown": 0, "silent": 0}
    assert status["devices"] == numbers | nobody
    assert status["service"]["runs"] is True
    assert status["streams"][0]["plan"]["epoch"] == 1
    assert status["last_commit_s"] > plan.issued_s


async def test_commands_say_what_is_wrong_and_exit_with_their_code(
    open_wire: OpenWire, aggregator: Aggregator, capsys: pytest.CaptureFixture[str]
) -> None:
    await (await open_wire()).plan()

    def run(name: str, *options: str) -> tuple[int, str]:
        code = main([name, "-c", str(aggregator.config), *options])
        return code, capsys.readouterr().err

    assert run("theta")[0] == 0
    assert run("status")[0] == 0
    code, said = run("query")
    assert code == 5
    assert "no reports in this range" in said
    code, said = run("query", "--stream", "gas")
    assert code == 2
    assert "expected one of power" in said
    code, said = run("run")
    assert code == 4
    assert "in use by process" in said
    with pytest.raises(SystemExit, match="2"):
        run("query", "--by", "weekday")
    assert aggregator.end(signal.SIGTERM) == 0
    text = aggregator.config.read_text()
    aggregator.config.write_text(text.replace("bucket_slots = 1024", "bucket_slots = 60"))
    code, said = run("run")
    assert code == 4
    assert "was made for stream 1" in said
    aggregator.config.write_text(text.replace("epsilon", "epsilom"))
    code, said = run("run")
    assert code == 2
    assert "streams[0].epsilom" in said
    aggregator.config.unlink()
    assert run("status")[0] == 2


async def test_after_a_lost_database_plans_go_on_and_reports_under_the_last_one_count_NET_27(
    open_wire: OpenWire, aggregator: Aggregator
) -> None:
    """The next epoch is above the retained one (docs/design.md, Messages); PLN-06 needs it."""
    wire = await open_wire()
    plan = await wire.plan()
    (device,) = wire.add(1, plan)
    await wire.send([device.make([plan.stream_mechanism.code_count])])
    await until(lambda: aggregator.counted() == 1)
    assert aggregator.end(signal.SIGTERM) == 0
    for left in aggregator.store.parent.glob("aggregator.db*"):
        left.unlink()
    aggregator.start()
    following = await wire.plan(epoch=2)
    assert (following.epoch, following.store == plan.store) == (2, False)
    await wire.send([device.make([plan.stream_mechanism.code_count])])
    await until(lambda: aggregator.counted() == 1)
    assert aggregator.plans()[1] == plan


async def test_a_retained_plan_that_the_broker_lost_is_there_again_NET_23(
    open_wire: OpenWire, aggregator: Aggregator
) -> None:
    """Nobody's link breaks; a device that comes later finds the plan all the same."""
    aggregator.end()
    text = aggregator.config.read_text()
    aggregator.config.write_text(text.replace("_interval_s = 604800", "_interval_s = 1"))
    aggregator.start()
    wire = await open_wire()
    plan = await wire.plan()
    where = topic(FLEET, "plan", plan.stream)
    await wire.link.publish(where, b"", retain=True)
    assert (await wire.link.receive()).payload == b""
    again = await wire.link.receive()
    assert (again.topic, parse_plan(again.payload)) == (where, plan)
    assert "retains our plan no more" in aggregator.log.read_text()
