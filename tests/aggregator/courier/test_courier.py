"""The link that a process of its own holds: as good as one of ours, and how both ends end.

The tests that are imported are those of `edge_ldp.service.mqtt.Link`, on this link.
"""

import asyncio
import gc
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from aggregator.courier.courier import INBOX_LIMIT, CourierLink, open_courier
from aggregator.courier.process import AT_ONCE, Courier
from aggregator.courier.wire import Open, Wire, beat_s, patience_s
from edge_ldp.service.broker import Broker
from edge_ldp.service.mqtt import LinkLostError, RefusedError, TooBigError, open_link
from tests.aggregator.fakes import until
from tests.edge_ldp.service.test_mqtt import (
    PASSWORD,
    PROTOCOLS,
    broker_at,
    guarded,
    soon,
    taken_at_once,
    test_a_cancelled_receive_loses_no_message,
    test_a_killed_broker_ends_every_wait_with_a_loss_NET_03,
    test_after_closing_nothing_can_be_done,
    test_many_publishes_at_once_are_all_acknowledged,
    test_messages_that_came_before_the_loss_are_still_given,
    test_ready_messages_are_taken_without_waiting,
    test_topics_that_are_not_ours_arrive_as_they_are_NET_18,
    test_what_is_published_arrives_bit_for_bit,
)
from tests.integration.conftest import OPEN, RealBroker, broker, free_port, make_broker

__all__ = [
    "broker",
    "guarded",
    "make_broker",
    "test_a_cancelled_receive_loses_no_message",
    "test_a_killed_broker_ends_every_wait_with_a_loss_NET_03",
    "test_after_closing_nothing_can_be_done",
    "test_many_publishes_at_once_are_all_acknowledged",
    "test_messages_that_came_before_the_loss_are_still_given",
    "test_ready_messages_are_taken_without_waiting",
    "test_topics_that_are_not_ours_arrive_as_they_are_NET_18",
    "test_what_is_published_arrives_bit_for_bit",
]
pytestmark = pytest.mark.integration


