"""The page in Debian's Chromium: for everybody, in light and dark, on a phone, on paper."""

from __future__ import annotations

from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from agent.page.html import page_html
from agent.page.http import HTML, PageReply, encoded
from tests.agent.page.at_home import at_home
from tests.aggregator.console.conftest import browser as browser  # noqa: PLC0414 (a fixture)
from tests.aggregator.console.test_pages import looking, serious

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser


class _Answer(BaseHTTPRequestHandler):
    def __init__(self, answer: bytes, *given: object) -> None:
        self.answer = answer
        super().__init__(*given)  # type: ignore[arg-type] # as socketserver gives them

    def do_GET(self) -> None:
        self.wfile.write(self.answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the very bytes of a page, from a server of a thread: the browser's loop is here."""
    state: Path = tmp_path_factory.mktemp("home") / "s.db"
    bench = at_home(state, ceiling=43_470)
    bench.report(20)
    bench.report(3, confirmed=False)
    (state.parent / "s.db.damaged-1800000000").write_bytes(b"x")
    answer = encoded(PageReply(200, HTML, page_html(bench.household.facts()).encode()))
    bench.journal.close()  # the fixture that closes them is of single tests
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Answer, answer))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_everybody_can_read_the_page(
    browser: Browser, address: str, scheme: str, width: int
) -> None:
    view = {"width": width, "height": 800}
    with looking(browser, address, color_scheme=scheme, viewport=view) as shown:
        shown.goto("/")
        shown.locator("details").evaluate("one => one.open = true")
        assert serious(shown) == []
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        assert shown.locator("svg rect").count() == 2
        assert shown.locator("script").count() == 0
        shown.emulate_media(media="print")
        paper = shown.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == "rgb(255, 255, 255)"
