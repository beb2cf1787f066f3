"""The link against real brokers: what arrives, what is refused, and how a loss is told."""

import asyncio
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, cast

import pytest

from edge_ldp.service.mqtt import Broker, Link, LinkLostError, Message, RefusedError, open_link
from edge_ldp.service.mqtt_socket import (
    INBOX_LIMIT,
    MAX_PACKET_BYTES,
    READ_BURST,
    Inbox,
    LoopSocket,
    make_client,
)
from tests import needs
from tests.aggregator.fakes import until
from tests.integration.conftest import HOST, OPEN, RealBroker, broker, free_port, make_broker

__all__ = ["broker", "make_broker"]  # fixtures
pytestmark = pytest.mark.integration
PROTOCOLS = ("5", "3.1.1")
GUARDED = OPEN.replace("allow_anonymous true", "allow_anonymous false") + (
    "password_file {directory}/passwords\nacl_file {directory}/acl\n"
)
PASSWORD = "right-horse"  # noqa: S105 (of a broker that lives for a second)


def broker_at(port: int, client_id: str = "c1", **changes: object) -> Broker:
    changes.setdefault("connect_timeout_s", 60.0)
    return Broker(host=HOST, port=port, client_id=client_id, **changes)  # type: ignore[arg-type] # what tests vary


@pytest.fixture(params=PROTOCOLS)
async def link(request: pytest.FixtureRequest, broker: RealBroker) -> AsyncIterator[Link]:
    opened = await open_link(broker_at(broker.port, protocol=request.param))
    yield opened
    await opened.close()


async def soon(task: "asyncio.Task[Any]", seconds: float = 60) -> Any:
    async with asyncio.timeout(seconds):
        return await task


class Receiver(Protocol):
    """What links of this process and of a courier have in common for their readers."""

    async def subscribe(self, topics: Sequence[str]) -> None: ...
    async def receive(self) -> Message: ...
    def receive_ready(self, limit: int) -> list[Message]: ...


async def caught_up(link: Receiver) -> None:
    """Return when all is here that the broker has sent: its answer stands behind it."""
    await link.subscribe(["answer"])


async def taken_at_once(link: Receiver, total: int) -> tuple[list[Message], int]:
    """Return so many messages, and how many of them were here at most, taken by nobody."""
    await asyncio.sleep(0.5)  # all are on their way: whoever holds nothing back has them by then
    got: list[Message] = []
    most = 0
    async with asyncio.timeout(300):
        while len(got) < total:
            ready = [await link.receive(), *link.receive_ready(total)]
            most = max(most, len(ready))
            got += ready
    return got, most


# what arrives


async def test_what_is_published_arrives_bit_for_bit(link: Link) -> None:
    payloads = [b"", b"\x00", bytes(range(256)), b"x" * 200_000]
    await link.subscribe(["t/1", "t/2"])
    for payload in payloads:
        await link.publish("t/1", payload)
    await link.publish("t/2", b"end")
    got = [await asyncio.wait_for(link.receive(), 60) for _ in range(5)]
    assert [(m.topic, m.payload) for m in got] == [*(("t/1", p) for p in payloads), ("t/2", b"end")]
    assert not any(message.retain for message in got)


async def test_many_publishes_at_once_are_all_acknowledged(link: Link) -> None:
    await link.subscribe(["t"])
    async with asyncio.TaskGroup() as tasks:
        for number in range(500):
            tasks.create_task(link.publish("t", b"%d" % number))
    got = [await asyncio.wait_for(link.receive(), 60) for _ in range(500)]
    assert sorted(int(message.payload) for message in got) == list(range(500))


async def test_a_retained_message_waits_for_whoever_comes_later(
    link: Link, broker: RealBroker
) -> None:
    await link.publish("plan/x", b"old", retain=True)
    await link.publish("plan/x", b"new", retain=True)
    later = await open_link(broker_at(broker.port, "c2"))
    await later.subscribe(["plan/x"])
    message = await asyncio.wait_for(later.receive(), 60)
    assert (message.payload, message.retain) == (b"new", True)
    await later.close()


