"""The share: a meter's bytes to the household's own readers, who cannot slow or change anything."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from smllib.reader import SmlStreamReader

from agent.config import parse_config
from agent.config.sections import ShareTable
from agent.tap.share import MOST_BEHIND, MOST_READERS, Share
from firmware_stubs.meters.sml import sml_telegram
from tests.agent.paced import beside
from tests.agent.samples import config_text
from tests.integration.agent_bench import until
from tests.integration.conftest import free_port

HOST = "127.0.0.1"


@asynccontextmanager
async def sharing(*readers: str) -> AsyncIterator[tuple[Share, int]]:
    port = free_port()
    share = Share(ShareTable(port=port, readers=readers))
    async with beside(share.run()):
        await until(lambda: share.health == "ok")
        yield share, port


def count(share: Share) -> int:
    return len(share._readers)  # noqa: SLF001 (what nobody else asks)


async def connected(
    share: Share, port: int, host: str = HOST
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a reader that was let in."""
    before = count(share)
    pair = await asyncio.open_connection(HOST, port, local_addr=(host, 0))
    await until(lambda: count(share) == before + 1)
    return pair


async def is_turned_away(port: int, host: str = HOST) -> bool:
    reader, writer = await asyncio.open_connection(HOST, port, local_addr=(host, 0))
    try:
        async with asyncio.timeout(300):
            return await reader.read() == b""
    except ConnectionError:
        return True
    finally:
        writer.close()


@pytest.mark.integration
async def test_PRV_27_every_reader_gets_the_bytes_and_what_it_sends_is_dropped() -> None:
    async with sharing() as (share, port):
        pairs = [await connected(share, port) for _ in range(3)]
        for _, writer in pairs:
            writer.write(b"/?!\r\n" * 1000)
        for data in (b"/one", b"\x1b\x00two"):
            share.offer(data)
        for reader, writer in pairs:
            assert await reader.readexactly(9) == b"/one\x1b\x00two"[:9]
            writer.close()
        await until(lambda: count(share) == 0)
        share.offer(b"nobody")


@pytest.mark.integration
async def test_a_household_s_own_reader_of_sml_understands_what_is_shared() -> None:
    """smllib's own framing and parser, as vzlogger's and Home Assistant's; of P1: test_tap.py."""
    async with sharing() as (share, port):
        reader, writer = await connected(share, port)
        said = sml_telegram(meter_id="E0099", time_s=1_800_000_000, import_wh=4_101, power_w=378)
        for at in range(0, len(said), 7):
            share.offer(said[at : at + 7])
        stream = SmlStreamReader()
        stream.add(await reader.readexactly(len(said)))
        frame = stream.get_frame()
        assert frame is not None
        told = {str(one.obis): one.get_value() for one in frame.get_obis()}
        writer.close()
    assert (told["0100100700ff"], told["0100010800ff"]) == (378, 4101.0)


@pytest.mark.integration
async def test_PRV_27_a_reader_that_does_not_read_is_let_go_and_holds_nobody_up() -> None:
    async with sharing() as (share, port):
        _, stuck = await connected(share, port)
        stuck.transport.pause_reading()  # type: ignore[attr-defined] # a transport of TCP has it
        reader, writer = await connected(share, port)
        while count(share) == 2:  # what the system's own buffers take first
            share.offer(bytes(MOST_BEHIND))
            await reader.readexactly(MOST_BEHIND)
        share.offer(b"more")
        assert await reader.readexactly(4) == b"more"
        for one in (stuck, writer):
            one.close()


@pytest.mark.integration
async def test_PRV_27_only_named_addresses_are_let_in_and_only_so_many() -> None:
    async with sharing("127.0.0.3") as (share, port):
        assert await is_turned_away(port, "127.0.0.2")
        writers = [(await connected(share, port, "127.0.0.3"))[1] for _ in range(MOST_READERS)]
        assert await is_turned_away(port)
        for writer in writers:
            writer.close()
        await until(lambda: count(share) == 0)
        (await connected(share, port))[1].close()


@pytest.mark.integration
async def test_a_port_that_another_has_is_said_and_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("agent.running.door.AGAIN_S", 0.01)
    async with AsyncExitStack() as stack:
        async with sharing() as (_, port):
            second = Share(ShareTable(port=port))
            await stack.enter_async_context(beside(second.run()))
            await until(lambda: "trying again" in caplog.text)
            assert second.health == "degraded: the share cannot listen"
        await until(lambda: second.health == "ok")


def test_a_share_in_the_household_is_taken(tmp_path: Path) -> None:
    lines = "[share]\nport = 2000\nlisten = '192.168.1.5'\nreaders = ['192.168.1.9']\n"
    config = parse_config(f"{config_text(tmp_path / 's.db')}\n{lines}", "agent.toml")
    assert config.share == ShareTable(2000, "192.168.1.5", ("192.168.1.9",))
