"""An operator at work beside the running aggregator: what is decided holds, nothing is lost."""

import io
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from aggregator.main import main
from tests.integration.aggregator_bench import Aggregator, Device, Wire, until, wires
from tests.integration.conftest import RealBroker

REPORTS = 20


@pytest.fixture
async def wire(broker: RealBroker) -> AsyncIterator[Wire]:
    async with wires(broker) as make:
        yield await make()


@pytest.fixture
def aggregator(tmp_path: Path, broker: RealBroker) -> Iterator[Aggregator]:
    process = Aggregator(tmp_path, broker)
    process.start()
    yield process
    process.kill()


def order(aggregator: Aggregator, *command: str) -> Any:
    """Run one command, in this process beside the service's; return what it prints."""
    below = 1 + (command[0] in ("devices", "plan", "streams"))
    config = ("-c", str(aggregator.config))
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = main([*command[:below], *config, *command[below:], "--json"])
    assert code == 0, printed.getvalue()
    return json.loads(printed.getvalue())


def made(device: Device) -> tuple[str, bytes]:
    """Return a device's next frame: survey reports, which every plan allows."""
    return device.make([device.plan.stream_mechanism.code_count] * REPORTS)


async def test_what_an_operator_decides_holds_at_once_and_is_undone_without_a_loss(
    wire: Wire, aggregator: Aggregator
) -> None:
    plan = await wire.plan()
    a, b, c, d = wire.add(4, plan)

    async def report() -> None:
        await wire.send(made(device) for device in (a, b, c, d))

    await report()
    await until(lambda: aggregator.counted() == 4 * REPORTS)
    order(aggregator, "devices", "quarantine", a.name)
    order(aggregator, "devices", "revoke", b.name)
    order(aggregator, "devices", "group", c.name, "--to", "feeder-1")
    await report()
    await until(lambda: aggregator.counted() == 6 * REPORTS)
    assert aggregator.refused() == {"device": 1}
    found = order(aggregator, "completeness", "--exact")
    assert found["holds"]
    assert {row["device"]: row["held"] for row in found["devices"]}[a.name] == REPORTS
    order(aggregator, "devices", "release", a.name)
    order(aggregator, "devices", "reinstate", b.name)
    await wire.settle()
    assert aggregator.counts() == wire.expected()
    found = order(aggregator, "completeness", "--exact")
    assert (found["holds"], found["totals"]["counted"]) == (True, 8 * REPORTS)
    assert found["counts"][0]["in_counts"] == 8 * REPORTS
    assert [row["group"] for row in order(aggregator, "devices", "groups")["groups"]] == [
        "",
        "feeder-1",
    ]