async def test_ready_messages_are_taken_without_waiting(link: Link) -> None:
    await link.subscribe(["t"])
    for number in range(5):
        await link.publish("t", b"%d" % number)
    first = await asyncio.wait_for(link.receive(), 60)
    await caught_up(link)
    taken = link.receive_ready(3)
    assert [m.payload for m in (first, *taken)] == [b"0", b"1", b"2", b"3"]
    assert [m.payload for m in link.receive_ready(99)] == [b"4"]
    assert link.receive_ready(99) == []


async def test_a_cancelled_receive_loses_no_message(link: Link) -> None:
    await link.subscribe(["t"])
    for _ in range(5):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await link.receive()
    await link.publish("t", b"x")
    assert (await asyncio.wait_for(link.receive(), 60)).payload == b"x"


async def test_what_is_larger_than_any_message_never_fills_our_memory(broker: RealBroker) -> None:
    """An MQTT 5 broker keeps it to itself; the older protocol cannot say so."""
    link = await open_link(broker_at(broker.port, protocol="auto"))
    assert link.protocol == "5"
    await link.subscribe(["t"])
    await link.publish("t", b"x" * MAX_PACKET_BYTES)
    await link.publish("t", b"y" * (MAX_PACKET_BYTES // 2))
    assert (await asyncio.wait_for(link.receive(), 60)).payload[:1] == b"y"
    await link.close()


async def test_topics_that_are_not_ours_arrive_as_they_are_NET_18(link: Link) -> None:
    await link.subscribe(["a/#"])
    names = ["a", "a//b", "a/$x", "a/é"]
    for name in names:
        await link.publish(name, b"")
    assert [(await asyncio.wait_for(link.receive(), 60)).topic for _ in names] == names


# the inbox


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_slow_reader_holds_the_broker_back_and_loses_nothing_AGG_15(
    make_broker: Callable[[str], RealBroker], protocol: str
) -> None:
    """Manual acknowledgements off and on: the inbox keeps its bound, and all arrive in order."""
    broker = make_broker(OPEN)
    slow = await open_link(broker_at(broker.port, "slow", protocol=protocol))
    await slow.subscribe(["t"])
    fast = await open_link(broker_at(broker.port, "fast"))
    total = 2 * INBOX_LIMIT
    for start in range(0, total, 500):
        async with asyncio.TaskGroup() as tasks:
            for number in range(start, start + 500):
                tasks.create_task(fast.publish("t", b"%d" % number))
    got, most = await taken_at_once(slow, total)
    assert INBOX_LIMIT <= most < INBOX_LIMIT + READ_BURST
    assert sorted(int(message.payload) for message in got) == list(range(total))
    await slow.close()
    await fast.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_what_was_not_acknowledged_comes_again_AGG_01(
    broker: RealBroker, protocol: str
) -> None:
    def session(client_id: str) -> Broker:
        return broker_at(broker.port, client_id, protocol=protocol, session_s=3600, manual_ack=True)

    sender = await open_link(broker_at(broker.port, "sender"))
    first = await open_link(session("reader"))
    await first.subscribe(["t"])
    for number in range(6):
        await sender.publish("t", b"%d" % number)
    got = [await asyncio.wait_for(first.receive(), 60) for _ in range(6)]
    for message in got[:3]:
        first.ack(message)
    await first.publish("done", b"")  # whose acknowledgement stands behind the three
    await first.close(abrupt=True)
    second = await open_link(session("reader"))
    again = [await asyncio.wait_for(second.receive(), 60) for _ in range(3)]
    assert [message.payload for message in again] == [b"3", b"4", b"5"]
    for message in again:
        second.ack(message)
    await second.publish("done", b"")  # a broker may read a new CONNECT before what came earlier
    await second.close()
    third = await open_link(session("reader"))
    await sender.publish("t", b"last")
    assert (await soon(asyncio.create_task(third.receive()))).payload == b"last"
    await third.close()
    await sender.close()


async def test_without_a_session_the_broker_forgets_us(broker: RealBroker) -> None:
    first = await open_link(broker_at(broker.port))
    await first.subscribe(["t"])
    await first.close()
    second = await open_link(broker_at(broker.port))
    await second.publish("t", b"x")
    await second.subscribe(["u"])
    await second.publish("u", b"y")  # would come after what is still subscribed to
    assert (await soon(asyncio.create_task(second.receive()))).topic == "u"
    await second.close()


# how it ends


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("abrupt", [True, False])
async def test_the_will_is_sent_after_an_abrupt_end_and_only_then(
    broker: RealBroker, protocol: str, *, abrupt: bool
) -> None:
    watcher = await open_link(broker_at(broker.port, "watcher"))
    await watcher.subscribe(["status/c1"])
    will = Message("status/c1", b"offline", retain=True)
    leaver = await open_link(broker_at(broker.port, protocol=protocol, will=will))
    await leaver.publish("status/c1", b"online", retain=True)
    assert (await asyncio.wait_for(watcher.receive(), 60)).payload == b"online"
    await leaver.close(abrupt=abrupt)
    if abrupt:
        assert (await asyncio.wait_for(watcher.receive(), 60)).payload == b"offline"
    else:
        await until(lambda: "Client c1 disconnected" in broker.log())
        await watcher.publish("status/c1", b"later")
        assert (await asyncio.wait_for(watcher.receive(), 60)).payload == b"later"
    await watcher.close()


async def test_a_killed_broker_ends_every_wait_with_a_loss_NET_03(
    link: Link, broker: RealBroker
) -> None:
    broker.pause()
    publishing = [asyncio.create_task(link.publish("t", b"x")) for _ in range(3)]
    receiving = asyncio.create_task(link.receive())
    subscribing = asyncio.create_task(link.subscribe(["t"]))
    await asyncio.sleep(0.1)
    assert not any(task.done() for task in (*publishing, receiving, subscribing))
    broker.kill()
    for task in (*publishing, receiving, subscribing):
        with pytest.raises(LinkLostError, match=f"broker {HOST}:{broker.port}: "):
            await soon(task)
    for attempt in (link.publish("t", b"x"), link.receive(), link.subscribe(["t"])):
        with pytest.raises(LinkLostError):
            await attempt
    link.ack(Message("t", b"", mid=1))
    await link.close()
    await link.close()


async def test_messages_that_came_before_the_loss_are_still_given(
    link: Link, broker: RealBroker
) -> None:
    await link.subscribe(["t"])
    await link.publish("t", b"x")
    await caught_up(link)
    broker.kill()
    with pytest.raises(LinkLostError):
        await link.publish("t", b"y")
    assert (await soon(asyncio.create_task(link.receive()))) is not None
    with pytest.raises(LinkLostError):
        await link.receive()


async def test_after_closing_nothing_can_be_done(link: Link) -> None:
    waiting = asyncio.create_task(link.receive())
    await asyncio.sleep(0)
    await link.close()
    with pytest.raises(LinkLostError, match=r"closed|normal disconnection"):
        await soon(waiting)
    with pytest.raises(LinkLostError, match=r"closed|normal disconnection"):
        await link.publish("t", b"x")


async def test_a_second_client_of_the_same_name_ends_the_first_NET_13(
    link: Link, broker: RealBroker
) -> None:
    waiting = asyncio.create_task(link.receive())
    twin = await open_link(broker_at(broker.port, protocol=link.protocol))
    with pytest.raises(LinkLostError):
        await soon(waiting)
    await twin.publish("t", b"still here")
    await twin.close()


# how it is refused


@pytest.fixture
def guarded(make_broker: Callable[[str], RealBroker], tmp_path: Path) -> RealBroker:
    """Give a broker where `me` may only write to `mine`."""
    source = tmp_path / "passwords"
    source.write_text(f"me:{PASSWORD}\n")
    subprocess.run([needs.program("mosquitto_passwd"), "-U", str(source)], check=True, timeout=240)
    text = GUARDED.replace("{directory}/passwords", str(source)).replace(
        "{directory}/acl", str(tmp_path / "acl")
    )
    (tmp_path / "acl").write_text("user me\ntopic readwrite mine\n")
    return make_broker(text)


@pytest.mark.parametrize("protocol", [*PROTOCOLS, "auto"])
@pytest.mark.parametrize(("user", "password"), [("me", "wrong"), ("you", PASSWORD), (None, None)])
async def test_wrong_credentials_are_refused_with_a_clear_reason_and_not_repeated_NET_11(
    guarded: RealBroker, protocol: str, user: str | None, password: str | None
) -> None:
    target = broker_at(guarded.port, protocol=protocol, username=user, password=password)
    with pytest.raises(LinkLostError) as lost:
        await open_link(target)
    assert lost.value.reason in ("not authorized", "bad user name or password")
    assert lost.value.endpoint == f"{HOST}:{guarded.port}"
    assert password is None or password not in f"{lost.value}{lost.value!r}{target!r}"


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_right_credentials_open_what_they_may_NET_12(
    guarded: RealBroker, protocol: str
) -> None:
    link = await open_link(
        broker_at(guarded.port, protocol=protocol, username="me", password=PASSWORD)
    )
    await link.publish("mine", b"x")
    if protocol == "5":
        with pytest.raises(RefusedError, match="broker refused theirs: not authorized") as refused:
            await link.publish("theirs", b"x")
        assert refused.value.topic == "theirs"
    else:
        await link.publish("theirs", b"x")  # 3.1.1 has no word for it
    await link.publish("mine", b"y")
    await link.close()


async def test_nobody_listening_is_told_at_once() -> None:
    with pytest.raises(LinkLostError, match="refused") as lost:
        await open_link(broker_at(free_port()))
    assert "Connection refused" in lost.value.reason


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        *((name, "no host can have this name") for name in ("mqtt..b", ".local", "a" * 64 + ".b")),
        ("no-such-host.invalid", "."),
    ],
)
async def test_a_name_that_does_not_resolve_is_told_NET_20(host: str, reason: str) -> None:
    with pytest.raises(LinkLostError) as lost:
        await open_link(Broker(host, 1883, "c1"))
    assert re.search(reason, lost.value.reason)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server((HOST, 0)) as sock:
        yield sock


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x20\x02\x00\x05"])
async def test_what_is_no_broker_is_told(listener: socket.socket, answer: bytes) -> None:
    port = listener.getsockname()[1]
    listener.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, HOST, port)
    with pytest.raises(LinkLostError):
        await soon(asyncio.create_task(open_link(broker_at(port))))
    server.close()


