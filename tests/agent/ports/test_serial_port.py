"""The serial port against pseudo-terminals (docs/faults.md, SER-08, SER-09, SER-23)."""

import asyncio
import errno
import os
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import pytest
import serial

from agent.errors import AgentError, PortError
from agent.ports.open_port import open_port
from agent.ports.port import GONE, Parity, Port
from agent.ports.serial_port import SerialPort, explain
from firmware_stubs.meters import PtyPort
from tests.processes import run_told

pytestmark = pytest.mark.integration


@pytest.fixture
async def port(pty: PtyPort) -> AsyncIterator[Port]:
    opened = await open_port(str(pty.link), 115_200, silence_s=0.05)
    yield opened
    opened.close()


async def collect(port: Port, size: int) -> bytes:
    found = b""
    while len(found) < size:
        found += await port.read() or b""
    return found


async def test_what_the_meter_sends_arrives_and_silence_is_told(pty: PtyPort, port: Port) -> None:
    assert await port.read() is None
    assert await pty.write(bytes(range(256)))
    assert await collect(port, 256) == bytes(range(256))
    assert await port.read() is None
    assert await port.read() is None


async def test_a_slow_reader_loses_nothing(pty: PtyPort, port: Port) -> None:
    sent = b"0123456789abcdef" * 6250
    writing = asyncio.ensure_future(pty.write(sent))
    await asyncio.sleep(0.05)
    assert not writing.done()  # the kernel's buffer is full, and the loop is free
    assert await collect(port, len(sent)) == sent
    assert await writing


async def test_a_busy_loop_is_no_silent_line(pty: PtyPort, port: Port) -> None:
    reading = asyncio.ensure_future(port.read())
    await asyncio.sleep(0)
    await pty.write(b"late")
    time.sleep(0.1)  # noqa: ASYNC251 (the loop is kept busy for longer than the timeout)
    assert await reading == b"late"


async def test_SER_08_an_unplugged_port_is_told_at_once_and_costs_nothing(
    pty: PtyPort, port: Port
) -> None:
    reading = asyncio.ensure_future(port.read(3600))
    await asyncio.sleep(0)
    pty.unplug()
    with pytest.raises(PortError) as gone:
        await reading
    assert (gone.value.reason, gone.value.path) == (GONE, str(pty.link))
    used = time.process_time()
    await asyncio.sleep(0.3)
    assert time.process_time() - used < 0.1  # nobody watches the port any more
    with pytest.raises(PortError, match=GONE):
        await port.read()


async def test_SER_08_bytes_then_unplugged_between_two_reads(pty: PtyPort, port: Port) -> None:
    await pty.write(b"last")
    assert await collect(port, 4) == b"last"
    pty.unplug()
    with pytest.raises(PortError, match=GONE):
        await port.read()


async def test_a_closed_port_reads_as_gone(port: Port) -> None:
    port.close()
    port.close()
    with pytest.raises(PortError, match=GONE):
        await port.read()


async def test_SER_09_a_port_that_comes_back_under_its_stable_name_is_read_again(
    pty: PtyPort, port: Port, tmp_path: Path
) -> None:
    before = pty.device
    pty.unplug()
    with pytest.raises(PortError, match=GONE):
        await port.read()
    with pytest.raises(PortError, match="no such device"):
        await open_port(str(pty.link), 115_200)
    other = PtyPort(tmp_path / "other")  # takes the kernel's number
    other.plug()
    pty.plug()
    assert pty.device != before
    again = await open_port(str(pty.link), 115_200, silence_s=0.05)
    assert await pty.write(b"back")
    assert await collect(again, 4) == b"back"
    again.close()
    other.unplug()


@pytest.mark.parametrize(
    ("baud", "parity", "data_bits", "expected"),
    [
        (115_200, None, None, ("N", 8)),
        (9600, None, None, ("E", 7)),
        (9600, "N", 8, ("N", 8)),
        (115_200, "E", 7, ("E", 7)),
    ],
)
async def test_parity_and_data_bits_follow_the_speed_unless_given(  # noqa: PLR0913, PLR0917 (table)
    pty: PtyPort,
    baud: int,
    parity: Parity | None,
    data_bits: Literal[7, 8] | None,
    expected: tuple[str, int],
    devices: list[serial.Serial],
) -> None:
    opened = await open_port(str(pty.link), baud, parity=parity, data_bits=data_bits)
    (device,) = devices
    assert (device.parity, device.bytesize) == expected
    assert await pty.write(b"/ABC")
    assert await collect(opened, 4) == b"/ABC"
    opened.close()


async def test_SER_08_an_error_of_the_device_reads_as_gone() -> None:
    master, slave = os.openpty()
    os.close(slave)  # from now on reading gives EIO
    port = SerialPort(SimpleNamespace(fd=master, is_open=True), "adapter", 0.05)
    with pytest.raises(PortError, match="adapter: gone"):
        await port.read()
    os.close(master)


async def test_a_baud_rate_that_is_none_is_refused(pty: PtyPort) -> None:
    with pytest.raises(PortError, match="line settings refused") as caught:
        await open_port(str(pty.link), -1)
    assert caught.value.remedy == "check baud rate, parity and data bits"


async def test_SER_23_AGT_14_a_port_in_use_is_not_shared(pty: PtyPort, port: Port) -> None:
    with pytest.raises(PortError, match="in use by another process"):
        await open_port(str(pty.link), 115_200)
    port.close()
    (await open_port(str(pty.link), 115_200)).close()


async def test_SER_23_what_is_no_port_is_called_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"keep")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path, reason in (
        (file, "is a regular file"),
        (tmp_path, "is a directory"),
        (fifo, "not a serial port"),
        (Path("/dev/null"), "not a serial port"),
        (tmp_path / "none", "no such device"),
    ):
        with pytest.raises(PortError) as refused:
            await open_port(str(path), 115_200)
        assert refused.value.reason == reason
        assert str(refused.value).startswith(f"{path}: {reason}; ")
    assert file.read_bytes() == b"keep"


def test_SER_23_a_forgotten_dev_is_remembered() -> None:
    missing = OSError(errno.ENOENT, "no")
    assert (
        "did you mean /dev/ttyNONE0, as device names begin?" in explain("ttyNONE0", missing).remedy
    )
    assert "did you mean /dev/null, which is there?" in explain("null", missing).remedy
    assert "did you mean" not in explain("/dev/ttyUSB0", missing).remedy


def test_SER_23_without_permission_the_group_and_the_rule_are_named() -> None:
    for number in (errno.EACCES, errno.EPERM):
        refused = explain("/dev/ttyUSB0", OSError(number, "no"))
        assert isinstance(refused, AgentError)
        assert refused.reason == "permission denied"
        assert "dialout" in refused.remedy
        assert "udev" in refused.remedy
    assert explain("p", OSError(errno.EMFILE, "x")).reason == os.strerror(errno.EMFILE)


def test_importing_the_shell_does_not_scan_for_ports() -> None:
    code = "import sys, agent.ports.serial_port, agent.commands.commissioning; print(*sys.modules)"
    loaded = run_told([sys.executable, "-c", code], check=True).stdout.split()
    assert "serial" in loaded
    assert not [name for name in loaded if name.startswith(("serial.tools", "numpy"))]
