"""Between the process that others reach and those that answer: whole answers, or it is said."""

import asyncio
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import cast

import httpx
import pytest

from aggregator.console.answering import HELLO, PACKET, Desk, Given, Reply, attend
from aggregator.console.desks import DIED, LONG, Channel
from tests.aggregator.console.small_fleet import add_plans, make_fleet, serving
from tests.processes import children, kill, wait_for_end

TEXT = os.urandom(PACKET) * 3 + b"end"


class Echo:
    """In a desk's place: says back what was asked, after a text longer than any packet."""

    def answer(self, kind: str, name: str, given: Given) -> Reply:
        return Reply(3, TEXT + repr((kind, name, given)).encode(), "said")


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        yield ours, theirs


def test_an_answer_of_any_length_comes_whole(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    thread = Thread(target=attend, args=(cast("Desk", Echo()), theirs))
    thread.start()

    async def asked() -> list[Reply]:
        line = Channel(ours)
        await line.ready()
        given = (("q", "x" * 100), ("q", "y"))
        both = [
            line.ask("make", "one", given),
            line.ask("ask", "two"),
            line.ask("ask", "z" * PACKET),
        ]
        return list(await asyncio.gather(*both))

    one, two, three = asyncio.run(asked())
    ours.close()
    thread.join(300)
    assert not thread.is_alive()  # it ends once nobody listens
    told = repr(("make", "one", (("q", "x" * 100), ("q", "y")))).encode()
    assert one == Reply(3, TEXT + told, "said")
    assert two == Reply(3, TEXT + repr(("ask", "two", ())).encode(), "said")
    assert three == LONG


@pytest.mark.parametrize(
    "before", [[], [b'[1, 0, "", 2]'], [b'[1, 0, "", 2]', b"half"]], ids=["nothing", "head", "half"]
)
def test_a_process_that_dies_while_it_answers_is_said_and_the_next_answer_is_its_own(
    ends: tuple[socket.socket, socket.socket], before: list[bytes]
) -> None:
    ours, theirs = ends
    for packet in (*before, HELLO, b'[1, 0, "", 1]', b"of before", b'[2, 0, "", 1]', b"of now"):
        theirs.sendall(packet)

    async def asked() -> tuple[Reply, Reply]:
        line = Channel(ours)
        return await line.ask("ask", "status"), await line.ask("ask", "status")

    assert asyncio.run(asked()) == (DIED, Reply(0, b"of now", ""))


def test_a_process_that_died_is_replaced_and_without_any_the_console_ends(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path)
    add_plans(fleet, 1)
    with serving(fleet) as (address, process):
        (house,) = children(process.pid)
        for victim in children(house):
            kill(victim)
        deadline = time.monotonic() + 60
        while httpx.get(f"{address}/api/v1/theta").status_code != 200:
            assert time.monotonic() < deadline
        left = children(house)
        assert len(left) == 2
        for one in (house, *left):  # those go with the house
            kill(one)
        while process.poll() is None:  # it asks nobody while its last answer is fresh
            assert time.monotonic() < deadline
            with suppress(httpx.HTTPError):
                httpx.get(f"{address}/api/v1/theta")
        assert process.returncode == 0


def test_no_process_is_left_whatever_it_was_at(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path)
    with serving(fleet) as (_, process):
        (house,) = children(process.pid)
        every = [house, *children(house)]
        for one in every[1:]:
            kill(one, signal.SIGSTOP)  # as one that computes, it hears nothing
    for one in every:
        wait_for_end(one)
