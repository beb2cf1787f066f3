"""Two aggregators with stores of their own on one broker: the second ends, nothing is lost."""

import asyncio
from pathlib import Path

import pytest

from aggregator.commands.common import EXIT_RIVAL
from aggregator.main import main
from tests.integration.aggregator_bench import (
    CLOCK_RATE,
    Aggregator,
    Wire,
    assert_counts_are_right,
    until,
    wires,
)
from tests.integration.conftest import RealBroker

HOMES = 12
OWN_NAME = 'client_id = "second"'


def placed(directory: Path, broker: RealBroker, *, login: str = "") -> Aggregator:
    """Return an aggregator of a directory of its own, whose clock runs as real ones do."""
    directory.mkdir()
    made = Aggregator(directory, broker, login=login)
    text = made.config.read_text()
    made.config.write_text(text.replace(f"rate = {CLOCK_RATE}", "rate = 1"))
    return made


async def report(wire: Wire) -> None:
    """Let every home take the newest plan, report under it and say so."""
    wire.heard()
    plan = wire.plans[-1]
    for device in wire.devices.values():
        if plan.epoch > device.plan.epoch:
            device.plan = plan
    codes = [plan.stream_mechanism.code_count + at for at in range(2)]
    await wire.send(device.make(codes) for device in wire.devices.values())
    await wire.send(device.status() for device in wire.devices.values())


@pytest.mark.parametrize(
    ("login", "is_copy"),
    [("", False), (OWN_NAME, False), ("", True)],
    ids=["the same client id", "a client id of its own", "a copy of the store"],
)
async def test_the_second_aggregator_ends_and_no_report_is_lost_NET_27(
    broker: RealBroker, tmp_path: Path, login: str, *, is_copy: bool
) -> None:
    first = placed(tmp_path / "first", broker)
    second = placed(tmp_path / "second", broker, login=login)
    first.start()
    try:
        async with wires(broker) as open_wire:
            wire = await open_wire()
            wire.add(HOMES, await wire.plan())
            await report(wire)
            await until(lambda: first.counted() == 2 * HOMES)
            if is_copy:
                assert main(["backup", "-c", str(first.config), str(second.store)]) == 0
            second.start()
            ended = asyncio.create_task(asyncio.to_thread(second.wait))
            while not ended.done():
                await report(wire)
                await asyncio.wait([ended], timeout=1.0)
            assert ended.result() == EXIT_RIVAL
            told = second.log.read_text()
            assert "another aggregator" in told
            assert "this one ends" in told
            await report(wire)
            await wire.settle()
            await assert_counts_are_right(first, wire)
            assert (
                sum(first.ask("completeness")["totals"][key] for key in ("rejected", "pending"))
                == 0
            )
    finally:
        first.kill()
        second.kill()
