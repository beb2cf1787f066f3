"""Single sign-on by OpenID Connect: what is believed, and what is refused, by whom and how told."""

import asyncio
import hmac
import json
import logging
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from aggregator.config import ConfigError, ConsoleTable, OidcTable, parse_config
from aggregator.console.answering import Given, Reply
from aggregator.console.id_token import ExpectedToken, claims_of, words_of_claim
from aggregator.console.main import main
from aggregator.console.provider import RETRY_S, SignOnDesk
from aggregator.console.server import Console
from aggregator.console.signing_on import MOST_CODE, SESSION_S, SignOn
from aggregator.errors import SignOnError
from tests.aggregator.config.test_config import GOOD
from tests.aggregator.console.small_fleet import make_fleet
from tests.integration.conftest import free_port

NOW_S = 1_800_000_000
SECRET, CODE, ISSUER = "kept-to-ourselves", "a-code-of-once", "https://login.example.net"
KEY = ECKey.generate_key("P-256", {"kid": "one"})
OTHER = ECKey.generate_key("P-256", {"kid": "one"})
KEYS: Any = KeySet([KEY]).as_dict()
CLAIMS = {
    "iss": ISSUER, "aud": "edge-ldp", "sub": "eve", "nonce": "n", "iat": NOW_S, "exp": NOW_S + 300,
    "groups": ["staff", "grid"],
}  # fmt: skip
EXPECTED = ExpectedToken(ISSUER, "edge-ldp", "n", NOW_S)


def signed(change: dict[str, Any] | None = None, key: ECKey = KEY, alg: str = "ES256") -> str:
    claims = {name: one for name, one in {**CLAIMS, **(change or {})}.items() if one is not None}
    return jwt.encode({"alg": alg, "kid": "one"}, claims, key, algorithms=[alg])


def with_alg(alg: str) -> str:
    """Return a token as anybody can make it: signed by nothing, or by what is public."""
    parts = ({"alg": alg, "kid": "one"}, CLAIMS)
    head = b".".join(urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=") for one in parts)
    mark = hmac.digest(json.dumps(KEYS["keys"][0]).encode(), head, "sha256")
    return (
        f"{head.decode()}.{urlsafe_b64encode(mark).decode().rstrip('=') if alg != 'none' else ''}"
    )


@pytest.mark.parametrize(
    ("token", "told"),
    [
        (signed(), None),
        (signed({"aud": ["edge-ldp"]}), None),
        (signed({"exp": NOW_S - 59, "iat": NOW_S - 300}), None),  # clocks differ by a minute
        (signed({"iat": NOW_S + 59}), None),
        (signed({"exp": NOW_S - 61, "iat": NOW_S - 300}), "expired"),
        (signed({"iat": NOW_S - 601, "exp": NOW_S + 3600}), "expired"),
        (signed({"iat": NOW_S + 61}), "future"),
        (signed({"nbf": NOW_S + 61}), "future"),
        (signed({"exp": None}), "no times"),
        (signed({"exp": "soon"}), "no times"),
        (signed({"exp": "nan"}), "expired"),
        (signed({"iat": "nan"}), "expired|future"),
        (signed({"aud": "another"}), "another client"),
        (signed({"aud": ["edge-ldp", "another"]}), "another client"),
        (signed({"aud": None}), "another client"),
        (signed({"iss": f"{ISSUER}/"}), "another issuer"),
        (signed({"nonce": "m"}), "another sign-on"),
        (signed({"nonce": None}), "another sign-on"),
        (signed({"sub": None}), "nobody"),
        (signed({"sub": ["eve"]}), "nobody"),
        (signed(key=OTHER), "signature"),
        (signed()[:-8], "signature"),
        (with_alg("none"), "signature"),
        (with_alg("HS256"), "signature"),
        ("", "signature"),
        (None, "signature"),
        ("a.b.c" * 20_000, "signature"),
    ],
)
def test_AGG_48_an_id_token_is_believed_if_all_of_it_is_right(token: Any, told: str | None) -> None:
    if told is None:
        assert words_of_claim(claims_of(token, KEYS, EXPECTED), "groups") == ["staff", "grid"]
        return
    with pytest.raises(SignOnError, match=told) as caught:
        claims_of(token, KEYS, EXPECTED)
    assert caught.value.kind == "token"
    assert not token or token not in str(caught.value)


def test_an_address_that_nobody_proved_is_no_name() -> None:
    assert words_of_claim({"email": "a@b", "email_verified": True}, "email") == ["a@b"]
    assert words_of_claim({"email": "a@b"}, "email") == []
    assert words_of_claim({"groups": ["a", 1, None]}, "groups") == ["a"]
    assert words_of_claim({"sub": "a"}, "groups") == []


class Answers(BaseHTTPRequestHandler):
    """Answers what a test wants: status, headers and a body, or an object to be JSON."""

    wanted: dict[str, tuple[int, Any]]
    asked: list[tuple[str, str]]

    def do_GET(self) -> None:
        size = int(self.headers.get("content-length", 0))
        self.asked.append((self.headers.get("authorization", ""), self.rfile.read(size).decode()))
        status, said = self.wanted[self.path]
        self.send_response(status)
        if isinstance(said, str):
            self.send_header("X-Long", said)
        self.end_headers()
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815 (as the library calls it)

    def log_message(self, *_: Any) -> None:
        """Be silent."""


@contextmanager
def provider() -> Iterator[tuple[str, type[Answers]]]:
    class Own(Answers):
        pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Own) as server:
        Own.asked = []
        issuer = f"http://127.0.0.1:{server.server_port}"
        places = {
            "authorization_endpoint": "/auth",
            "token_endpoint": "/token",
            "jwks_uri": "/keys",
            "end_session_endpoint": "/end",
        }
        told = {name: issuer + place for name, place in places.items()}
        Own.wanted = {
            "/.well-known/openid-configuration": (200, {"issuer": issuer, **told}),
            "/keys": (200, KEYS),
        }
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield issuer, Own
        finally:
            server.shutdown()


