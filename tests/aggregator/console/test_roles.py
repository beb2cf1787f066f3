"""Who may see what: every route and role, groups, and what a proxy says of who asks."""

import asyncio
import json
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest

from aggregator.config import ConfigError, ConsoleTable, SignOnTable, parse_config
from aggregator.console.answering import Reply
from aggregator.console.guard import Guard
from aggregator.console.main import main
from aggregator.console.questions import QUESTIONS
from aggregator.console.roles import ROLES, Viewer, signed_on, viewer_of
from aggregator.console.server import Console
from edge_ldp.device.errors import ParameterError
from tests.aggregator.config.test_config import GOOD
from tests.aggregator.console.small_fleet import make_fleet, serving

WHO = {
    "o": "operator",
    "v": "viewer",
    "g": "viewer east",
    "p": "privacy-officer",
    "i": "installer",
    "m": "monitor",
}
SEEN = """
/ ov
/stream ovg
/devices oi
/device oi
/groups ov
/privacy op
/plans op
/audit op
/dossier op
/metrics om
/events ovgpim
/login ovgpim
/logout ovgpim
/sign-on ovgpim
/signed-on ovgpim
openapi.json ovgpim
status om
completeness o
query ovg
quantiles ovg
ranges ovg
sums ov
load-curve ovg
released o
theta ovp
plan ovp
devices oi
device oi
groups ov
streams ovp
audit op
announced ov
check op
plan/propose o
forecast ovp
dossier op
plan/message op
plan/certificate op
"""
MAY = {
    path if path.startswith("/") else f"/api/v1/{path}": {WHO[one] for one in letters}
    for path, letters in (line.split() for line in SEEN.split("\n") if line)
}


class NoDesks:
    """Nothing is asked."""

    fresh = None
    owner = None


