"""The agent's link in a bad network: slow, silent, full, misnamed, taken over, flooded."""

import asyncio
import logging
import os
import shutil
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent.link.trouble import TWIN_TIMES
from edge_ldp.device.frame import MAX_BYTES, decode
from edge_ldp.protocol.messages import topic
from edge_ldp.service.mqtt import Broker, open_link
from tests.agent.link.test_uplink import Home
from tests.agent.samples import DEVICE, FLEET
from tests.integration.agent_bench import listening, until
from tests.integration.conftest import HOST, OPEN, SAVED, RealBroker, running
from tests.integration.mqtt5 import Scripted

# slow and silent


class SlowProxy:
    """Passes bytes on at a modem's speed, late, and now and then as late as a lost packet makes it.

    A loss below TCP shows above it as a stall of one retransmission time-out: that is what is done.
    """

    def __init__(self, target: int, *, bytes_per_s: int, delay_s: float, stall_s: float) -> None:
        self.connections = 0
        self._target = target
        self._bytes_per_s = bytes_per_s
        self._delay_s = delay_s
        self._stall_s = stall_s
        self._pieces = 0

    async def __aenter__(self) -> int:
        self._server = await asyncio.start_server(self._serve, HOST, 0)
        self._serving: set[asyncio.Task[None]] = set()
        return int(self._server.sockets[0].getsockname()[1])

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.add(asyncio.ensure_future(self._carry(reader, writer)))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        far_reader, far_writer = await asyncio.open_connection(HOST, self._target)
        passing = [
            asyncio.create_task(self._pass(reader, far_writer)),
            asyncio.create_task(self._pass(far_reader, writer)),
        ]
        try:
            await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in passing:
                task.cancel()
            await asyncio.gather(*passing, return_exceptions=True)
            for end in (writer, far_writer):
                end.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            while True:
                due_s, piece = await queue.get()
                await asyncio.sleep(max(0.0, due_s - time.monotonic()))
                self._pieces += 1
                if self._pieces % 10 == 0:  # 10 %
                    await asyncio.sleep(self._stall_s)
                await asyncio.sleep(len(piece) / self._bytes_per_s)
                writer.write(piece)

        delivering = asyncio.create_task(deliver())
        try:
            while piece := await reader.read(256):
                queue.put_nowait((time.monotonic() + self._delay_s, piece))
        finally:
            delivering.cancel()


@pytest.mark.slow
async def test_a_backlog_drains_over_a_modem_without_reconnecting_NET_07(
    tmp_path: Path, broker: RealBroker
) -> None:
    """500 ms each way, 9.6 kbit/s, one piece in ten late by a second more."""
    proxy = SlowProxy(broker.port, bytes_per_s=1200, delay_s=0.5, stall_s=1.0)
    async with proxy as port, listening(broker) as hub:
        home = Home(tmp_path, port)
        home.live(40)
        async with home.connecting():
            await until(lambda: len(hub.slots(DEVICE)) == 40, 90)
            await hub.confirm(DEVICE)
            await until(lambda: not home.journal.keys())
        hub.check_complete(DEVICE)
    assert proxy.connections <= 2  # MQTT 5, and 3.1.1 if the first was cut
    assert max(len(p) for batch in hub.payloads[DEVICE].values() for p in batch) <= MAX_BYTES


# names


@pytest.mark.parametrize("host", ["::1", "localhost"])
async def test_a_broker_on_ipv6_alone_is_reached_NET_20(
    make_broker: Callable[[str], RealBroker], tmp_path: Path, host: str
) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 on this machine")
    six = make_broker(OPEN.replace("listener {port} 127.0.0.1", "listener {port}"))
    home = Home(tmp_path, six.port, host=host)
    async with home.connecting():
        await until(lambda: home.uplink.online)