# what the courier does is the same by both, which our own link is tested by (test_mqtt.py); the
# older one with the slow tests
@pytest.fixture(params=[PROTOCOLS[0], pytest.param(PROTOCOLS[1], marks=pytest.mark.slow)])
async def link(request: pytest.FixtureRequest, broker: RealBroker) -> AsyncIterator[CourierLink]:
    opened = await open_courier(broker_at(broker.port, protocol=request.param))
    yield opened
    await opened.close()


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A courier that ends slowly, on a busy machine, is not killed for it."""
    monkeypatch.setattr("aggregator.courier.courier.END_S", 60.0)


def shown_of(pid: int) -> bytes:
    return b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))


# how it is refused


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_refusal_has_the_reason_that_a_link_of_ours_gives_NET_11(
    guarded: RealBroker, protocol: str
) -> None:
    target = broker_at(guarded.port, protocol=protocol, username="me", password="wrong")  # noqa: S106
    reasons = []
    for opening in (open_link, open_courier):
        with pytest.raises(LinkLostError) as lost:
            await opening(target)
        reasons.append((lost.value.endpoint, lost.value.reason))
    assert reasons[0] == reasons[1]


async def test_nobody_listening_is_told_as_by_a_link_of_ours() -> None:
    with pytest.raises(LinkLostError, match="Connection refused"):
        await open_courier(broker_at(free_port()))


async def test_a_machine_that_starts_no_process_is_a_lost_link_and_no_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("aggregator.courier.courier.sys.executable", "/nowhere/python")
    with pytest.raises(LinkLostError, match="no courier starts: No such file"):
        await open_courier(broker_at(free_port()))


async def test_one_refused_publish_leaves_the_others_NET_12(guarded: RealBroker) -> None:
    target = broker_at(guarded.port, protocol="5", username="me", password=PASSWORD)
    link = await open_courier(target)
    with pytest.raises(RefusedError, match="broker refused theirs: not authorized") as refused:
        await link.publish("theirs", b"x")
    assert refused.value.topic == "theirs"
    await link.publish("mine", b"x")
    await link.close()


async def test_what_is_too_big_for_the_broker_is_told_and_the_link_lives(
    make_broker: Callable[[str], RealBroker],
) -> None:
    small = make_broker(OPEN + "max_packet_size 2000\n")
    link = await open_courier(broker_at(small.port, protocol="5"))
    with pytest.raises(TooBigError) as told:
        await link.publish("t", b"x" * 3000)
    assert told.value.limit == 2000
    await link.publish("t", b"x")
    await link.close()


async def test_the_password_stands_in_no_command_line_and_no_environment(
    guarded: RealBroker,
) -> None:
    target = broker_at(guarded.port, username="me", password=PASSWORD)
    link = await open_courier(target)
    assert PASSWORD.encode() not in shown_of(courier_pid())
    await link.close()


# what is not acknowledged


async def test_a_courier_that_is_killed_is_a_lost_link_and_loses_no_message_AGG_01(
    broker: RealBroker,
) -> None:
    target = broker_at(broker.port, "reader", protocol="5", session_s=3600, manual_ack=True)
    first = await open_courier(target)
    await first.subscribe(["t"])
    sender = await open_link(broker_at(broker.port, "sender"))
    for number in range(6):
        await sender.publish("t", b"%d" % number)
    got = [await asyncio.wait_for(first.receive(), 60) for _ in range(6)]
    for message in got[:3]:
        first.ack(message)
    await asyncio.sleep(0)  # acknowledgements go out with the next turn of the loop
    await first.publish("done", b"")  # whose acknowledgement stands behind them
    os.kill(courier_pid(), signal.SIGKILL)
    with pytest.raises(LinkLostError, match="its courier ended"):
        await soon(asyncio.create_task(first.receive()))
    with pytest.raises(LinkLostError):
        await first.publish("t", b"x")
    await first.close()
    second = await open_courier(target)
    again = [await asyncio.wait_for(second.receive(), 60) for _ in range(3)]
    assert [message.payload for message in again] == [b"3", b"4", b"5"]
    await second.close()
    await sender.close()


async def test_what_was_acknowledged_before_a_close_goes_out_first(broker: RealBroker) -> None:
    target = broker_at(broker.port, "reader", protocol="5", session_s=3600, manual_ack=True)
    link = await open_courier(target)
    await link.subscribe(["t"])
    for _ in range(50):
        await link.publish("t", b"x")
    for _ in range(50):
        link.ack(await asyncio.wait_for(link.receive(), 60))
    await link.close()
    # the broker reads what was sent in its own time, and could take up a new connection first
    await until(lambda: "Client reader disconnected" in broker.log(), 60)
    again = await open_courier(target)
    await again.publish("t", b"last")
    assert (await soon(asyncio.create_task(again.receive()))).payload == b"last"
    await again.close()


async def test_a_slow_reader_holds_the_broker_back_and_loses_nothing_AGG_15(
    make_broker: Callable[[str], RealBroker],
) -> None:
    broker = make_broker(OPEN)
    slow = await open_courier(broker_at(broker.port, "slow", protocol="3.1.1"))
    await slow.subscribe(["t"])
    fast = await open_link(broker_at(broker.port, "fast"))
    body, total = b"x" * 2000, 2 * INBOX_LIMIT
    for start in range(0, total, 500):
        async with asyncio.TaskGroup() as tasks:
            for number in range(start, start + 500):
                tasks.create_task(fast.publish("t", b"%d" % number + body))
    got, most = await taken_at_once(slow, total)
    assert INBOX_LIMIT <= most < INBOX_LIMIT + AT_ONCE
    assert sorted(int(one.payload.removesuffix(body)) for one in got) == list(range(total))
    await slow.close()
    await fast.close()


# how both ends end


@pytest.mark.parametrize("abrupt", [True, False])
async def test_closing_ends_the_courier(
    broker: RealBroker, capfd: pytest.CaptureFixture[str], *, abrupt: bool
) -> None:
    before = children()
    link = await open_courier(broker_at(broker.port))
    await soon(asyncio.create_task(link.close(abrupt=abrupt)), 30)  # it is killed after 60 s
    assert children() == before
    assert capfd.readouterr().err == ""


async def test_what_stops_the_aggregator_does_not_stop_its_courier(
    broker: RealBroker, capfd: pytest.CaptureFixture[str]
) -> None:
    """A service manager sends its signal to all processes; the last acknowledgements are to go."""
    before = children()
    link = await open_courier(broker_at(broker.port))
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(courier_pid(), number)
    await asyncio.sleep(0.2)
    await link.publish("t", b"x")
    await soon(asyncio.create_task(link.close()), 30)
    assert children() == before
    assert capfd.readouterr().err == ""


async def test_a_courier_ends_with_its_aggregator_whatever_it_is_doing_AGG_01() -> None:
    """No answer comes from who listens here, so the courier is still connecting."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = broker_at(silent.getsockname()[1], protocol="5")
        opening = asyncio.create_task(open_courier(target))
        connection, _ = await asyncio.to_thread(silent.accept)
        with connection:
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await soon(opening)


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
async def test_opening_that_is_given_up_at_any_moment_leaves_nothing_behind(step: int) -> None:
    """A process whose link nobody holds would be ended by nobody."""
    before = children()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = broker_at(silent.getsockname()[1], protocol="5")
        for turns in range(0, 16, step):
            opening = asyncio.create_task(open_courier(target))
            for _ in range(turns):
                await asyncio.sleep(0)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await soon(opening)
            del opening
            gc.collect()  # what was left open would be told of here
            assert children() == before


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("abrupt", [True, False])
async def test_closing_that_is_given_up_at_any_moment_ends_the_courier(
    broker: RealBroker, step: int, *, abrupt: bool
) -> None:
    before = children()
    for turns in range(1, 9, step):
        link = await open_courier(broker_at(broker.port))
        closing = asyncio.create_task(link.close(abrupt=abrupt))
        for _ in range(turns):
            await asyncio.sleep(0)
        closing.cancel()
        with suppress(asyncio.CancelledError):  # it may have ended first
            await soon(closing)
        assert children() == before