class Desks:
    """In the place of the console's channel, the other end itself."""

    fresh = owner = None

    def __init__(self, desk: SignOnDesk) -> None:
        self.desk = desk

    async def sign_on(self, kind: str, code: str = "", given: Given = ()) -> Reply:
        return self.desk.answer(kind, code, given)


def table_of(place: Path, issuer: str, **more: Any) -> OidcTable:
    secret = place / "secret"
    secret.write_text(f"{SECRET}\n")
    secret.chmod(0o600)
    roles = {"grid": "operator", "eve": "viewer"}
    where = "http://localhost"
    return OidcTable(issuer, "edge-ldp", str(secret), where, roles, **more)


Told = dict[str, tuple[int, Any]]
Change = Callable[[str, Told, dict[str, Any]], None]


def answering(place: str, status: int, said: Any) -> Change:
    return lambda _issuer, wanted, _asked: wanted.__setitem__(place, (status, said))


def claiming(**change: Any) -> Change:
    return lambda _issuer, _wanted, asked: asked.update(change)


def callback(**change: str) -> Change:
    return lambda _issuer, _wanted, asked: asked.update({f"?{k}": v for k, v in change.items()})


LONG = "x" * 70_000
AT = "/.well-known/openid-configuration"
CASES: list[tuple[Change, str]] = [
    (claiming(), "303 "),
    (claiming(groups=["grid", "x" * 5000]), "303 "),  # no address has room for such a token
    (callback(state="other"), "400 State: this browser began no such"),
    (callback(state=""), "400 State: this browser began no such"),
    (callback(cookie=""), "400 State: this browser began no such"),
    (callback(iss="https://evil.example"), "400 State: another issuer answered"),
    (callback(error="access_denied"), "403 Refused: the provider said access_denied"),
    (callback(error="<script>"), "403 Refused: the provider said a word that is none"),
    (callback(code=""), "403 Code: there is none"),
    (callback(code="c" * (MOST_CODE + 1)), "403 Code: there is none, or it is too long"),
    (answering("/token", 400, {"error": "invalid_grant"}), "403 Code: it was used before"),
    (
        answering("/token", 401, {"error": "invalid_client"}),
        "503 Provider: it does not know this client_id",
    ),
    (answering("/token", 500, b"<h1>"), "503 Provider: its answer, 500, is none"),
    (answering("/token", 200, {}), "403 Token: its signature"),
    (answering("/token", 200, LONG), "503 Provider: cannot ask 127.0.0.1"),
    (
        answering("/token", 200, b'"' + b"x" * (1 << 18) + b'"'),
        "503 Provider: its answer, 200, is none",
    ),
    (answering("/token", 200, b"[" * 100_000), "503 Provider: its answer, 200, is none"),
    (answering("/keys", 200, {"keys": []}), "403 Token: its signature"),
    (answering("/keys", 404, {}), "503 Provider: its answer, 404, is none"),
    (claiming(exp=NOW_S - 100, iat=NOW_S - 200), "403 Token: it has expired"),
    (claiming(aud="another"), "403 Token: it is for another client"),
    (claiming(nonce="other"), "403 Token: it is of another sign-on"),
    (claiming(groups=["staff"]), "403 Role: nothing in [console.oidc.roles]"),
]


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Callable[[], str]:
    caplog.set_level(logging.DEBUG)

    def everything() -> str:
        ours = [one.getMessage() for one in caplog.records if one.name != "httpx"]  # that browses
        return "".join([*ours, *capfd.readouterr()])

    return everything