async def test_every_attempt_resolves_anew_and_a_slow_resolver_stops_nothing_NET_20(
    broker: RealBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No answer, a slow one, an old address, then the new one; the loop goes on all the while."""
    real, asked = socket.getaddrinfo, Counter[str]()
    free, held = threading.Event(), list[bool]()

    def resolve(host: str, *rest: Any, **named: Any) -> Any:
        if host != "broker.test":
            return real(host, *rest, **named)
        asked[host] += 1
        if asked[host] == 1:
            raise socket.gaierror(socket.EAI_AGAIN, "try again")
        if asked[host] == 2:
            held.append(free.wait(300))  # in the thread that connects
        return real("127.0.0.9" if asked[host] <= 2 else HOST, *rest, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr("agent.link.uplink.backoff_s", lambda *_: 0.01)
    home = Home(
        tmp_path, broker.port, broker="tls = false\nallow_plaintext = true", host="broker.test"
    )
    async with home.connecting():
        await until(lambda: asked["broker.test"] == 2)
        free.set()  # the loop goes on while a name is looked up
        await until(lambda: home.uplink.online)
    assert asked["broker.test"] >= 3
    assert held == [True]


async def test_a_stop_does_not_wait_for_a_resolver_NET_20(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered, held = threading.Event(), list[bool]()
    real = socket.getaddrinfo

    def resolve(host: str, *rest: Any, **named: Any) -> Any:
        if host == "broker.test":
            held.append(False)
            held[-1] = answered.wait(600)
        return real(HOST, *rest, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    home = Home(tmp_path, 1, broker="tls = false\nallow_plaintext = true", host="broker.test")
    async with home.connecting():
        await until(lambda: bool(held))
    assert held == [False]
    answered.set()


# what an MQTT 5 broker may say


@pytest.mark.parametrize(("code", "word"), [(0x89, "server busy"), (0x97, "quota exceeded")])
async def test_a_busy_broker_is_left_alone_for_half_a_minute_NET_21(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, code: int, word: str
) -> None:
    caplog.set_level(logging.INFO)
    async with Scripted(connack=[code]) as busy:
        home = Home(tmp_path, busy.port)
        home.live(2)
        async with home.connecting():
            await until(lambda: home.uplink.health == "degraded: broker busy")
            await asyncio.sleep(1)
            assert busy.connections == 1
            assert len(home.journal.keys()) == 2
    assert word in caplog.text


async def test_a_publish_over_quota_is_kept_and_comes_again_NET_21(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.link.trouble.REFUSED_RETRY_S", 0.1)
    async with Scripted(puback=[0x97, 0x97, 0]) as full:
        home = Home(tmp_path, full.port)
        home.live(3)
        async with home.connecting():
            await until(lambda: len([n for n, _ in full.published if "/report/" in n]) >= 3)
            assert len(home.journal.keys()) == 3


async def test_no_more_is_in_flight_than_the_broker_takes_NET_21(tmp_path: Path) -> None:
    async with Scripted(receive_maximum=1, delay_s=0.01) as narrow:
        home = Home(tmp_path, narrow.port)
        home.live(25)
        async with home.connecting():
            await until(lambda: len(narrow.published) >= 26)
        assert narrow.most_in_flight == 1


async def test_batches_are_made_small_enough_for_the_broker_NET_21(tmp_path: Path) -> None:
    """Packets of 128 bytes: the status does not fit and is said so; the reports come in pieces."""
    async with Scripted(maximum_packet=128) as small:
        home = Home(tmp_path, small.port)
        home.live(60, online=False)
        async with home.connecting():
            await until(lambda: sum(len(decode(p).slots) for _, p in small.published) == 60)
        frames = [decode(payload) for _, payload in small.published]
        assert small.largest <= 128
    slots = sorted(slot for frame in frames for slot in frame.slots)
    assert len(set(slots)) == 60
    assert [frame.batch for frame in frames] == sorted({frame.batch for frame in frames})


async def test_a_batch_too_big_for_a_new_broker_waits_and_the_link_lives_NET_21(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    home = Home(tmp_path, 1)
    home.live(60, online=False)
    home.device.pack_waiting(at_once=True)
    home.live(1)
    async with Scripted(maximum_packet=128) as small:
        other = replace(home.config.broker, port=small.port)
        home.uplink.reconfigure(replace(home.config, broker=other), None)
        async with home.connecting():
            await until(lambda: len(small.published) == 1)
            await asyncio.sleep(0.2)
            assert home.uplink.online
            assert len(home.journal.keys()) == 2
    assert "packets of at most 128 bytes" in caplog.text


REPORTS = topic(FLEET, "report", DEVICE)


async def test_reports_that_nobody_listens_to_are_named_and_kept_NET_22(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """PUBACK 0x10 is no failure for MQTT, but no report gets anywhere."""
    caplog.set_level(logging.INFO)
    async with Scripted(puback=[0x10]) as empty:
        home = Home(tmp_path, empty.port)
        home.live(3)
        async with home.connecting():
            await until(lambda: len(home.delivery.acked) == 3)
            assert home.uplink.online
            assert home.uplink.health == f"degraded: nobody listens to {REPORTS}"
            assert len(home.journal.keys()) == 3
            empty.puback = [0]
            home.overdue()
            await until(lambda: home.uplink.health == "ok")
            assert len(home.journal.keys()) == 3  # until a receipt covers them
    assert caplog.text.count(f"nobody listens to {REPORTS}") == 1


@pytest.mark.parametrize(
    ("end", "code", "name"),
    [
        ("plan/power", 0x87, "auth"),
        (f"receipt/{DEVICE}", 0x80, "topic refused"),
        (f"receipt/{DEVICE}", 0, "topic refused"),
        ("plan/power", 0x97, "broker busy"),
    ],
)
async def test_a_subscription_below_what_was_asked_names_its_topic_and_keeps_the_reports_NET_22(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, end: str, code: int, name: str
) -> None:
    caplog.set_level(logging.INFO)
    refused = f"edge-ldp/v1/{FLEET}/{end}"
    async with Scripted(suback={end: code}) as narrow:
        home = Home(tmp_path, narrow.port)
        home.live(2)
        async with home.connecting():
            await until(lambda: home.uplink.health == f"degraded: {name}: {refused}")
            await asyncio.sleep(0.5)
            assert narrow.connections == 1  # and tried again slowly
            assert not home.uplink.online
            assert len(home.journal.keys()) == 2
    assert f"broker refused {refused}: " in caplog.text


# other people


async def test_three_takeovers_in_a_minute_are_recognised_as_a_twin_NET_13(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker that says "session taken over": it is left alone for half a minute."""
    caplog.set_level(logging.INFO)
    async with Scripted(disconnect=0x8E) as broker:
        home = Home(tmp_path, broker.port)
        home.live(3)
        async with home.connecting():
            await until(lambda: home.uplink.health == "degraded: client id used by another")
            await asyncio.sleep(1)
            assert broker.connections == TWIN_TIMES
            assert len(home.journal.keys()) == 3
    assert "another agent runs under this device's name" in caplog.text


async def test_take_overs_that_the_broker_does_not_tell_are_suspected_NET_13(
    tmp_path: Path, broker: RealBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """Under 3.1.1 it just closes: back-off grows, the log says what it may be, all arrives."""
    caplog.set_level(logging.INFO)
    home = Home(tmp_path, broker.port, broker='protocol = "3.1.1"')
    home.live(3, online=False)
    name = f"edge-ldp-{FLEET}-{DEVICE}"
    async with listening(broker) as hub, home.connecting():
        for times in range(1, TWIN_TIMES + 1):
            await until(lambda: home.uplink.online)
            twin = await open_link(Broker(HOST, broker.port, name))
            # by the log: it may be back on line before anyone looks
            await until(partial(_tried_again, caplog, times))
            await twin.close()
        await until(lambda: "does another agent run under this device's name?" in caplog.text)
        await until(lambda: len(hub.slots(DEVICE)) == 3)
        hub.check(DEVICE)


def _tried_again(caplog: pytest.LogCaptureFixture, times: int) -> bool:
    return caplog.text.count("trying again") >= times


# the broker's own disk, and a month away


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    """Give a directory of 64 KiB; needs the right to mount."""
    place = tmp_path / "small"
    place.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=777", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mounting, check=False).returncode:
        pytest.skip("no right to mount a small file system here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=False)


async def test_a_broker_whose_disk_is_full_costs_nothing_NET_06(
    small_disk: Path, tmp_path: Path
) -> None:
    """It acknowledges, cannot save, is killed and comes back with nothing: all is sent again."""
    (tmp_path / "b").mkdir()
    text = SAVED.replace("persistence_location {directory}/", f"persistence_location {small_disk}/")
    broker = RealBroker(tmp_path / "b", text)
    home = Home(tmp_path, broker.port)
    with running(broker):
        filler = await open_link(Broker(HOST, broker.port, "filler"))
        for number in range(9):
            await filler.publish(f"filler/{number}", bytes(20_000), retain=True)
        await filler.close()
        home.live(5)
        async with home.connecting():
            await until(lambda: len(home.delivery.acked) == 5)
            await until(lambda: os.statvfs(small_disk).f_bavail < 20)  # full, or nearly
            broker.restart()
            async with listening(broker) as hub:
                home.clock.pass_s(5 * 3600)
                home.overdue()
                await until(lambda: len(hub.slots(DEVICE)) == 5)
                await hub.confirm(DEVICE)
                await until(lambda: not home.journal.keys())
                hub.check(DEVICE)
