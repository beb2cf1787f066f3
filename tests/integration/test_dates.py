"""A service whose clock was ahead as it was started: no report is lost by its plan's date."""

import re
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.agent_bench import until
from tests.integration.aggregator_bench import Aggregator, assert_counts_are_right, wires
from tests.integration.conftest import RealBroker

DAY_S, ORIGIN_S = 86_400, 1_700_000_000
RATE = 600  # an hour of doubt takes 6 s


def set_ahead(aggregator: Aggregator, ahead_s: int) -> None:
    """Let the clock of the next start be so far ahead of the devices'."""
    text = aggregator.config.read_text()
    text = re.sub(r"origin_s = \d+", f"origin_s = {ORIGIN_S + ahead_s}", text)
    text = re.sub(r"receipt_interval_s = \d+", "receipt_interval_s = 600", text)
    aggregator.config.write_text(re.sub(r"\nrate = \d+", f"\nrate = {RATE}", text))


@pytest.mark.parametrize("days", [1, 400])
async def test_what_older_devices_report_under_a_plan_dated_ahead_is_kept_and_counted_PLN_18(
    tmp_path: Path, broker: RealBroker, days: int
) -> None:
    """They do not look at a plan's date: 0 of 400 reports are lost."""
    aggregator = Aggregator(tmp_path, broker)
    set_ahead(aggregator, days * DAY_S)
    async with wires(broker) as open_wire:
        wire = await open_wire()
        try:
            aggregator.start()
            plan = await wire.plan()
            assert plan.issued_s >= ORIGIN_S + days * DAY_S
            codes = [plan.stream_mechanism.code_count + at % 8 for at in range(10)]
            devices = wire.add(4, replace(plan, issued_s=ORIGIN_S))
            for _ in range(5):  # while the clock is wrong
                await wire.send([device.make(codes) for device in devices])
            await wire.send(device.status() for device in devices)
            await until(lambda: aggregator.refused().get("clock", 0) >= 20)
            assert aggregator.counted() == 0
            assert wire.kept() == 20
            assert aggregator.end(signal.SIGTERM) == 0
            set_ahead(aggregator, 0)
            aggregator.start()
            renewed = await wire.plan(2)
            for device in devices:
                device.plan = renewed
            for _ in range(5):
                await wire.send([device.make(codes) for device in devices])
            await wire.settle()
            await assert_counts_are_right(aggregator, wire)
            assert aggregator.counted() == 400
            assert set(aggregator.refused()) <= {"clock", "duplicate"}
            assert "epoch 1 is dated" in aggregator.log.read_text()
        finally:
            aggregator.kill()
