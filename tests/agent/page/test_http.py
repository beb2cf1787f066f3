"""What the page is asked, in bytes: whatever is not plain is refused."""

from collections.abc import Iterable

import pytest

from agent.page.http import HTML, JSON, PageAsked, PageReply, encoded, name_asked, question

NAMES = {"localhost", "127.0.0.1", "::1", "pi.local"}


def head(first: str, *headers: str) -> bytes:
    return "\r\n".join([first, *headers, "", ""]).encode("latin-1")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8042", "[::1]:8042", "PI.local:80"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_PRV_28_a_plain_question_is_taken(host: str, method: str) -> None:
    asked = question(head(f"{method} / HTTP/1.1", f"hOsT: {host}", "x: y"), NAMES)
    assert asked == PageAsked("/", method == "HEAD")


@pytest.mark.parametrize(
    ("first", "headers", "status"),
    [
        ("GET / HTTP/1.1", ["Host: evil.example"], 421),
        ("GET / HTTP/1.1", ["Host: localhost.evil.example"], 421),
        ("GET / HTTP/1.1", ["Host: "], 421),
        ("GET / HTTP/1.1", [], 400),
        ("GET / HTTP/1.1", ["Host: localhost", "Host: localhost"], 400),
        ("GET / HTTP/2", ["Host: localhost"], 400),
        ("GET /", ["Host: localhost"], 400),
        ("GET http://localhost/ HTTP/1.1", ["Host: localhost"], 400),
        ("GET * HTTP/1.1", ["Host: localhost"], 400),
        ("\x16\x03\x01", [], 400),
        ("GET /\xff HTTP/1.1", ["Host: localhost"], 400),
        ("GET / HTTP/1.1", ["Host: localhost", "Content-Length: 1"], 400),
        ("GET / HTTP/1.1", ["Host: localhost", "Transfer-Encoding: chunked"], 400),
        *((f"{method} / HTTP/1.1", ["Host: localhost"], 405) for method in ("POST", "PUT", "get")),
        *((f"{method} / HTTP/1.1", ["Host: localhost"], 405) for method in ("DELETE", "OPTIONS")),
    ],
)
def test_PRV_28_what_is_no_such_question_is_refused(
    first: str, headers: Iterable[str], status: int
) -> None:
    asked = question(head(first, *headers), NAMES)
    assert isinstance(asked, PageReply)
    assert asked.status == status


def test_PRV_28_every_answer_binds_a_browser() -> None:
    for reply in (
        PageReply(200, HTML, b"<p>"),
        PageReply(405, HTML, b""),
        PageReply(429, JSON, b"{}"),
    ):
        first, *lines = encoded(reply).decode().partition("\r\n\r\n")[0].split("\r\n")
        told = dict(line.split(": ", 1) for line in lines)
        assert first.startswith(f"HTTP/1.1 {reply.status} ")
        assert told["content-length"] == str(len(reply.body))
        policy = told["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "script" not in policy
        assert told["cache-control"] == "no-store"
        assert told["x-content-type-options"] == "nosniff"
        assert "set-cookie" not in told
        assert ("allow" in told) == (reply.status == 405)
        assert ("retry-after" in told) == (reply.status == 429)
    assert encoded(PageReply(200, JSON, b"x" * 9), is_head=True).endswith(b"\r\n\r\n")


def test_a_name_is_told_without_its_port() -> None:
    assert [name_asked(one) for one in ("A:1", "[::1]:2", "b", "[::1")] == ["a", "::1", "b", "::1"]
