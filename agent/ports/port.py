"""What a port is, whatever is behind it, and why one cannot be had or is gone."""

import asyncio
from typing import Literal, Protocol

CHUNK_BYTES = 4096
SILENCE_S = 0.5  # a telegram takes 0.08 s at 115,200 baud, and is sent without a pause
NETWORK_SILENCE_S = 2.0  # networks pause, and send again what they lost
QUIET_S = 300.0  # a connection that says nothing for so long is made anew
SEVEN_BITS_BAUD = 9600
RETRY_S = 1.0
MOST_RETRY_S = 30.0

GONE = "gone"
NO_DEVICE = "no such device"
NO_ADAPTER = "no device behind the name"
NO_CONNECTION = "cannot be reached"
QUIET = "silent for too long"
NOT_LET_IN = "does not let us in"
NO_TELEGRAM_THERE = "holds no telegram"
LINE_REFUSED = "line settings refused"
PASSING = (GONE, NO_DEVICE, NO_ADAPTER, NO_CONNECTION, QUIET, NOT_LET_IN, NO_TELEGRAM_THERE)
"""Reasons of a PortError that waiting may mend."""

Parity = Literal["N", "E", "O"]
DataBits = Literal[7, 8]


class Port(Protocol):
    """An open port, read by one task at a time."""

    path: str

    async def read(self, wait_s: float | None = None) -> bytes | None:
        """Return the next bytes, or None after each silence (or `wait_s`) without any.

        Raises PortError when the port is gone.
        """

    def write(self, data: bytes) -> bool:
        """Send bytes without waiting; False when not all were taken. Raises PortError."""

    def set_baud(self, baud: int) -> None:
        """Change the speed; raises PortError where that cannot be."""

    def close(self) -> None:
        """Give the port back; a second call does nothing."""


def now_s() -> float:
    """Return the running loop's time, which only rises, in seconds."""
    return asyncio.get_running_loop().time()


async def is_readable(fd: int, wait_s: float) -> bool:
    """Wait for bytes; False when the time was over first. Nobody watches the port meanwhile."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, _wake, ready)
    try:
        await asyncio.wait((ready,), timeout=wait_s)
    finally:
        loop.remove_reader(fd)
    return ready.done()  # also when both came at once: a busy loop is no silent line


def _wake(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)
