"""A period of a simulated meter, through an agent and a broker: what leaves, and what it tells."""

from __future__ import annotations

import signal
from functools import partial
from typing import TYPE_CHECKING

import pytest

from edge_ldp.device.sums_frame import decode_sums
from edge_ldp.protocol.released import FIRST_SUMS_KEY
from tests.agent.samples import make_plan
from tests.agent.summed import BOTH, in_memory
from tests.integration.agent_bench import (
    PATIENT,
    Agent,
    Hub,
    fast_clock,
    listening,
    part,
    playing,
    until,
)

if TYPE_CHECKING:
    from pathlib import Path

    from edge_ldp.device.sums_frame import SumsFrame
    from tests.integration.conftest import RealBroker

pytestmark = pytest.mark.integration
REACH = 28  # scales of noise that one cell in 2^40 is beyond
MEAN_W, OFF_W = 400, 4 * 800  # of the meter's nine readings in turn


def releases(hub: Hub, device: str) -> list[SumsFrame]:
    """Return what came of sums."""
    return [
        decode_sums(payloads[0])
        for (stream, _), payloads in sorted(hub.payloads[device].items())
        if stream >= FIRST_SUMS_KEY
    ]


def has_released(hub: Hub, device: str, periods: int) -> bool:
    return len(releases(hub, device)) >= periods


async def test_periods_leave_as_sums_beside_reports_over_a_kill_AGT_34(
    tmp_path: Path, broker: RealBroker
) -> None:
    with in_memory():
        agent = Agent(
            tmp_path / "a",
            broker,
            fast_clock(60),
            stream=BOTH + "cells = 4\nleast_share = 0\n",
            window=(8, 4),
            policy="epsilon = 8",
            sending="jitter_s = 0\nreceipt_interval_s = 9000",
            meter=PATIENT,
        )
        async with listening(broker) as hub, playing(agent):
            await hub.publish(make_plan())
            agent.start()
            await until(partial(has_released, hub, agent.device, 1))
            agent.end(signal.SIGKILL)
            agent.start()
            await until(partial(has_released, hub, agent.device, 3))
            await part(hub, agent)
        found = releases(hub, agent.device)
        assert [one.batch for one in found] == list(range(1, 1 + len(found)))
        assert len({one.period for one in found}) == len(found)
        assert len(hub.slots(agent.device)) > 96
        for one in found:
            assert (one.name, one.unit, one.cells, one.days) == ("power", "W", 4, 1)
            assert one.scale == 500  # 4,000 W, four slots, half of ε 64
            for n, y in zip(one.n, one.y, strict=True):
                assert n <= 24
                assert abs(y - MEAN_W * n) <= OFF_W + REACH * one.scale
        assert max(sum(one.n) for one in found) > 48
        account = next(one for one in agent.status()["streams"] if one["stream"] == FIRST_SUMS_KEY)
        assert account["created"] == len(found)
        assert "damaged" not in agent.log.read_text()
