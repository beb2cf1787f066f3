"""The aggregator as a process: its main job, its commands, and frames that must not count."""

import re
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
from edge_ldp.protocol.plan import Plan
from edge_ldp.vectorized import perturb_many
from tests.integration.aggregator_bench import Aggregator, Wire, until, wires
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
