"""Who takes long to ask is bounded in number and in time; who has asked is not touched."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import httpx
from uvicorn import Config
from uvicorn.server import ServerState

from aggregator.console.half_open import ASK_S, MOST_ASKING, Asking, BoundedProtocol

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Transport
    from collections.abc import Callable

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


class Timer:
    def __init__(self, delay_s: float, then: Callable[[], None]) -> None:
        self.delay_s, self.then, self.is_set = delay_s, then, True

    def cancel(self) -> None:
        self.is_set = False


class Loop:
    """Keeps what is to be called later, and calls nothing by itself."""

    def __init__(self) -> None:
        self.timers: list[Timer] = []

    def call_later(self, delay_s: float, then: Callable[[], None]) -> Timer:
        self.timers.append(Timer(delay_s, then))
        return self.timers[-1]

    @property
    def due(self) -> list[Timer]:
        return [timer for timer in self.timers if timer.is_set]


class Wire:
    """A transport that notes its end."""

    def __init__(self) -> None:
        self.is_ended = False

    def abort(self) -> None:
        self.is_ended = True

    def get_extra_info(self, _name: str) -> None:
        return None

    def pause_reading(self) -> None:
        """Read no more, as uvicorn asks while it answers."""


async def _nobody(_scope: Any, _receive: Any, _send: Any) -> None:
    """Stand for an application that is never reached."""


def connected(asking: Asking, loop: Loop) -> tuple[BoundedProtocol, Wire]:
    wire = Wire()
    made = BoundedProtocol(
        asking=asking,
        config=Config(_nobody),
        server_state=ServerState(),
        app_state={},
        _loop=cast("AbstractEventLoop", loop),
    )
    made.connection_made(cast("Transport", wire))
    return made, wire


def test_one_that_never_asks_is_ended_when_its_time_is_over() -> None:
    loop = Loop()
    one, wire = connected(Asking(), loop)
    one.data_received(HALF)
    (timer,) = loop.due
    assert timer.delay_s == ASK_S
    timer.then()
    assert wire.is_ended
    assert loop.due == []


def test_bytes_that_trickle_in_win_no_time() -> None:
    loop = Loop()
    one, _ = connected(Asking(), loop)
    one.data_received(HALF)
    before = loop.due
    for _ in range(100):
        one.data_received(b"x")
    assert loop.due == before


def test_of_too_many_the_one_that_has_taken_longest_goes() -> None:
    asking, loop = Asking(most=3), Loop()
    wires = [connected(asking, loop)[1] for _ in range(5)]
    assert [wire.is_ended for wire in wires] == [True, True, False, False, False]


def test_a_thousand_half_questions_keep_nobody_from_an_answer(console: str) -> None:
    address = urlsplit(console)
    assert address.hostname is not None
    assert address.port is not None
    made = []
    with ExitStack() as open_:
        for _ in range(4 * MOST_ASKING):
            one = socket.create_connection((address.hostname, address.port), timeout=300)
            open_.enter_context(one)
            one.sendall(HALF)
            made.append(one)
        assert httpx.get(f"{console}/api/v1/status", timeout=300).status_code == 200
        assert all(map(is_ended, made[: 2 * MOST_ASKING]))


def is_ended(one: socket.socket) -> bool:
    """Say whether the other side has ended a connection, or ends it within a minute."""
    try:
        return one.recv(1) == b""
    except ConnectionResetError:
        return True