async def test_silence_is_given_up_before_and_after_the_brokers_answer_NET_08(
    broker: RealBroker, listener: socket.socket
) -> None:
    link = await open_link(broker_at(broker.port, keepalive_s=4))
    waiting = asyncio.create_task(link.receive())
    broker.pause()
    silent = broker_at(listener.getsockname()[1], protocol="5", connect_timeout_s=1.0)
    never = asyncio.create_task(open_link(silent))
    with pytest.raises(LinkLostError):
        await soon(waiting, 30)  # the keep-alive of who says nothing of it takes 45 s
    with pytest.raises(LinkLostError, match="no answer in time"):
        await soon(never)
    broker.resume()
    await link.close()


@pytest.mark.parametrize("content", [None, "no certificate in here"])
async def test_a_ca_file_that_is_none_is_told_and_does_not_end_the_caller(
    tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "ca.pem").write_text(content)
    target = broker_at(free_port(), tls=True, ca_file=str(tmp_path / "ca.pem"))
    with pytest.raises(LinkLostError, match="ca_file"):
        await open_link(target)


async def test_a_socket_that_connects_after_we_gave_up_is_closed(broker: RealBroker) -> None:
    """The name took too long to resolve: the helper thread comes back to a link that is lost."""
    client = make_client(broker_at(broker.port), "5")
    given_up = LoopSocket(client, Inbox(), lambda: True, lambda: None)
    with socket.create_connection((HOST, broker.port)) as late:
        assert client.on_socket_open is not None
        client.on_socket_open(client, None, late)
        await asyncio.sleep(0)
        assert late.fileno() == -1
    assert given_up.current is None


