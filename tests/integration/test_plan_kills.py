"""The aggregator killed while it estimates or publishes a plan: AGG-17."""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from edge_ldp.vectorized import perturb_many
from tests.integration.aggregator_bench import STREAM, Aggregator, Wire, until, wires
from tests.integration.conftest import EVERY_SECOND, RealBroker

pytestmark = pytest.mark.slow
SURVEYS, KILLS = 4000, 12


def surveys(wire: Wire, devices: int, reports: int) -> list[tuple[str, bytes]]:
    """Return survey reports of low values, as their devices send them: they lead to a θ."""
    plan = wire.plans[-1]
    rng = np.random.default_rng(17)
    values = rng.integers(0, plan.survey_mechanism.randomizer.high // 10, devices * reports)
    codes = perturb_many(plan.survey_mechanism, values, entropy=rng.bytes)
    codes += plan.stream_mechanism.code_count
    each = zip(wire.add(devices, plan), codes.reshape(devices, reports).tolist(), strict=True)
    return [device.make(sent) for device, sent in each]


async def test_killed_while_it_estimates_or_publishes_it_goes_on_with_the_same_plan_AGG_17(
    tmp_path: Path, make_broker: Callable[[str], RealBroker]
) -> None:
    """Killed again and again around the moment at which the second plan is made."""
    aggregator = Aggregator(tmp_path, make_broker(EVERY_SECOND), surveys=SURVEYS)
    aggregator.start()
    draw = random.Random(5)  # noqa: S311 (when to kill)
    try:
        async with wires(aggregator.broker) as make:
            wire = await make()
            await wire.plan()
            await wire.send(surveys(wire, 40, SURVEYS // 40))
            await until(lambda: aggregator.counted() == SURVEYS)
            for _ in range(KILLS):
                aggregator.kill()
                start = aggregator.log.stat().st_size
                aggregator.start()
                await until(lambda start=start: b"connected" in aggregator.log.read_bytes()[start:])
                await asyncio.sleep(draw.random() * 2.5)
            await wire.plan(epoch=2)
            await asyncio.sleep(1.5)
            wire.heard()
            again = await make()
            assert await again.plan() == wire.plans[-1]
            seen = wire.plans
    finally:
        aggregator.kill()
    epochs = [plan.epoch for plan in seen]
    assert epochs == sorted(epochs)
    stored = aggregator.plans()
    assert all(plan == stored[plan.epoch] for plan in seen)  # what was published was stored before
    assert sorted(stored) == [1, 2]
    assert [(row.stream, row.at_s) for row in aggregator.revisions()] == [
        (STREAM, stored[2].issued_s)
    ]
