"""Who may look: names, methods, tokens, rates, and the headers that bind a browser."""

import ssl
import stat
import subprocess
from pathlib import Path

import httpx
import pytest

from aggregator.config import AggregatorConfig, ConfigError, parse_config
from aggregator.console.guard import HEADERS, Rates, host_name, token_of
from aggregator.console.main import main
from aggregator.enrolment.tokens import Tokens
from tests import needs
from tests.aggregator.config.test_config import GOOD
from tests.aggregator.console.small_fleet import Fleet, make_fleet, serving

PATHS = (
    *("/", "/devices", "/metrics", "/nothing", "/static/console.js"),
    *("/api/v1/theta", "/api/v1/nothing"),
)


def test_every_answer_binds_the_browser(console: str) -> None:
    for path in PATHS:
        found = httpx.get(console + path).headers
        assert {name: found[name] for name in HEADERS} == HEADERS, path
        assert found["cache-control"] == ("max-age=3600" if "static" in path else "no-store")
        assert "server" not in found


def test_the_policy_lets_nothing_in_from_elsewhere_and_nothing_inline(console: str) -> None:
    policy = HEADERS["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "http" not in policy
    for path in ("/", "/stream", "/devices", "/device", "/privacy", "/plans", "/api", "/dossier"):
        text = httpx.get(console + path).text
        assert "style=" not in text
        assert "javascript:" not in text
        assert "onclick" not in text
        assert "://" not in text


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_it_only_reads(console: str, method: str) -> None:
    for path in PATHS:
        assert httpx.request(method, console + path).status_code == 405


def test_a_name_that_is_not_ours_is_refused(console: str) -> None:
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::2]"):
        assert httpx.get(console, headers={"host": host}).status_code == 421, host
    for host in ("localhost", "127.0.0.1:1", "[::1]:8420"):
        assert httpx.get(console, headers={"host": host}).status_code == 200, host


def test_paths_do_not_leave_the_assets(console: str) -> None:
    for path in ("/static/../server.py", "/static/%2e%2e/server.py", "/static/..%2fserver.py"):
        assert httpx.get(console + path).status_code == 404


def test_a_client_has_so_many_requests_a_minute() -> None:
    at = [0.0]
    rates = Rates(60, lambda: at[0])
    assert [rates.wait_s("a") for _ in range(60)] == [0.0] * 60
    assert rates.wait_s("a") == pytest.approx(1.0)
    assert rates.wait_s("b") == 0.0
    at[0] = 2.0
    assert [rates.wait_s("a") for _ in range(3)] == [0.0, 0.0, pytest.approx(1.0)]


def test_too_many_requests_are_told_when_to_come_again(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, console="per_minute = 10")
    with serving(fleet) as (address, _), httpx.Client(base_url=address) as client:
        replies = [client.get("/api/v1/nothing") for _ in range(60)]
    refused = [reply for reply in replies if reply.status_code == 429]
    assert len(refused) >= 5  # 10 at once, then one every 6 s
    assert all(int(reply.headers["retry-after"]) >= 1 for reply in refused)


def test_a_host_is_read_without_its_port() -> None:
    assert host_name("Localhost:80") == "localhost"
    assert host_name("[::1]:80") == "::1"
    assert token_of({"authorization": "Bearer x y"}) == "x y"
    assert token_of({"authorization": "Basic abc", "cookie": "a=1; edge_ldp_console=t"}) == "t"
    assert token_of({"cookie": "\x00=;;;"}) is None


@pytest.fixture
def guarded(tmp_path: Path) -> Fleet:
    return make_fleet(tmp_path, console=f'tokens_file = "{tmp_path / "tokens"}"')


