"""Word to the service manager, over a real datagram socket as systemd's."""

import asyncio
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from edge_ldp.service.service_manager import LIMIT_S, PERIOD_S, ServiceManager, keep_telling


@pytest.fixture
def ear(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        sock.settimeout(300)
        yield sock


def heard(ear: socket.socket) -> list[str]:
    found = []
    ear.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            found.append(ear.recv(4096).decode())
    return found


def test_lines_go_in_one_datagram(ear: socket.socket) -> None:
    ServiceManager({"NOTIFY_SOCKET": ear.getsockname()}).tell("READY=1", "STATUS=ok")
    assert ear.recv(4096) == b"READY=1\nSTATUS=ok"


def test_an_abstract_socket_is_found_by_its_at_sign() -> None:
    name = f"edge-ldp-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind("\0" + name)
        ear.settimeout(300)
        ServiceManager({"NOTIFY_SOCKET": "@" + name}).tell("READY=1")
        assert ear.recv(4096) == b"READY=1"


@pytest.mark.parametrize("environment", [{}, {"NOTIFY_SOCKET": "/nowhere/at/all"}])
def test_nobody_to_hear_is_no_fault(environment: dict[str, str]) -> None:
    manager = ServiceManager(environment)
    manager.tell("READY=1")
    assert manager.period_s is None


def test_the_watchdog_is_fed_twice_as_often_as_it_asks() -> None:
    assert ServiceManager({"WATCHDOG_USEC": "4000000"}).period_s == 2.0
    assert ServiceManager({"WATCHDOG_USEC": "60000000"}).period_s == PERIOD_S
    ours = {"WATCHDOG_USEC": "4000000", "WATCHDOG_PID": str(os.getpid())}
    assert ServiceManager(ours).period_s == 2.0


def test_a_watchdog_for_another_process_is_not_fed() -> None:
    assert ServiceManager({"WATCHDOG_USEC": "4000000", "WATCHDOG_PID": "1"}).period_s is None


async def test_SVC_02_the_watchdog_starves_without_signs_of_work(
    ear: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    now = asyncio.get_running_loop().time
    environment = {"NOTIFY_SOCKET": ear.getsockname(), "WATCHDOG_USEC": "20000"}
    signs, states, noted = [now()], ["ok"], list[str]()
    manager = ServiceManager(environment)
    with caplog.at_level(logging.ERROR):
        telling = asyncio.create_task(
            keep_telling(manager, lambda: states[-1], lambda: signs[-1], noted.append)
        )
        await asyncio.sleep(0.05)
        assert set(heard(ear)) == {"STATUS=ok", "WATCHDOG=1"}
        signs.append(now() - LIMIT_S - 1)
        await asyncio.sleep(0.1)
        heard(ear)
        await asyncio.sleep(0.1)
        assert heard(ear) == []
        assert len(caplog.messages) == 1
        signs.append(now())
        states.append("degraded: port gone")
        await asyncio.sleep(0.1)
        said = heard(ear)
    telling.cancel()
    assert said[0] == "STATUS=degraded: port gone"
    assert "WATCHDOG=1" in said
    assert noted == ["ok", "stuck", "degraded: port gone"]


async def test_ages_are_told_as_they_change_and_noted_nowhere(ear: socket.socket) -> None:
    """A note is a write on a card's flash; the manager's line costs nothing."""
    manager = ServiceManager({"NOTIFY_SOCKET": ear.getsockname(), "WATCHDOG_USEC": "20000"})
    now, seconds, noted = asyncio.get_running_loop().time, iter(range(1000)), list[str]()

    def ages() -> dict[str, float | None]:
        return {"receipt": next(seconds), "link": 70.2, "lost": None}

    telling = asyncio.create_task(keep_telling(manager, lambda: "ok", now, noted.append, ages))
    await asyncio.sleep(0.1)
    telling.cancel()
    said = [text for text in heard(ear) if text.startswith("STATUS=")]
    assert said[:2] == [
        "STATUS=ok; last receipt 0 s ago, link up for 70 s",
        "STATUS=ok; last receipt 1 s ago, link up for 70 s",
    ]
    assert noted == ["ok"]