async def test_a_socket_that_connected_unseen_is_closed_by_who_leaves(broker: RealBroker) -> None:
    """The thread has it, the loop was not told yet, and may never run again: a stop just then."""
    link = Link(broker_at(broker.port), "5")
    with socket.create_connection((HOST, broker.port)) as late:
        opening = threading.Thread(
            target=link._client.on_socket_open,  # noqa: SLF001 (as paho calls it, from its thread)
            args=(link._client, None, late),  # noqa: SLF001
        )
        opening.start()
        opening.join()
        link.leave()
        assert late.fileno() == -1
        await asyncio.sleep(0)
    assert link.peer is None


# a broker that speaks 3.1.1 only


@pytest.fixture
def old_broker() -> Iterator[int]:
    """Give the port of an iotcore broker, which knows nothing of MQTT 5."""
    port = free_port()
    command = [sys.executable, "-m", "iotcore", "--listen", HOST, "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    with socket.socket() as probe:
        probe.settimeout(1)
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) == 0:
                break
        time.sleep(0.02)
    yield port
    process.kill()
    process.wait(300)


async def test_a_broker_without_mqtt_5_is_spoken_to_in_3_1_1(old_broker: int) -> None:
    with pytest.raises(LinkLostError):
        await open_link(broker_at(old_broker, protocol="5"))
    link = await open_link(broker_at(old_broker, protocol="auto"))
    assert link.protocol == "3.1.1"
    await link.subscribe(["t"])
    await link.publish("t", b"x")
    assert (await asyncio.wait_for(link.receive(), 60)).payload == b"x"
    await link.close()