async def echo(scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    one = scope["viewer"]
    body = f"{one.name} {one.role} {','.join(one.groups)}".encode()
    await send({"type": "http.response.body", "body": body})


def asked(guard: Guard, *requests: tuple[str, str], address: str = "", **more: Any) -> list[Any]:

    async def all_of_them() -> list[httpx.Response]:
        way = httpx.ASGITransport(guard, client=(address, 1))
        async with httpx.AsyncClient(transport=way, base_url="http://localhost") as client:
            return [await client.request(*one, **more) for one in requests]

    return asyncio.run(all_of_them())


def test_the_table_has_every_route() -> None:
    served: Any = Console("f", ConsoleTable(), NoDesks()).app()  # type: ignore[arg-type] # as it says
    paths = {route.path for route in served._app.routes}  # noqa: SLF001 (what is served)
    questions = {f"/api/v1/{name}" for name in QUESTIONS}
    assert paths - {"/static", "/api/v1/{name:path}"} | questions == {*MAY}
    assert {role.split()[0] for role in WHO.values()} == {*ROLES}


@pytest.mark.parametrize("role", WHO.values())
def test_AGG_47_what_a_role_may_not_see_is_refused_whatever_it_asks(role: str) -> None:
    async def owner(_token: str) -> Reply:
        return Reply(0, json.dumps(["eve", role]).encode(), "")

    guard, headers = Guard(echo, ConsoleTable(), owner), {"authorization": "Bearer x"}
    requests = [("POST" if one == "/logout" else "GET", f"{one}?group=east") for one in MAY]
    for path, told in zip(MAY, asked(guard, *requests, headers=headers), strict=True):
        if path == "/" and role not in MAY["/"]:
            assert told.status_code == 303
            assert role in MAY[told.headers["location"]]
        else:
            assert told.status_code == (200 if role in MAY[path] else 403), path
    (unknown,) = asked(guard, ("GET", "/api/v1/nothing"), headers=headers)
    assert unknown.status_code == (200 if role == "operator" else 403)


def test_AGG_47_a_viewer_of_groups_sees_no_other_group_and_not_the_whole() -> None:
    viewer = viewer_of("a", "viewer east west")
    api = "/api/v1/query"
    for query, allowed in (
        ("", False),
        ("group=", False),
        ("group=north", False),
        ("group=east&group=north", False),
        ("group=%65ast", True),
        ("stream=power&group=west", True),
    ):
        assert (viewer.refusal(api, query) is None) is allowed, query
    assert viewer.elsewhere("/stream", "by=day&group=*") == "/stream?by=day&group=east"
    assert viewer.elsewhere("/stream", "group=west") is None
    assert viewer.refusal("/groups", "group=east") is not None


@pytest.mark.parametrize("text", ["", "boss", "operator east", "Viewer"])
def test_a_role_that_is_none_is_refused(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ParameterError, match="one of operator, viewer"):
        viewer_of("a", text)
    lines = f'[console.sign_on]\nproxy = "127.0.0.1"\nuser = "X-User"\nroles = {{ a = "{text}" }}\n'
    fleet = make_fleet(tmp_path, console=lines)
    assert main(["-c", str(fleet.file)]) == 2
    assert "console.sign_on.roles.a: expected one of operator, viewer" in capsys.readouterr().err


def test_a_token_is_of_a_role_and_of_groups(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = make_fleet(tmp_path, console=f'tokens_file = "{tmp_path / "tokens"}"')
    words = ["tokens", "make", "-c", str(fleet.file)]
    assert main([*words, "eve", "--role", "viewer", "--group", "east", "--group", "west"]) == 0
    assert main([*words, "bob", "--group", "east"]) == 2
    capsys.readouterr()
    assert main(["tokens", "list", "-c", str(fleet.file), "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["tokens"]
    assert (one["name"], one["role"]) == ("eve", "viewer east west")


SIGN_ON = SignOnTable(
    "10.0.0.7", "X-User", {"grid": "operator", "east": "viewer east", "*": "viewer"}, "X-Groups"
)


@pytest.mark.parametrize(
    ("address", "headers", "told"),
    [
        ("10.0.0.7", [("x-user", "eve"), ("x-groups", "staff, grid")], "eve operator "),
        ("10.0.0.7", [("x-user", "eve"), ("x-groups", "east,grid")], "eve operator "),
        ("10.0.0.7", [("x-user", "eve"), ("x-groups", "staff")], "eve viewer "),
        ("10.0.0.7", [("x-user", "eve")], "eve viewer "),
        ("10.0.0.7", [("x-groups", "grid")], 403),
        ("10.0.0.7", [("x-user", "")], 403),
        ("10.0.0.7", [("x-user", "eve"), ("x-user", "bob")], 403),
        ("10.0.0.8", [("x-user", "eve"), ("x-groups", "grid")], 403),
        ("10.0.0.8", [("x-groups", "grid")], 403),
        ("10.0.0.7", [], 401),
        ("10.0.0.8", [], 401),
    ],
)
def test_AGG_45_a_proxy_alone_says_who_asks(
    address: str, headers: list[tuple[str, str]], told: str | int
) -> None:
    guard = Guard(echo, ConsoleTable(sign_on=SIGN_ON), None)

    (found,) = asked(guard, ("GET", "/api/v1/theta"), address=address, headers=headers)
    assert (found.text if found.status_code == 200 else found.status_code) == told


def test_AGG_45_a_users_name_is_no_list_of_names() -> None:
    table = SignOnTable("10.0.0.7", "X-User", {"grid": "operator", "o, p": "viewer"})
    for user, role in (("o, p", "viewer"), ("grid", "operator"), ("eve, grid", None)):
        found = signed_on(table, {"x-user": user}, "10.0.0.7")
        assert (found.role if isinstance(found, Viewer) else None) == role


def test_a_file_in_the_place_of_the_socket_stays(tmp_path: Path) -> None:
    place = tmp_path / "kept"
    place.write_text("mine")
    sign_on = '[console.sign_on]\nproxy = "unix"\nuser = "X-User"\nroles = {}\n'
    fleet = make_fleet(tmp_path, console=f'listen = "{place}"\n{sign_on}')
    assert main(["-c", str(fleet.file)]) == 2
    assert place.read_text() == "mine"


def test_AGG_45_at_a_socket_it_is_who_may_enter(tmp_path: Path) -> None:
    place = tmp_path / "s"
    lines = f'listen = "{place}"\nhosts = ["console"]\n[console.sign_on]\n'
    lines += 'proxy = "unix"\nuser = "X-User"\nroles = { eve = "installer" }\n'
    fleet = make_fleet(tmp_path, console=lines)
    with serving(fleet) as (address, _):
        assert address == str(place)
        assert place.stat().st_mode & 0o777 == 0o660
        way = httpx.HTTPTransport(uds=address)
        with httpx.Client(transport=way, base_url="http://console", timeout=300) as client:
            assert client.get("/devices").status_code == 303
            client.headers["x-user"] = "eve"
            page = client.get("/devices")
            assert page.status_code == 200
            assert 'href="/devices"' in page.text
            assert 'href="/stream"' not in page.text
            assert client.get("/stream").status_code == 403
            client.headers["x-user"] = "bob"
            assert client.get("/devices").status_code == 403


@pytest.mark.parametrize(
    ("listen", "proxy"), list(product(["127.0.0.1", "/run/s"], ["::1", "unix"]))
)
def test_a_proxy_is_where_the_console_listens(listen: str, proxy: str) -> None:
    text = f'{GOOD}[console]\nlisten = "{listen}"\n[console.sign_on]\nproxy = "{proxy}"\n'
    text += 'user = "X-User"\nroles = {}\n'
    if (proxy == "unix") == listen.startswith("/"):
        assert parse_config(text, "f").console.sign_on is not None
    else:
        with pytest.raises(ConfigError, match=r"console\.sign_on\.proxy"):
            parse_config(text, "f")
