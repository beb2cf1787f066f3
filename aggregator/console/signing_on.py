"""How a browser signs on at a provider of OpenID Connect, and is known afterwards.

By the code flow with PKCE (RFC 7636). A sign-on that is begun is kept by the browser alone, in a
cookie, from which state, nonce and verifier follow: so nobody can fill a memory here, nor end
another's sign-on in his own browser. Who signed on is known by 256 random bits, for eight hours.
"""

import base64
import hashlib
import hmac
import json
import os
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from aggregator.commands.common import EXIT_CONFIG
from aggregator.config import OidcTable
from aggregator.console.answering import Reply
from aggregator.console.desks import Desks
from aggregator.console.guard import cookie_of
from aggregator.console.roles import Viewer, role_among, viewer_of
from aggregator.errors import SignOnError

BEGUN_S = 600
SESSION_S = 8 * 3600
MOST_SESSIONS = 10_000
MOST_CODE = 4096
WORD = re.compile(r"[a-z_]{1,40}")


class SignOn:
    """Who signed on, and how one does; of one provider."""

    def __init__(
        self, table: OidcTable, desks: Desks, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._table = table
        self._desks = desks
        self._clock = clock
        self._sessions: OrderedDict[str, tuple[Viewer, float, str]] = OrderedDict()
        self._is_tls = table.address.startswith("https:")
        of = "__Host-" if self._is_tls else ""  # no neighbour of our name can set one like it
        self._begun, self._known = f"{of}edge_ldp_sign_on", f"{of}edge_ldp_session"

    def viewer(self, headers: Mapping[str, str]) -> Viewer | None:
        """Return who signed on in this browser, None: nobody, or too long ago."""
        found = self._sessions.get(cookie_of(headers, self._known) or "")
        return found[0] if found is not None and self._clock() < found[1] else None

    async def begin(self, _request: Request) -> Response:
        """Send a browser to the provider; raises SignOnError."""
        endpoint = _told(await self._desks.sign_on("begin"))
        begun = _random()
        verifier = _of(begun, "verifier")
        asked = {
            "response_type": "code",
            "client_id": self._table.client_id,
            "redirect_uri": self._table.redirect_uri,
            "scope": self._table.scope,
            "state": _of(begun, "state"),
            "nonce": _of(begun, "nonce"),
            "code_challenge": _text(hashlib.sha256(verifier.encode()).digest()),
            "code_challenge_method": "S256",
        }
        found = RedirectResponse(_asking(endpoint, asked), 303)
        self._set(found, self._begun, begun, BEGUN_S)
        return found

    async def end(self, request: Request) -> Response:
        """Take back a browser from the provider; raises SignOnError."""
        asked, begun = request.query_params, request.cookies.get(self._begun, "")
        state = asked.get("state", "").encode()
        if not begun or not hmac.compare_digest(state, _of(begun, "state").encode()):
            raise SignOnError("state", "this browser began no such sign-on within ten minutes")
        if asked.get("iss", self._table.issuer) != self._table.issuer:
            raise SignOnError("state", "another issuer answered")
        if error := asked.get("error"):
            word = error if WORD.fullmatch(error) else "a word that is none"
            raise SignOnError("refused", f"the provider said {word}")
        code = asked.get("code", "")
        if not 0 < len(code) <= MOST_CODE:
            raise SignOnError("code", "there is none, or it is too long")
        given = tuple((name, _of(begun, name)) for name in ("nonce", "verifier"))
        name, words, token = json.loads(_told(await self._desks.sign_on("end", code, given)))
        text = role_among(self._table.roles, words)
        if text is None:
            raise SignOnError("role", "nothing in [console.oidc.roles] is of you: ask the operator")
        until = self._clock() + SESSION_S
        self._sessions[known := _random()] = viewer_of(name, text), until, token
        while len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        found = RedirectResponse("/", 303)
        self._set(found, self._known, known, SESSION_S)
        self._set(found, self._begun, "", 0)
        return found

    async def leave(self, request: Request) -> str:
        """End a browser's session here; return where it ends at the provider, "": nowhere.

        Source: OpenID Connect RP-Initiated Logout 1.0, section 2.
        """
        session = self._sessions.pop(request.cookies.get(self._known, ""), None)
        reply = None if session is None else await self._desks.sign_on("leave")
        if session is None or reply is None or reply.code or not reply.out:
            return ""  # one that is away keeps nobody signed on here
        asked = {
            "client_id": self._table.client_id,
            "post_logout_redirect_uri": self._table.logged_out_uri,
        }
        if session[2]:
            asked["id_token_hint"] = session[2]
        return _asking(reply.out.decode(), asked)

    def forget(self, found: Response) -> None:
        """Take the session's cookie from a browser."""
        self._set(found, self._known, "", 0)

    def _set(self, found: Response, name: str, value: str, age_s: int) -> None:
        found.set_cookie(
            name, value, max_age=age_s, httponly=True, samesite="lax", secure=self._is_tls
        )


def _told(reply: Reply) -> str:
    """Return what the process that asks the provider told; raises SignOnError."""
    if reply.code:
        kind, _, reason = reply.err.partition(": ")
        if reply.code == EXIT_CONFIG:
            raise SignOnError(kind, reason)
        raise SignOnError("provider", reply.err.removeprefix("provider: "))
    return reply.out.decode()


def _asking(endpoint: str, asked: Mapping[str, str]) -> str:
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(asked)}"


def _random() -> str:
    return _text(os.urandom(32))


def _of(begun: str, what: str) -> str:
    """Return state, nonce or verifier of a sign-on: none of them tells another."""
    return _text(hmac.digest(begun.encode(), what.encode(), "sha256"))


def _text(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