@pytest.mark.parametrize(("change", "told"), CASES)
def test_AGG_48_who_comes_back_from_the_provider_is_let_in_or_told_why_not(
    tmp_path: Path, change: Change, told: str, said: Callable[[], str]
) -> None:
    with provider() as (issuer, own):
        desk = SignOnDesk(table_of(tmp_path, issuer), "f", clock=lambda: NOW_S)
        console = Console("f", ConsoleTable(oidc=desk.table), Desks(desk))  # type: ignore[arg-type] # as it says
        found, token = asyncio.run(_signs_on(console, own, change))
        alarm = re.search(r"Not signed on. ([^<]*)", found.text)
        assert f"{found.status_code} {alarm[1] if alarm else ''}".startswith(told)
        if told == "303 ":
            login, sent = own.asked[-2]
            assert login == "Basic ZWRnZS1sZHA6a2VwdC10by1vdXJzZWx2ZXM="
            assert {*parse_qs(sent)} == {"grant_type", "code", "redirect_uri", "code_verifier"}
    everything = said() + found.text
    assert not [one for one in (SECRET, CODE, token) if one in everything]


async def _signs_on(
    console: Console, own: type[Answers], change: Change
) -> tuple[httpx.Response, str]:
    """Return what the browser is told that comes back, and the token that the provider gave."""
    way = httpx.ASGITransport(console.app())
    async with httpx.AsyncClient(transport=way, base_url="http://localhost") as client:
        assert (await client.get("/")).headers["location"] == "/login"
        begun = await client.get("/sign-on")
        to = urlsplit(begun.headers["location"])
        asked = {name: one for name, (one,) in parse_qs(to.query).items()}
        assert asked["code_challenge_method"] == "S256"
        assert asked["redirect_uri"] == "http://localhost/signed-on"
        issuer = f"{to.scheme}://{to.netloc}"
        claims = {"nonce": asked["nonce"], "iss": issuer}
        more: dict[str, Any] = {}
        own.wanted["/token"] = 200, None
        change(issuer, own.wanted, more)
        query = {"code": CODE, "state": asked["state"], "iss": issuer}
        query.update({name[1:]: one for name, one in more.items() if name.startswith("?")})
        claims.update({name: one for name, one in more.items() if not name.startswith("?")})
        token = signed(claims)
        if own.wanted["/token"][1] is None:
            own.wanted["/token"] = 200, {"id_token": token, "access_token": "unused"}
        if query.pop("cookie", None) == "":
            client.cookies.clear()
        found = await client.get("/signed-on", params=query)
        if found.status_code == 303:
            cookie = found.headers["set-cookie"].lower()
            assert "httponly" in cookie
            assert "samesite=lax" in cookie
            assert f"max-age={SESSION_S}" in cookie
            assert (await client.get("/api/v1/openapi.json")).status_code == 200
            again = await client.get("/signed-on", params=query)  # its sign-on is over
            assert again.status_code == 400
            left = await client.post("/logout")
            to = urlsplit(left.headers["refresh"].removeprefix("0; url="))
            asked = {name: one for name, (one,) in parse_qs(to.query).items()}
            assert f"{to.scheme}://{to.netloc}{to.path}" == f"{issuer}/end"
            assert asked.pop("id_token_hint", "long") == (token if len(token) < 4096 else "long")
            where = "http://localhost/login"
            assert asked == {"client_id": "edge-ldp", "post_logout_redirect_uri": where}
            assert (await client.post("/logout")).headers["location"] == "/login"  # nobody did
        assert (await client.get("/api/v1/openapi.json")).status_code == 401
    return found, token


