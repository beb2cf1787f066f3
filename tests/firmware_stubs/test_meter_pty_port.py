"""The simulated adapter: plugging, unplugging, and nobody listening."""

import asyncio
from pathlib import Path

import pytest

from agent.errors import PortError
from agent.ports.open_port import open_port
from firmware_stubs.meters import PtyPort

pytestmark = pytest.mark.integration


def test_an_old_link_is_replaced_but_a_file_never(tmp_path: Path) -> None:
    link = tmp_path / "meter"
    link.symlink_to(tmp_path / "gone")
    port = PtyPort(link)
    port.plug()
    port.unplug()
    link.write_text("keep")
    with pytest.raises(FileExistsError):
        port.plug()
    assert link.read_text() == "keep"
    assert not port.is_plugged


async def test_a_reader_is_noticed_and_what_nobody_hears_is_lost(tmp_path: Path) -> None:
    port = PtyPort(tmp_path / "meter")
    assert not port.has_reader
    assert not await port.write(b"unplugged")
    port.plug()
    assert not port.has_reader
    assert not await port.write(b"unheard")
    reader = await open_port(str(port.link), 115_200, silence_s=0.05)
    await port.wait_for_reader()
    assert await port.write(b"heard")
    assert await reader.read(60) == b"heard"
    reader.close()
    assert not port.has_reader
    port.unplug()


@pytest.mark.parametrize("who", ["reader", "port"])
async def test_a_writer_waits_for_nobody_that_has_left(tmp_path: Path, who: str) -> None:
    port = PtyPort(tmp_path / "meter")
    port.plug()
    reader = await open_port(str(port.link), 115_200)
    writing = asyncio.ensure_future(port.write(bytes(100_000)))
    await asyncio.sleep(0.02)
    if who == "port":
        port.unplug()
    else:
        reader.close()
    assert not await asyncio.wait_for(writing, 60)
    if who == "port":
        with pytest.raises(PortError):
            await reader.read()
    reader.close()
    port.unplug()