def test_a_token_is_shown_once_kept_as_a_hash_and_revoked_at_once(
    guarded: Fleet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = ["-c", str(guarded.file)]
    assert main(["tokens", "make", *file, "alice"]) == 0
    token = capsys.readouterr().out.strip()
    kept = tmp_path / "tokens"
    assert token not in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert main(["tokens", "make", *file, "alice"]) == 2
    assert "revoke this one first" in capsys.readouterr().err
    with serving(guarded) as (address, _), httpx.Client(base_url=address) as client:
        bearer = {"authorization": f"Bearer {token}"}
        for path in ("/api/v1/theta", "/metrics", "/events"):
            assert client.get(path).status_code == 401
            assert client.get(path).headers["www-authenticate"].startswith("Bearer")
        assert client.get("/").headers["location"] == "/login"
        assert client.get("/api/v1/theta", headers=bearer).status_code == 200
        assert client.get("/", headers={"authorization": "Bearer ldp_x"}).status_code == 303
        wrong = client.post("/login", data={"token": "ldp_wrong"})
        assert wrong.status_code == 401
        assert "ldp_wrong" not in wrong.text
        entered = client.post("/login", data={"token": token})
        told = entered.headers["set-cookie"].lower()
        assert entered.status_code == 303
        assert "httponly" in told
        assert "samesite=strict" in told
        assert client.get("/").status_code == 200
        assert client.post("/login", content=b"x" * 5000).status_code == 413
        assert main(["tokens", "make", *file, "--role", "installer", "fitter"]) == 0
        fitter = {"authorization": f"Bearer {capsys.readouterr().out.strip()}"}
        assert "devices" in client.get("/api/v1/devices", headers=fitter).json()
        assert client.get("/", headers=fitter).headers["location"] == "/devices"
        assert client.get("/api/v1/status", headers=fitter).status_code == 403
        assert main(["tokens", "list", *file, "--json"]) == 0
        assert '"name": "alice"' in capsys.readouterr().out
        assert main(["tokens", "revoke", *file, "alice"]) == 0
        assert client.get("/").status_code == 303
        assert client.get("/api/v1/theta", headers=bearer).status_code == 401
    assert main(["tokens", "revoke", *file, "alice"]) == 2


@pytest.mark.slow
def test_by_a_certificate_it_is_https_alone(tmp_path: Path) -> None:
    cert, key = tmp_path / "console.pem", tmp_path / "console.key"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = ["-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(cert)]
    openssl = [needs.program("openssl"), "req", "-x509", "-days", "2", *made, *subject]
    subprocess.run(openssl, check=True, capture_output=True)
    named = f'cert_file = "{cert}"\nkey_file = "{key}"\ntokens_file = "{tmp_path / "tokens"}"'
    fleet = make_fleet(tmp_path, console=named)
    token = Tokens(tmp_path / "tokens").make("alice", 1, "operator")
    with serving(fleet) as (address, _):
        assert address.startswith("https://127.0.0.1:")
        port = address.rpartition(":")[2]
        trusting = ssl.create_default_context(cafile=str(cert))
        with httpx.Client(base_url=f"https://localhost:{port}", verify=trusting) as client:
            entered = client.post("/login", data={"token": token})
            assert "secure" in entered.headers["set-cookie"].lower()
            page = client.get("/")
            assert page.status_code == 200
            assert page.headers["strict-transport-security"].startswith("max-age=")
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"http://localhost:{port}/")


SQLITE, POSTGRES = 'path = "aggregator.db"', 'url = "postgresql://w@h/d"'


def configured(store: str, console: str) -> AggregatorConfig:
    return parse_config(f"{GOOD.replace(SQLITE, store)}[console]\n{console}\n", "test.toml")


@pytest.mark.parametrize(
    ("store", "console", "key"),
    [
        (SQLITE, 'listen = "0.0.0.0"', "console.tokens_file"),
        (SQLITE, 'listen = "::"\ntokens_file = "t"', "console.cert_file"),
        (SQLITE, 'cert_file = "c"', "console.key_file"),
        (SQLITE, 'url = "postgresql://r@h/d"', "console.url"),
        (POSTGRES, 'url = "http://r@h/d"', "console.url"),
        (POSTGRES, 'url = "postgresql://r:secret@h/d"', "console.url"),
        (POSTGRES, 'password_file = "p"', "console.url"),
        (SQLITE, "per_minute = 1", "console.per_minute"),
    ],
)
def test_what_would_let_anybody_look_is_refused(store: str, console: str, key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        configured(store, console)
    assert refused.value.key == key
    assert "secret" not in str(refused.value)


def test_off_this_machine_with_tokens_and_a_certificate() -> None:
    fine = 'listen = "0.0.0.0"\ntokens_file = "t"\ncert_file = "c"\nkey_file = "k"'
    assert configured(SQLITE, fine).console.cert_file == "c"


def test_a_port_that_is_taken_is_named(
    fleet: Fleet, console: str, capsys: pytest.CaptureFixture[str]
) -> None:
    port = console.rpartition(":")[2]
    assert main(["-c", str(fleet.file), "--port", port]) == 2
    assert f"port {port}" in capsys.readouterr().err


@pytest.mark.parametrize("port", ["99999", "-1", "http"])
def test_a_port_that_is_none_is_refused(
    fleet: Fleet, port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["-c", str(fleet.file), f"--port={port}"])
    said = f"--port: expected a port, 1 to 65535, or 0, not '{port}'"
    assert said in " ".join(capsys.readouterr().err.split())
