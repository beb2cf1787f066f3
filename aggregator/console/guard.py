"""Who may look: names, methods, tokens, a proxy's word, rates; and headers that bind a browser.

Loopback needs no token unless a file of tokens, or such a proxy, is configured. The name that is
asked for must be ours: else a page from elsewhere could point its own name at this machine and read
along.
"""

import json
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http.cookies import CookieError, SimpleCookie

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aggregator.config import ConsoleTable, is_loopback
from aggregator.console.answering import Reply
from aggregator.console.roles import ANYBODY, Viewer, signed_on, viewer_of

Refusal = tuple[int, str, dict[str, str]]
"""Status, reason and more headers of an answer."""

COOKIE = "edge_ldp_console"
FREE = ("/login", "/sign-on", "/signed-on", "/static/")  # paths for which no token is asked
MACHINES = ("/api/", "/metrics", "/events")  # a program asks: no page to log in
FORBIDDEN = 403
POSTS = ("/login", "/logout")
TRY_COST = 20  # requests that a token that is nobody's costs
TRIES = (("/login", "POST"), ("/signed-on", "GET"))
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
        session: Callable[[Mapping[str, str]], Viewer | None] | None = None,
        page: Callable[[Viewer, str], Response] | None = None,
    ) -> None:
        self._app = app
        self._names = {"localhost", table.listen, *table.hosts}
        self._owner = owner
        self._session = session
        self._page = page
        self._sign_on = table.sign_on
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
        found: Response = JSONResponse({"error": reason}, status, more)
        viewer = scope.get("viewer")
        if status == FORBIDDEN and viewer and self._page and not scope["path"].startswith(MACHINES):
            found = self._page(viewer, reason)
        await found(scope, receive, send)

    async def _refusal(self, scope: Scope) -> Refusal | None:
        """Return why a request is not let through; else it is said in its scope who asks."""
        pairs = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
        ]
        headers, path, method = dict(pairs), scope["path"], scope["method"]
        refused = self._unfit(host_name(headers.get("host", "")), path, method)
        if refused is not None or path.startswith("/static/"):
            return refused
        address = str((scope.get("client") or ("unix",))[0])
        found = self._told(pairs, address) or await self._viewer(headers)
        if isinstance(found, Viewer):
            scope["viewer"] = found
        elif found is not None:
            return found
        elif not path.startswith(FREE):
            is_wrong = token_of(headers) is not None
            return self._ask_for_token(path, f"address {address}", is_wrong=is_wrong)
        cost = TRY_COST if (path, method) in TRIES else 1
        named = f"token {found.name}" if found is not None and found.name else f"address {address}"
        refused = _too_many(self._rates.wait_s(named, cost))
        return refused or (None if found is None else _bounded(found, scope))

    def _unfit(self, name: str, path: str, method: str) -> Refusal | None:
        if name not in self._names and not is_loopback(name):
            return 421, "this console is not known by that name: [console] hosts", {}
        if method not in ("GET", "HEAD") and not (method == "POST" and path in POSTS):
            return 405, "this console only reads", {"allow": "GET, HEAD"}
        return None

    def _told(self, pairs: Sequence[tuple[str, str]], address: str) -> Viewer | Refusal | None:
        """Return whom a proxy names, or why it is not believed; None: nobody is named."""
        table = self._sign_on
        if table is None:
            return None
        ours = {one.lower() for one in (table.user, table.groups) if one is not None}
        given = [pair for pair in pairs if pair[0] in ours]
        if not given:
            return None
        if len(given) > len(dict(given)):
            return 403, "a header of [console.sign_on] is there twice", {}
        found = signed_on(table, dict(given), address)
        return found if isinstance(found, Viewer) else (403, found, {})

    async def _viewer(self, headers: Mapping[str, str]) -> Viewer | Refusal | None:
        """Return whose token it is, or why that cannot be said; None: nobody's."""
        if self._session is not None and (viewer := self._session(headers)) is not None:
            return viewer
        if self._owner is None:
            return None if self._sign_on or self._session else ANYBODY
        token = token_of(headers)
        found = None if token is None else await self._owner(token)
        if found is not None and found.code:
            return 503, found.err, {}
        return viewer_of(*json.loads(found.out)) if found is not None and found.out else None

    def _ask_for_token(self, path: str, client: str, *, is_wrong: bool) -> Refusal:
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
    return cookie_of(headers, COOKIE)


def cookie_of(headers: Mapping[str, str], name: str) -> str | None:
    """Return a request's cookie of this name."""
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return None if cookie is None else cookie.value


def _bounded(viewer: Viewer, scope: Scope) -> Refusal | None:
    """Return what his role does not let him see, or where else his browser goes."""
    path, query = scope["path"], scope["query_string"].decode("latin-1")
    if place := viewer.elsewhere(path, query):
        return 303, "see there", {"location": place}
    reason = viewer.refusal(path, query)
    return None if reason is None else (FORBIDDEN, reason, {})


def _too_many(wait_s: float) -> Refusal | None:
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
