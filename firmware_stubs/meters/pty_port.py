"""A serial adapter made of a pseudo-terminal behind a stable name, which can be unplugged.

As with a real meter, bytes sent while nobody listens are lost; a listener that is slow is waited
for. Nothing here blocks the event loop. Source: docs/faults.md, SER-08, SER-09.
"""

import asyncio
import errno
import os
import select
import termios
import tty
from pathlib import Path
from typing import Protocol

_WAIT_S = 0.002  # real seconds between two looks at a full or unheard port
_SETTLE_S = 0.1  # a reader empties its input buffer just after opening


class MeterEnd(Protocol):
    """The meter's end of a line: a PtyPort, a TcpPort, or an adapter."""

    async def read(self) -> bytes:
        """Return what the other end sent next."""

    async def write(self, data: bytes) -> bool:
        """Send bytes."""

    async def wait_for_reader(self) -> None:
        """Return once somebody listens."""


class PtyPort:
    """The meter's end of a serial line whose other end has the name `link`."""

    def __init__(self, link: Path) -> None:
        self.link = link
        self.device = ""  # the kernel's name while plugged, such as /dev/pts/3
        self._master = -1

    def plug(self) -> None:
        """Make a new pseudo-terminal and point the link at it; unplugs an earlier one.

        Raises FileExistsError if the link's path holds anything but a symbolic link.
        """
        self.unplug()
        if self.link.exists() and not self.link.is_symlink():
            raise FileExistsError(errno.EEXIST, "exists and is no symbolic link", str(self.link))
        self._master, slave = os.openpty()
        tty.setraw(slave)
        os.set_blocking(self._master, False)
        self.device = os.ttyname(slave)
        os.close(slave)  # from now on the kernel tells whether anybody else has it open
        fresh = self.link.with_name(f".{self.link.name}.{os.getpid()}")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(self.device)
        fresh.replace(self.link)

    def unplug(self) -> None:
        """Take the device away, as pulling the adapter does; what was not read is lost."""
        if self._master < 0:
            return
        os.close(self._master)
        self._master = -1
        if self.link.is_symlink() and str(self.link.readlink()) == self.device:
            self.link.unlink()
        self.device = ""

    @property
    def is_plugged(self) -> bool:
        """Whether the device exists."""
        return self._master >= 0

    @property
    def has_reader(self) -> bool:
        """Whether some process has the device open."""
        if not self.is_plugged:
            return False
        poll = select.poll()
        poll.register(self._master, 0)  # hang-ups are always reported
        return not poll.poll(0)

    @property
    def baud(self) -> int:
        """The speed that the other end has set; a pseudo-terminal carries bytes at any."""
        code = termios.tcgetattr(self._master)[5]
        names = (name for name in dir(termios) if name[:1] == "B" and name[1:].isdigit())
        return next(int(name[1:]) for name in names if getattr(termios, name) == code)

    async def wait_for_reader(self) -> None:
        """Return once somebody has opened the device and is ready to read."""
        while not self.has_reader:  # noqa: ASYNC110 (the kernel has no event for it)
            await asyncio.sleep(_WAIT_S)
        await asyncio.sleep(_SETTLE_S)

    async def read(self) -> bytes:
        """Return what the other end sent next; waits while it is silent or not there."""
        while True:
            try:
                if data := os.read(self._master, 4096):
                    return data
            except BlockingIOError:
                pass
            except OSError as exc:
                if exc.errno != errno.EIO or not self.is_plugged:  # EIO: nobody has it open
                    raise
            await asyncio.sleep(_WAIT_S)

    async def write(self, data: bytes) -> bool:
        """Send bytes, waiting while the reader is slow; False if it was not there to the end."""
        while data and self.has_reader:
            try:
                data = data[os.write(self._master, data) :]
            except BlockingIOError:
                await asyncio.sleep(_WAIT_S)
        return not data
