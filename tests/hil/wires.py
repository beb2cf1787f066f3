"""Two ends of a line: a pseudo-terminal, or two adapters whose wires are crossed."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import serial

from agent.meters.protocols import Line
from firmware_stubs.meters import PtyPort
from firmware_stubs.meters.tcp_port import TcpPort

NEAR, FAR = os.environ.get("HIL_PORT"), os.environ.get("HIL_FAR")
"""The agent's adapter, and the simulated meter's; neither set: pseudo-terminals."""


class Adapter:
    """The meter's end of a real line, with the interface of PtyPort."""

    def __init__(self, path: str, line: Line) -> None:
        bits = line.data_bits or (7 if line.baud <= 9600 else 8)
        parity = line.parity or ("E" if line.baud <= 9600 else "N")
        self._device = serial.Serial(path, line.baud, bytesize=bits, parity=parity, timeout=0.2)

    async def write(self, data: bytes) -> bool:
        """Send bytes at the line's speed; returns when they are out."""
        await asyncio.to_thread(self._device.write, data)
        await asyncio.to_thread(self._device.flush)
        return True

    async def read(self) -> bytes:
        """Return what the agent sent next."""
        while not (found := await asyncio.to_thread(self._device.read, 256)):
            pass
        return bytes(found)

    async def wait_for_reader(self) -> None:
        """Give the other end the time to empty its buffers."""
        await asyncio.sleep(0.3)

    def close(self) -> None:
        """Give the adapter back."""
        self._device.close()


Far = PtyPort | TcpPort | Adapter


@asynccontextmanager
async def bridge() -> AsyncIterator[tuple[str, Far]]:
    """Give the agent's name of a connection, and the end of a meter that has a network."""
    port = TcpPort()
    await port.plug()
    try:
        yield port.name, port
    finally:
        port.unplug()


@asynccontextmanager
async def wire(directory: Path, line: Line) -> AsyncIterator[tuple[str, Far]]:
    if NEAR and not FAR:
        pytest.skip("a scripted fault needs a second adapter, its wires crossed: set HIL_FAR")
    if NEAR and FAR:
        adapter = Adapter(FAR, line)
        try:
            yield NEAR, adapter
        finally:
            adapter.close()
        return
    pty = PtyPort(directory / "meter")
    pty.plug()
    try:
        yield str(pty.link), pty
    finally:
        pty.unplug()
