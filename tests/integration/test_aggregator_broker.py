"""The shipped broker configuration: who may do what, and what outlives a kill."""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aggregator.intake.intake import topics
from edge_ldp.protocol.messages import topic
from edge_ldp.service.broker import LOGIN_REMEDY
from edge_ldp.service.mqtt import Broker, Link, LinkLostError, RefusedError, open_link
from tests import needs
from tests.integration.aggregator_bench import FLEET, Aggregator, Wire, until
from tests.integration.conftest import RealBroker, running

OpenAs = Callable[..., Awaitable[Link]]

CONFIG = Path(__file__).parents[2] / "config"
USERS = ("aggregator", "home-0000", "home-0001")


def shipped(directory: Path) -> str:
    """Return the shipped configuration with its paths and port replaced; nothing else."""
    text = (CONFIG / "mosquitto.conf").read_text().replace("{", "{{").replace("}", "}}")
    for old, new in (
        ("listener 1883", "listener {port}"),
        ("/etc/edge-ldp", str(directory)),
        ("/var/lib/mosquitto", "{directory}"),
    ):
        assert old in text
        text = text.replace(old, new)
    return text + "user root\nlog_dest file {directory}/mosquitto.log\n"


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[RealBroker]:
    """Give a broker with the shipped configuration, access list and a user for each of USERS."""
    directory = tmp_path / "guarded"
    directory.mkdir()
    shutil.copy(CONFIG / "acl", directory / "acl")
    tool = needs.program("mosquitto_passwd")
    passwords = directory / "mosquitto.passwd"
    passwords.touch(mode=0o600)
    for user in USERS:
        subprocess.run([tool, "-b", str(passwords), user, f"of {user}"], check=True)
    with running(RealBroker(directory, shipped(directory))) as broker:
        yield broker


@pytest.fixture
async def open_as(guarded: RealBroker) -> AsyncIterator[OpenAs]:
    opened: list[Link] = []

    async def connect(user: str, name: str | None = None, **options: Any) -> Link:
        login = {"username": user, "password": f"of {user}", "protocol": "5", **options}
        opened.append(await open_link(Broker(guarded.host, guarded.port, name or user, **login)))
        return opened[-1]

    yield connect
    for link in opened:
        await link.close(abrupt=True)


async def nothing_arrives(link: Link) -> bool:
    try:
        async with asyncio.timeout(0.3):
            await link.receive()
    except TimeoutError:
        return True
    return False


async def test_without_a_name_and_its_password_nobody_gets_in(open_as: OpenAs) -> None:
    for login in ({"username": None, "password": None}, {"password": "wrong"}):
        with pytest.raises(LinkLostError, match="not authorized"):
            await open_as("home-0000", **login)


async def test_a_device_writes_to_its_own_topics_only_REP_02_REP_11(open_as: OpenAs) -> None:
    home = await open_as("home-0000")
    for kind in ("report", "status"):
        await home.publish(topic(FLEET, kind, "home-0000"), b"x")
        with pytest.raises(RefusedError, match="not authorized"):
            await home.publish(topic(FLEET, kind, "home-0001"), b"x")
    for kind, name in (("receipt", "home-0000"), ("plan", "power")):
        with pytest.raises(RefusedError):
            await home.publish(topic(FLEET, kind, name), b"x", retain=True)


async def test_no_device_and_no_aggregator_reaches_another_fleet_REP_11(open_as: OpenAs) -> None:
    """Nor any topic besides, under its own name neither."""
    aggregator, home = await open_as("aggregator"), await open_as("home-0000")
    for kind in ("report", "stream", "status"):
        for where in (topic("other", kind, "home-0000"), f"else/{kind}", f"$other/{kind}"):
            with pytest.raises(RefusedError, match="not authorized"):
                await home.publish(where, b"x")
    for kind, name in (("plan", "power"), ("receipt", "home-0000")):
        with pytest.raises(RefusedError, match="not authorized"):
            await aggregator.publish(topic("other", kind, name), b"x", retain=True)
    await home.subscribe(["edge-ldp/v1/other/#", topic(FLEET, "plan", "+")])
    await aggregator.publish(topic(FLEET, "plan", "power"), b"ours", retain=True)
    assert (await home.receive()).topic == topic(FLEET, "plan", "power")
    assert await nothing_arrives(home)