def children() -> set[str]:
    """Return the processes that this one started and that have not ended."""
    found: set[str] = set()
    for thread in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that ends meanwhile
            found.update(thread.joinpath("children").read_text().split())
    return found


def courier_pid() -> int:
    """Return the one process of ours that holds a link."""
    couriers = [int(pid) for pid in children() if b"courier.process" in shown_of(int(pid))]
    assert len(couriers) == 1
    return couriers[0]


async def test_a_courier_does_not_go_on_for_an_aggregator_that_hangs(
    broker: RealBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the broker would take a hanging worker for one at work, and give it messages."""
    monkeypatch.setattr("aggregator.courier.wire.START_S", 0.5)
    ours, theirs = socket.socketpair()
    wire = await Wire.on(ours)
    wire.write(Open(broker_at(broker.port, keepalive_s=1)))
    courier = asyncio.create_task(Courier(await Wire.on(theirs)).serve())
    await asyncio.wait_for(courier, 60)
    await wire.close()


async def test_a_courier_that_hangs_is_given_up_and_ended(
    broker: RealBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = children()
    link = await open_courier(broker_at(broker.port))
    monkeypatch.setattr("aggregator.courier.wire.patience_s", lambda _: 0.5)
    monkeypatch.setattr("aggregator.courier.courier.END_S", 0.2)
    await link.publish("t", b"x")  # what is waited for after its answer is waited for so long
    os.kill(courier_pid(), signal.SIGSTOP)
    with pytest.raises(LinkLostError, match="its courier ended"):
        await soon(asyncio.create_task(link.receive()))
    await link.close()
    assert children() == before, "one that is stopped ends only if it is killed"


async def test_while_both_are_well_a_silent_link_lives_on(
    broker: RealBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sign of life is answered, and with each answer the patience begins anew."""
    waited: list[float] = []

    def patience(broker: Broker) -> float:
        waited.append(patience_s(broker))
        return waited[-1]

    monkeypatch.setattr("aggregator.courier.wire.beat_s", lambda _: 0.1)
    monkeypatch.setattr("aggregator.courier.wire.patience_s", patience)
    target = broker_at(broker.port)
    assert 2 * beat_s(target) < patience_s(target)
    link = await open_courier(target)
    await until(lambda: len(waited) >= 10)
    await link.publish("t", b"x")
    await link.close()