def test_a_provider_that_is_away_is_asked_again_and_told_of(tmp_path: Path) -> None:
    now = [0.0]
    away = f"http://127.0.0.1:{free_port()}"
    desk = SignOnDesk(table_of(tmp_path, away), "f", clock=lambda: now[0])
    found = desk.answer("begin", "", ())
    assert found.err == f"provider: cannot ask 127.0.0.1, port {away[17:]}: Connection refused"
    with provider() as (issuer, own):
        desk = SignOnDesk(table_of(tmp_path, issuer), "f", clock=lambda: now[0])
        right = own.wanted[AT]
        for wrong in ({"issuer": ISSUER}, {"token_endpoint": "http://elsewhere.example/token"}):
            own.wanted[AT] = 200, {**right[1], **wrong}
            assert desk.answer("begin", "", ()).code
            own.wanted[AT] = right
            assert desk.answer("begin", "", ()).code  # not asked again at once
            now[0] += RETRY_S
            assert desk.answer("begin", "", ()).out.decode() == f"{issuer}/auth"
            assert desk.answer("leave", "", ()).out.decode() == f"{issuer}/end"
            now[0] += 3600
        own.wanted[AT] = 200, {**right[1], "end_session_endpoint": "http://elsewhere.example/end"}
        assert desk.answer("leave", "", ()) == Reply(0, b"", "")


def test_a_session_ends_and_there_are_so_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    with provider() as (issuer, own):
        table = table_of(tmp_path, issuer)
        desk = SignOnDesk(table, "f", clock=lambda: NOW_S)
        console = Console("f", ConsoleTable(oidc=table), Desks(desk))  # type: ignore[arg-type] # as above
        made = SignOn(table, Desks(desk), lambda: now[0])  # type: ignore[arg-type] # as above
        monkeypatch.setattr(console, "_sign_on", made)
        monkeypatch.setattr("aggregator.console.signing_on.MOST_SESSIONS", 2)

        async def sign_on() -> dict[str, str]:
            way = httpx.ASGITransport(console.app())
            async with httpx.AsyncClient(transport=way, base_url="http://localhost") as client:
                begun = await client.get("/sign-on")
                asked = parse_qs(urlsplit(begun.headers["location"]).query)
                claims = {"nonce": asked["nonce"][0], "iss": issuer}
                own.wanted["/token"] = 200, {"id_token": signed(claims)}
                query = {"code": CODE, "state": asked["state"][0]}
                assert (await client.get("/signed-on", params=query)).status_code == 303
                return {"cookie": f"edge_ldp_session={client.cookies['edge_ldp_session']}"}

        first, *later = [asyncio.run(sign_on()) for _ in range(3)]
    assert made.viewer(first) is None
    assert [one.role for one in map(made.viewer, later) if one] == ["operator"] * 2
    now[0] = SESSION_S
    assert made.viewer(later[1]) is None
    assert made.viewer({"cookie": "edge_ldp_session="}) is None


OIDC = """[console.oidc]
issuer = "{issuer}"
client_id = "edge-ldp"
secret_file = "{secret}"
address = "https://console.example.net"
roles = {{ grid = "{role}" }}
"""


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"issuer": "http://login.example.net"}, "console.oidc.issuer: expected https://"),
        ({"issuer": "https://login.example.net:x"}, "console.oidc.issuer: expected https://"),
        ({"role": "boss"}, "console.oidc.roles.grid: expected one of operator, viewer"),
        ({"secret": "nowhere"}, "console.oidc.secret_file: expected a readable file"),
        ({"mode": "644"}, "console.oidc.secret_file: expected a file of mode 0600"),
    ],
)
def test_what_cannot_be_used_is_told_at_the_start(
    tmp_path: Path, change: dict[str, str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table_of(tmp_path, ISSUER)
    given = {"issuer": ISSUER, "role": "viewer", "secret": tmp_path / "secret", **change}
    (tmp_path / "secret").chmod(int(change.get("mode", "600"), 8))
    text = OIDC.format(**given)
    if "issuer" in change:
        with pytest.raises(ConfigError, match=told):
            parse_config(GOOD + text, "f")
        return
    fleet = make_fleet(tmp_path)
    fleet.file.write_text(fleet.file.read_text() + text)
    assert main(["-c", str(fleet.file)]) == 2
    assert told in capsys.readouterr().err
