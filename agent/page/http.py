"""One question over HTTP and its answer, in bytes. Pure.

What is asked is small: a method, a path, and the name that it is asked by, which must be ours: else
a page from elsewhere could point its own name at this machine and read along.
"""

from collections.abc import Set as AbstractSet
from typing import NamedTuple

from agent.page.html import STYLE_HASH

MOST_BYTES = 8192
"""Of a question's head: a browser's is below 2 KiB."""

HTML = "text/html; charset=utf-8"
PLAIN = "text/plain; charset=utf-8"
JSON = "application/json"
_WORDS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    421: "Misdirected Request",
    429: "Too Many Requests",
    503: "Service Unavailable",
}
_POLICY = (
    f"default-src 'none'; style-src {STYLE_HASH}; img-src data:; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)
_ALWAYS = (
    ("cache-control", "no-store"),
    ("connection", "close"),
    ("content-security-policy", _POLICY),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
)


class PageReply(NamedTuple):
    """What is answered; `file`: what a browser saves it as, if it is to."""

    status: int
    kind: str
    body: bytes
    file: str = ""


class PageAsked(NamedTuple):
    """What is asked for; `is_head`: its headers alone."""

    path: str
    is_head: bool = False


def said(status: int, words: str) -> PageReply:
    """Return a reply that only says something."""
    return PageReply(status, PLAIN, f"{words}\n".encode())


def question(head: bytes, names: AbstractSet[str]) -> PageAsked | PageReply:
    """Return what a request's head asks for, or how it is refused; `names`: those of this page."""
    if not head.isascii():
        return said(400, "expected a request of HTTP/1.1")
    first, *lines = head.decode("ascii").removesuffix("\r\n\r\n").split("\r\n")
    method, _, rest = first.partition(" ")
    target, _, version = rest.partition(" ")
    headers = [
        (name.lower(), told.strip()) for name, _, told in (ln.partition(":") for ln in lines)
    ]
    hosts = [told for name, told in headers if name == "host"]
    if version not in ("HTTP/1.1", "HTTP/1.0") or len(hosts) != 1 or not target.startswith("/"):
        return said(400, "expected a request of HTTP/1.1")
    if name_asked(hosts[0]) not in names:
        return said(421, "this page is not known by that name: [page] hosts")
    if method not in ("GET", "HEAD"):
        return said(405, "this page only shows")
    if any(name == "transfer-encoding" or (name, told != "0") == ("content-length", True)
           for name, told in headers):  # fmt: skip
        return said(400, "expected a request without a body")
    return PageAsked(target, method == "HEAD")


def encoded(reply: PageReply, *, is_head: bool = False) -> bytes:
    """Return a reply's bytes."""
    headers = [("content-type", reply.kind), ("content-length", str(len(reply.body))), *_ALWAYS]
    if reply.status == 405:  # noqa: PLR2004 (HTTP's)
        headers.append(("allow", "GET, HEAD"))
    if reply.status == 429:  # noqa: PLR2004 (same)
        headers.append(("retry-after", "1"))
    if reply.file:
        headers.append(("content-disposition", f'attachment; filename="{reply.file}"'))
    lines = [f"HTTP/1.1 {reply.status} {_WORDS[reply.status]}"]
    lines += [f"{name}: {told}" for name, told in headers]
    head = "\r\n".join([*lines, "\r\n"]).encode()
    return head if is_head else head + reply.body


def name_asked(told: str) -> str:
    """Return the name or address in a Host header, without its port."""
    if told.startswith("["):
        return told[1:].partition("]")[0].lower()
    return told.partition(":")[0].lower()
