"""The process that asks a provider of OpenID Connect who signed on: it alone reaches the provider.

It holds the client's secret and no store, opens no file but code and what names are looked up by,
and reaches no port but the issuer's. A provider that is away keeps nobody out who has a token.
Source: docs/adr/0038-sign-on.md.
"""

import http.client
import json
import ssl
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from aggregator.commands.common import EXIT_CONFIG
from aggregator.config import ConfigError, OidcTable, is_safe_url, read_client_secret
from aggregator.console.answering import EXIT_BUSY, Given, Reply, limited
from aggregator.console.confinement import code_paths, confine
from aggregator.console.id_token import ExpectedToken, claims_of, words_of_claim
from aggregator.errors import SignOnError

WELL_KNOWN = "/.well-known/openid-configuration"
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
ENDS_AT = "end_session_endpoint"  # RP-Initiated Logout 1.0, 2.1; not every provider has one
NAMES = ("resolv.conf", "hosts", "nsswitch.conf", "host.conf", "gai.conf")  # of /etc
PATIENCE_S = 5.0
LIMIT_S = 12.0
MOST_BYTES = 1 << 18
MOST_HINT = 4096  # what fits into an address everywhere, with room to spare
KEPT_S = 3600.0
RETRY_S = 5.0
PORTS = {"https": 443, "http": 80}


class SignOnDesk:
    """Answers `begin` and `leave`, with where browsers go, and `end`, with who came back."""

    def __init__(self, table: OidcTable, file: str, clock: Callable[[], float] = time.time) -> None:
        self.table = table
        self._clock = clock
        self._trusted = ssl.create_default_context()
        self._found: dict[str, str] = {}
        self._asked = float("-inf")
        self._secret = self._why = self._wrong = ""
        try:
            self._secret = read_client_secret(table, file)
        except ConfigError as exc:
            self._wrong = str(exc)

    @classmethod
    def confined(cls, table: OidcTable, file: str) -> "SignOnDesk":
        """Return one that can do nothing else, and say at once if nobody can sign on."""
        made, at = cls(table, file), urlsplit(table.issuer)
        places = [Path("/etc", name).resolve() for name in NAMES]
        confine([*code_paths(), *places], [at.port or PORTS[at.scheme]])
        if (reply := made.answer("begin", "", ())).code:
            sys.stderr.write(f"edge-ldp console: [console.oidc]: {reply.err}\n")
        return made

    def answer(self, kind: str, name: str, given: Given) -> Reply:
        """Answer what may be asked; `name` is the code that a browser came back with."""
        try:
            with limited(LIMIT_S):
                if kind == "begin":
                    return Reply(0, self._discovered()["authorization_endpoint"].encode(), "")
                if kind == "leave":
                    return Reply(0, self._discovered().get(ENDS_AT, "").encode(), "")
                return Reply(0, json.dumps(self._who(name, **dict(given))).encode(), "")
        except SignOnError as exc:
            return Reply(EXIT_BUSY if exc.kind == "provider" else EXIT_CONFIG, b"", str(exc))
        except TimeoutError:
            return Reply(EXIT_BUSY, b"", "provider: it takes too long to answer")

    def _who(self, code: str, nonce: str, verifier: str) -> tuple[str, list[str], str]:
        """Return the name, what roles are asked for by, and the token, of whom a code is."""
        own, found = self.table, self._discovered()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": own.redirect_uri,
            "code_verifier": verifier,
        }
        login = f"{quote(own.client_id, safe='')}:{quote(self._secret, safe='')}"
        answer = self._fetched(found["token_endpoint"], form, b64encode(login.encode()).decode())
        keys = self._fetched(found["jwks_uri"])  # each time: one that was taken back is not kept
        expected = ExpectedToken(own.issuer, own.client_id, nonce, self._clock())
        token = answer.get("id_token")
        claims = claims_of(token, keys, expected)
        hint = str(token) if len(str(token)) <= MOST_HINT else ""
        return claims["sub"], words_of_claim(claims, own.claim), hint

    def _discovered(self) -> dict[str, str]:
        """Return the provider's places, as it told within the hour; raises SignOnError."""
        now_s = self._clock()
        if not 0 <= now_s - self._asked < (KEPT_S if self._found else RETRY_S):
            self._asked, self._found = now_s, {}
            try:
                self._found = self._discover()
            except SignOnError as exc:
                self._why = exc.reason
        if self._wrong or not self._found:
            raise SignOnError("provider", self._wrong or self._why)
        return self._found

    def _discover(self) -> dict[str, str]:
        issuer = self.table.issuer
        told = self._fetched(issuer.rstrip("/") + WELL_KNOWN)
        if told.get("issuer") != issuer:
            raise SignOnError("provider", "it calls itself by another name than `issuer`")
        names = (*ENDPOINTS, ENDS_AT)
        found = {name: str(told[name]) for name in names if is_safe_url(str(told.get(name)))}
        if not found.keys() >= {*ENDPOINTS}:
            raise SignOnError("provider", f"it does not tell {', '.join(ENDPOINTS)}, by https")
        return found

    def _fetched(
        self, url: str, form: Mapping[str, str] | None = None, login: str = ""
    ) -> dict[str, Any]:
        """Return what is at a place, as JSON; raises SignOnError, which tells nothing of it."""
        at = urlsplit(url)
        where = at.hostname or "", at.port or PORTS[at.scheme]
        link: http.client.HTTPConnection = (
            http.client.HTTPSConnection(*where, timeout=PATIENCE_S, context=self._trusted)
            if at.scheme == "https"
            else http.client.HTTPConnection(*where, timeout=PATIENCE_S)
        )
        path = (at.path or "/") + (f"?{at.query}" if at.query else "")
        headers = {"Accept": "application/json", "Connection": "close"}
        text = None if form is None else urlencode(form)
        if text is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            headers["Authorization"] = f"Basic {login}"
        try:
            link.request("GET" if text is None else "POST", path, text, headers)
            reply = link.getresponse()
            body = reply.read(MOST_BYTES + 1)
        except (OSError, http.client.HTTPException, ValueError) as exc:
            why = exc.strerror if isinstance(exc, OSError) and exc.strerror else type(exc).__name__
            raise SignOnError("provider", f"cannot ask {where[0]}, port {where[1]}: {why}") from exc
        finally:
            link.close()
        return _read(reply.status, body, is_of_code=form is not None)


def _read(status: int, body: bytes, *, is_of_code: bool) -> dict[str, Any]:
    """Return an answer as JSON; raises SignOnError."""
    try:
        told = json.loads(body) if len(body) <= MOST_BYTES else None
    except (ValueError, RecursionError):
        told = None
    if is_of_code and isinstance(told, dict) and told.get("error") == "invalid_grant":
        raise SignOnError("code", "it was used before, or it has expired")
    if is_of_code and isinstance(told, dict) and told.get("error") == "invalid_client":
        raise SignOnError("provider", "it does not know this client_id and secret")
    if status != http.client.OK or not isinstance(told, dict):
        raise SignOnError("provider", f"its answer, {status}, is none of OpenID Connect")
    return told
