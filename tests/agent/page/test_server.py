"""The page's port: who may ask, how often, how long, and that nobody takes it from others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import agent.page.server as serving
from agent.config import parse_config
from agent.config.sections import PageTable
from agent.errors import StorageError
from agent.page.server import Page
from tests.agent.paced import beside
from tests.agent.page.at_home import at_home
from tests.agent.samples import config_text
from tests.integration.agent_bench import until
from tests.integration.conftest import free_port

HOST = "127.0.0.1"
ASKED = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@asynccontextmanager
async def shown(state: Path, *readers: str) -> AsyncIterator[tuple[Page, int]]:
    port = free_port()
    page = at_home(state).page(port=port, readers=readers)
    async with beside(page.run()):
        await until(lambda: page.health == "ok")
        yield page, port


async def ask(port: int, asked: bytes = ASKED, host: str = HOST) -> bytes:
    """Return all that is answered; nothing where the connection is ended."""
    reader, writer = await asyncio.open_connection(HOST, port, local_addr=(host, 0))
    try:
        writer.write(asked)
        async with asyncio.timeout(300):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def count(page: Page) -> int:
    return len(page._open)  # noqa: SLF001 (what nobody else asks)


@pytest.mark.integration
async def test_PRV_28_the_page_is_shown_to_who_is_named_and_to_nobody_else(tmp_path: Path) -> None:
    async with shown(tmp_path / "s.db", "127.0.0.3") as (page, port):
        whole = await ask(port)
        assert whole.startswith(b"HTTP/1.1 200 OK\r\n")
        assert whole.endswith(b"</html>\n")
        assert (await ask(port, host="127.0.0.3"))[:15] == b"HTTP/1.1 200 OK"
        assert await ask(port, host="127.0.0.2") == b""
        head = await ask(port, ASKED.replace(b"GET", b"HEAD"))
        assert head == whole.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
        for asked, status in (
            (ASKED.replace(b"localhost", b"evil.example"), b"421"),
            (ASKED.replace(b"GET", b"POST"), b"405"),
            (ASKED.replace(b" / ", b" /favicon.ico "), b"404"),
            (b"GET /" + b"x" * 70_000, b"400"),
        ):
            assert (await ask(port, asked))[9:12] in (status, b"")  # cut off in the last case
        await until(lambda: count(page) == 0)


@pytest.mark.integration
async def test_PRV_28_half_open_connections_keep_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shown(tmp_path / "s.db") as (page, port):
        half = []
        for _ in range(3 * serving.MOST_OPEN):
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(b"GET / HTT")
            half.append((reader, writer))
        assert (await ask(port))[9:12] == b"200"
        assert count(page) <= serving.MOST_OPEN
        for _, writer in half:
            writer.close()
        await until(lambda: count(page) == 0)
        monkeypatch.setattr(serving, "LIFE_S", 0.01)
        assert await ask(port, b"GET / HTT") == b""  # nobody waits for it for ever


@pytest.mark.integration
async def test_PRV_28_asked_a_hundred_times_a_second_it_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    page = at_home(tmp_path / "s.db").page()
    still = asyncio.get_running_loop().time()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: still)
    found = [await page.reply("/") for _ in range(100)]
    assert [one.status for one in found] == [200] * serving.MOST_A_SECOND + [429] * 80
    assert len({id(one.body) for one in found[: serving.MOST_A_SECOND]}) == 1
    assert caplog.text.count("times a second: not answered") == 1
    still += serving.SHOWN_S
    assert (await page.reply("/")).status == 200


async def test_a_state_that_cannot_be_read_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = at_home(tmp_path / "s.db")

    def broken() -> None:
        raise StorageError("s.db", "it is damaged", "move it away")

    monkeypatch.setattr(bench.journal, "status", broken)
    found = await bench.page().reply("/")
    assert found.status == 503
    assert b"it is damaged" in found.body


def test_a_page_is_off_unless_it_is_asked_for(tmp_path: Path) -> None:
    text = config_text(tmp_path / "s.db")
    assert parse_config(text, "agent.toml").page is None
    table = parse_config(f"{text}\n[page]\n", "agent.toml").page
    assert table == PageTable(8042, "127.0.0.1")
