"""Any port: serial device, pseudo-terminal or network adapter, opened by its name.

What opens it is imported when it is asked for: a network port needs no pyserial, a serial port no
Telnet. Source: DESIGN §9; FAULTS SER-08, SER-09, SER-23.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Literal, Protocol

from agent.ports import address_of

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
LINE_REFUSED = "line settings refused"
PASSING = (GONE, NO_DEVICE, NO_ADAPTER, NO_CONNECTION, QUIET)
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


async def open_port(  # noqa: PLR0913 (what a line is made of)
    path: str,
    baud: int,
    *,
    parity: Parity | None = None,
    data_bits: DataBits | None = None,
    silence_s: float | None = None,
    quiet_s: float = QUIET_S,
) -> Port:
    """Open a port for this process alone; what waited in a device is dropped.

    Unless given: 7 data bits and even parity up to 9600 baud, as IEC 62056-21 and with it DSMR 2.2
    and 3 have it, else 8 and none; always one stop bit.
    Raises PortError(path, reason, remedy) when it cannot be had.
    """
    is_slow = baud <= SEVEN_BITS_BAUD
    data_bits, parity = data_bits or (7 if is_slow else 8), parity or ("E" if is_slow else "N")
    address = address_of(path)
    if address is None:
        from agent.shell.serial_port import open_serial  # noqa: PLC0415 (memory: one kind of port)

        return open_serial(path, baud, data_bits, parity, silence_s or SILENCE_S)
    from agent.shell.network_port import open_network  # noqa: PLC0415 (same)

    line = (baud, data_bits, parity)
    silence_s = silence_s or NETWORK_SILENCE_S
    return await open_network(path, address, line, silence_s=silence_s, quiet_s=quiet_s)


async def chunks(port: Port) -> AsyncIterator[bytes | None]:
    """Yield received bytes, and None for silence, until PortError says that the port is gone."""
    while True:
        yield await port.read()


def retry_s(path: str, failures: int) -> float:
    """Return how long to wait for a port: ever longer in the network, never in step with others."""
    if address_of(path) is None:
        return RETRY_S  # looking for a device of this machine costs nothing
    wait_s = min(RETRY_S * (1 << min(failures, 9)), MOST_RETRY_S)
    return wait_s * (1 - asyncio.get_running_loop().time() % 0.25)  # the clock's last digits


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
