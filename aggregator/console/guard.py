"""Who may look: names, methods, tokens, rates; and the headers that bind a browser.

Loopback needs no token unless a file of tokens is configured. The name that is asked for must be
ours: else a page from elsewhere could point its own name at this machine and read along.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from aggregator.config import is_loopback
from aggregator.enrolment.tokens import HEALTH

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from aggregator.config import ConsoleTable
    from aggregator.console.answering import Reply

COOKIE = "edge_ldp_console"
FREE = ("/login", "/static/")  # paths for which no token is asked
MACHINES = ("/api/", "/metrics", "/events")  # a program asks: no page to log in
HEALTH_PATHS = ("/api/v1/devices", "/logout")  # no figure is told there
POSTS = ("/login", "/logout")
TRY_COST = 20  # requests that a token that is nobody's costs
MOST_CLIENTS = 10_000
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
        " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Rates:
    """A bucket of `per_minute` requests for each client, filled evenly; of the latest clients."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = per_minute
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, client: str, cost: float = 1.0) -> float:
        """Take `cost` requests; return 0, or how long to wait if there are not so many."""
        now = self._clock()
        left, at = self._left.pop(client, (float(self._most), now))
        left = min(self._most, left + (now - at) * self._most / 60)
        is_enough = left >= cost
        self._left[client] = (left - cost if is_enough else left, now)
        while len(self._left) > MOST_CLIENTS:
            self._left.popitem(last=False)
        return 0.0 if is_enough else (cost - left) * 60 / self._most


class Guard:
    """ASGI middleware around everything that is served."""

    def __init__(
        self,
        app: ASGIApp,
        table: ConsoleTable,
        owner: Callable[[str], Awaitable[Reply]] | None,
    ) -> None:
        self._app = app
        self._names = {"localhost", table.listen, *table.hosts}
        self._owner = owner
        self._rates = Rates(table.per_minute)
        self._is_tls = table.cert_file is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or say why not."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        send = _with_headers(send, is_tls=self._is_tls)
        refused = await self._refusal(scope)
        if refused is None:
            await self._app(scope, receive, send)
            return
        status, reason, more = refused
        await JSONResponse({"error": reason}, status, more)(scope, receive, send)

    async def _refusal(self, scope: Scope) -> tuple[int, str, dict[str, str]] | None:
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        path, method = scope["path"], scope["method"]
        name = host_name(headers.get("host", ""))
        if name not in self._names and not is_loopback(name):
            return 421, "this console is not known by that name: [console] hosts", {}
        if method not in ("GET", "HEAD") and not (method == "POST" and path in POSTS):
            return 405, "this console only reads", {"allow": "GET, HEAD"}
        if path.startswith("/static/"):
            return None
        client = "address " + str((scope.get("client") or ("?",))[0])
        if self._owner is not None:
            token = token_of(headers)
            found = None if token is None else await self._owner(token)
            if found is not None and (found.code or found.out):
                return self._refusal_of(found, path)
            if not path.startswith(FREE):
                return self._ask_for_token(path, client, is_wrong=token is not None)
        cost = TRY_COST if (path, method) == ("/login", "POST") else 1
        return _too_many(self._rates.wait_s(client, cost))

    def _refusal_of(self, found: Reply, path: str) -> tuple[int, str, dict[str, str]] | None:
        """Return why somebody with a token is not let through, None: he is."""
        if found.code:
            return 503, found.err, {}
        owner = found.out.decode()
        if owner.endswith(f" {HEALTH}") and path not in HEALTH_PATHS:
            return 403, f"this token shows devices' health alone: {HEALTH_PATHS[0]}", {}
        return _too_many(self._rates.wait_s(f"token {owner}", 1))

    def _ask_for_token(
        self, path: str, client: str, *, is_wrong: bool
    ) -> tuple[int, str, dict[str, str]]:
        refused = _too_many(self._rates.wait_s(client, TRY_COST if is_wrong else 1))
        if refused is not None:
            return refused
        if path.startswith(MACHINES):
            headers = {"www-authenticate": 'Bearer realm="edge-ldp console"'}
            return 401, "expected a token of `edge-ldp console tokens make`", headers
        return 303, "log in", {"location": "/login"}


def host_name(host: str) -> str:
    """Return the name or address in a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def token_of(headers: Mapping[str, str]) -> str | None:
    """Return the token of a request, from its Authorization header or the cookie of the login."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and token:
        return token.strip()
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return None if cookie is None else cookie.value


def _too_many(wait_s: float) -> tuple[int, str, dict[str, str]] | None:
    if not wait_s:
        return None
    return 429, "too many requests", {"retry-after": str(int(wait_s) + 1)}


def _with_headers(send: Send, *, is_tls: bool) -> Send:
    more = {"strict-transport-security": "max-age=31536000"} if is_tls else {}

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {name for name, _ in message["headers"]}
            ours = {"cache-control": "no-store", **HEADERS, **more}
            message["headers"] = [
                *message["headers"],
                *((k.encode(), v.encode()) for k, v in ours.items() if k.encode() not in given),
            ]
        await send(message)

    return sending
