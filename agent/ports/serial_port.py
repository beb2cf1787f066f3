"""The serial port: opened exclusively, read on the event loop, and honest about being gone.

Moves bytes and knows no protocol. The loop watches the port only while somebody reads, so a slow
reader is slowed down by the kernel's buffer and an unplugged port costs nothing.
Source: docs/design.md, The device; docs/faults.md, SER-08, SER-09, SER-23.
"""

import errno
import os
import stat
import termios
from pathlib import Path

import serial

from agent.errors import PortError
from agent.ports import port

_EMPTY_READS = 3  # a port that is ready again and again but gives nothing has lost its other end

_LIST = "`edge-ldp agent ports` lists what is there"
_PLUG = f"plug the adapter in; {_LIST}"
_GROUP = (
    "add the user to the device's group (`sudo usermod -aG dialout USER`, then log in again), "
    'or write a udev rule: SUBSYSTEM=="tty", GROUP="dialout", MODE="0660"'
)
_REASONS = {
    errno.EACCES: ("permission denied", _GROUP),
    errno.EAGAIN: ("in use by another process", "stop that process: `fuser -v` names it"),
    errno.EBUSY: ("in use by another process", "stop that process: `fuser -v` names it"),
    errno.EIO: (port.NO_ADAPTER, _PLUG),
    errno.ENODEV: (port.NO_DEVICE, _PLUG),
    errno.ENOENT: (port.NO_DEVICE, _PLUG),
    errno.ENXIO: (port.NO_DEVICE, _PLUG),
    errno.EPERM: ("permission denied", _GROUP),
}


class SerialPort:
    """An open port, made by `open_serial`, read by one task at a time."""

    def __init__(self, device: serial.Serial, path: str, silence_s: float) -> None:
        self.path = path
        self._device = device
        self._silence_s = silence_s

    async def read(self, wait_s: float | None = None) -> bytes | None:
        """Return the next bytes, or None after each inter-byte timeout that passes without any.

        `wait_s` replaces the timeout for this once.
        Raises PortError with reason GONE when the port is unplugged or closed.
        """
        for _ in range(_EMPTY_READS):
            if not self._device.is_open:
                raise self._gone()
            if not await port.is_readable(
                self._device.fd, self._silence_s if wait_s is None else wait_s
            ):
                return None
            try:
                data = os.read(self._device.fd, port.CHUNK_BYTES)
            except OSError as exc:
                raise self._gone() from exc
            if data:
                return data
        raise self._gone()

    def write(self, data: bytes) -> bool:
        """Send bytes without waiting; False when the port did not take all of them now.

        Raises PortError with reason GONE when the port is unplugged or closed.
        """
        if not self._device.is_open:
            raise self._gone()
        try:
            return os.write(self._device.fd, data) == len(data)
        except BlockingIOError:
            return False
        except OSError as exc:
            raise self._gone() from exc

    def set_baud(self, baud: int) -> None:
        """Change the speed, at once; raises PortError with reason GONE when the port is gone."""
        try:
            self._device.baudrate = baud
            _heed_parity(self._device)
        except (OSError, ValueError, termios.error) as exc:
            raise self._gone() from exc

    def close(self) -> None:
        """Give the port back; a second call does nothing."""
        self._device.close()

    def _gone(self) -> PortError:
        return PortError(self.path, port.GONE, _PLUG)


def open_serial(
    path: str, baud: int, data_bits: port.DataBits, parity: port.Parity, silence_s: float
) -> SerialPort:
    """Open a serial device or pseudo-terminal for this process alone; what waited is dropped.

    Raises PortError(path, reason, remedy) when it cannot be had.
    """
    try:
        _check_kind(path)
        device = serial.Serial(
            path, baud, bytesize=data_bits, parity=parity, timeout=0, exclusive=True
        )
        _heed_parity(device)
    except (OSError, ValueError, termios.error) as exc:  # SerialException is an OSError
        raise explain(path, exc) from exc
    return SerialPort(device, path, silence_s)


def refuse_port(path: str) -> None:
    """Raise PortError for what no waiting makes a port, or that this user may not use.

    Opens nothing: whether another program has it, only `open_serial` finds.
    """
    try:
        _check_kind(path)
    except OSError as exc:
        found = explain(path, exc)
        if found.reason not in port.PASSING:
            raise found from exc
    else:
        if not os.access(path, os.R_OK | os.W_OK, effective_ids=True):
            raise PortError(path, *_REASONS[errno.EACCES])


def explain(path: str, exc: Exception) -> PortError:
    """Return what a failed opening means to a person, and what to do about it."""
    is_refused = isinstance(exc, termios.error) and exc.args[:1] == (errno.EINVAL,)
    if isinstance(exc, ValueError) or is_refused:
        return PortError(path, port.LINE_REFUSED, "check baud rate, parity and data bits")
    number = getattr(exc, "errno", None)  # pyserial gives none when it cannot configure the line
    if number is None:
        return PortError(path, "not a serial port", _LIST)
    reason, remedy = _REASONS.get(number, (os.strerror(number), _LIST))
    if reason == port.NO_DEVICE and "/" not in path:
        there = "which is there" if Path("/dev", path).exists() else "as device names begin"
        remedy = f"did you mean /dev/{path}, {there}? Else {remedy}"
    return PortError(path, reason, remedy)


def _heed_parity(device: serial.Serial) -> None:
    """Let a character with wrong parity be read as NUL, which no protocol has: pyserial lets it by.

    For meters without a checksum parity is all that finds a changed bit.
    """
    if device.parity == serial.PARITY_NONE:
        return
    modes = termios.tcgetattr(device.fd)
    modes[0] |= termios.INPCK
    termios.tcsetattr(device.fd, termios.TCSANOW, modes)


def _check_kind(path: str) -> None:
    """Refuse what is no character device before it is opened and touched."""
    mode = Path(path).stat().st_mode
    if stat.S_ISDIR(mode):
        raise PortError(path, "is a directory", "name a device in it, such as /dev/ttyUSB0")
    if stat.S_ISREG(mode):
        raise PortError(path, "is a regular file", "name a device, such as /dev/ttyUSB0")
    if not stat.S_ISCHR(mode):
        raise PortError(path, "not a serial port", _LIST)