async def test_a_device_hears_plans_and_its_own_receipt_and_status_only(open_as: OpenAs) -> None:
    aggregator, home, other = [await open_as(user) for user in USERS]
    for link in (home, other):
        await link.subscribe(["#"])
    await aggregator.publish(topic(FLEET, "receipt", "home-0000"), b"mine", retain=True)
    await other.publish(topic(FLEET, "report", "home-0001"), b"theirs")
    await other.publish(topic(FLEET, "status", "home-0001"), b"theirs", retain=True)
    assert (await home.receive()).payload == b"mine"
    assert (await other.receive()).payload == b"theirs"  # to look back at when it starts
    await aggregator.publish(topic(FLEET, "plan", "power"), b"plan", retain=True)
    assert (await home.receive()).payload == (await other.receive()).payload == b"plan"
    assert await nothing_arrives(home)
    assert await nothing_arrives(other)


async def test_the_aggregator_hears_reports_and_statuses_and_cannot_forge_them(
    open_as: OpenAs,
) -> None:
    aggregator, home = await open_as("aggregator"), await open_as("home-0000")
    await aggregator.subscribe([topic(FLEET, "report", "+"), topic(FLEET, "status", "+")])
    await home.publish(topic(FLEET, "report", "home-0000"), b"r")
    assert (await aggregator.receive()).payload == b"r"
    with pytest.raises(RefusedError):
        await aggregator.publish(topic(FLEET, "report", "home-0000"), b"x")


async def test_workers_share_the_reports_under_the_same_access_list(open_as: OpenAs) -> None:
    workers = [await open_as("aggregator", name=f"worker-{at}") for at in range(2)]
    for worker in workers:
        await worker.subscribe(topics(FLEET, "fleet"))
    home = await open_as("home-0000")
    for at in range(4):
        await home.publish(topic(FLEET, "report", "home-0000"), b"%d" % at)
    got = [[(await worker.receive()).payload for _ in range(2)] for worker in workers]
    assert sorted(got[0] + got[1]) == [b"0", b"1", b"2", b"3"]
    assert await nothing_arrives(workers[0])


async def test_a_message_over_the_limit_is_refused_by_the_broker_NET_15(open_as: OpenAs) -> None:
    """NET-15."""
    home = await open_as("home-0000")
    with pytest.raises((RefusedError, LinkLostError)):
        await home.publish(topic(FLEET, "report", "home-0000"), b"x" * 70_000)


def _aggregator(tmp_path: Path, guarded: RealBroker, password: str) -> Aggregator:
    secret = tmp_path / "password"
    secret.write_text(f"{password}\n")
    secret.chmod(0o600)
    login = f'username = "aggregator"\npassword_file = "{secret}"'
    return Aggregator(tmp_path, guarded, login=login)


async def test_an_aggregator_with_a_wrong_password_says_what_to_do_NET_11(
    guarded: RealBroker, tmp_path: Path
) -> None:
    aggregator = _aggregator(tmp_path, guarded, "horse-battery")
    aggregator.start()
    try:
        said = f"not authorized: {LOGIN_REMEDY}, then restart"
        await until(lambda: said in aggregator.log.read_text())
        assert "horse" not in aggregator.log.read_text()
    finally:
        aggregator.kill()


@pytest.mark.parametrize("is_saved", [True, False], ids=["saved", "not-saved"])
async def test_what_waits_for_an_offline_aggregator_outlives_a_killed_broker_NET_03_NET_05(
    guarded: RealBroker, open_as: OpenAs, tmp_path: Path, *, is_saved: bool
) -> None:
    """More than mosquitto's default queue of 1,000, a SIGKILL, and it all comes.

    By the broker alone where it had saved; else the device sends again what no receipt covers.
    """
    aggregator = _aggregator(tmp_path, guarded, "of aggregator")
    aggregator.start()
    try:
        wire = Wire(await open_as("home-0000"))
        await wire.link.subscribe([topic(FLEET, "plan", "+")])
        (device,) = wire.add(1, await wire.plan())
        aggregator.kill()
        code = device.plan.stream_mechanism.code_count
        await wire.send(device.make([code + at % 8]) for at in range(1500))
        if is_saved:
            os.kill(guarded.pid, signal.SIGUSR1)
            await until((guarded.directory / "mosquitto.db").exists)  # renamed, so it is whole
        guarded.restart()
        aggregator.start()
        if not is_saved:
            wire.link = await open_as("home-0000", "again")
            await wire.link.subscribe([topic(FLEET, "receipt", "home-0000")])
            await wire.settle()
        await until(lambda: aggregator.counted() == 1500)
        assert aggregator.counts() == wire.expected()
    finally:
        aggregator.kill()
