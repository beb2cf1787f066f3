"""What the broker retains at a plan's topic, read by a connection of its own."""

import asyncio

import pytest

from aggregator.courier.retained import read_retained
from edge_ldp.service.mqtt import Broker, Message
from tests.aggregator.fakes import FakeLink


class SetAside(FakeLink):
    """A link of a process that does not run until the time is over; then all is there."""

    async def receive(self) -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def close(self, *, abrupt: bool = False) -> None:
        assert not abrupt


async def test_a_plan_that_came_while_the_process_was_set_aside_is_not_taken_for_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    link = SetAside([Message("plan/a", b"x", retain=True)])

    async def opened(_broker: Broker) -> FakeLink:
        return link

    monkeypatch.setattr("aggregator.courier.retained.open_link", opened)
    assert await read_retained(Broker("fake", 1, "fake"), ["plan/a", "plan/b"], 0.01) == {
        "plan/a": b"x"
    }