async def test_a_broker_that_swallows_mqtt_5_is_spoken_to_in_3_1_1_NET_28(
    broker: RealBroker,
) -> None:
    """It takes the connection and says nothing; asked in 3.1.1, it answers."""
    levels: list[int] = []
    served: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(cast("asyncio.Task[None]", asyncio.current_task()))
        asked = await reader.read(1024)
        levels.append(asked[asked.index(b"MQTT") + 4])
        if levels[-1] == 5:
            await reader.read()
            writer.close()
            await writer.wait_closed()
            return
        there, back = await asyncio.open_connection(HOST, broker.port)
        back.write(asked)
        ways = [(reader, back), (there, writer)]
        await asyncio.gather(*(carry(*way) for way in ways))

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while some := await reader.read(1024):
            writer.write(some)
        writer.close()
        await writer.wait_closed()

    port = free_port()
    async with await asyncio.start_server(serve, HOST, port):
        link = None
        for patience_s in (0.5, 5.0, 60.0):  # on a busy machine an answer may take a while, too
            target = broker_at(port, protocol="auto", connect_timeout_s=patience_s)
            with suppress(LinkLostError):
                link = await open_link(target)
                break
        assert link is not None
        assert link.protocol == "3.1.1"
        assert levels[-2:] == [5, 4]
        await link.subscribe(["t"])
        await link.publish("t", b"x")
        assert (await asyncio.wait_for(link.receive(), 60)).payload == b"x"
        await link.close()
        await asyncio.wait(served)
