"""Who breaks into a process of the console: no key is there, nothing is open to write."""

import ctypes
import json
import os
import re
import signal
import socket
import stat
import subprocess
from base64 import b64decode
from pathlib import Path
from typing import Any

import httpx

from aggregator.enrolment.tokens import Tokens
from aggregator.plans.keys import make_key
from tests import needs
from tests.aggregator.console.small_fleet import (
    Fleet,
    add_plans,
    add_reports,
    make_fleet,
    serving_alone,
)
from tests.processes import below

PATHS = ("/", "/stream", "/devices", "/privacy", "/plans", "/dossier", "/metrics", "/api/v1/status")
NETWORKS, SIGNALS = 4, 6  # versions of Landlock that know of them
PASSWORD = "of-the-broker-and-nobody-elses"  # noqa: S105 (a test's)
CLIENTS = "of-the-one-that-asks-the-provider"


def _with_secrets(place: Path) -> tuple[Fleet, list[bytes]]:
    """Return a fleet whose configuration names a key and a password, and what they are."""
    key, password = place / "plan.key", place / "broker.password"
    make_key(key)
    password.write_text(PASSWORD)
    password.chmod(0o600)
    clients = place / "oidc.secret"
    clients.write_text(CLIENTS)
    clients.chmod(0o600)
    oidc = f'issuer = "http://127.0.0.1:1"\nclient_id = "me"\nsecret_file = "{clients}"\n'
    oidc += 'address = "http://127.0.0.1"\nroles = {}'
    lines = f'tokens_file = "{place / "tokens"}"\n[console.oidc]\n{oidc}\n'
    lines += f'[plans]\nsigning_key_file = "{key}"'
    fleet = make_fleet(place, console=lines)
    login = f'[broker]\nusername = "me"\npassword_file = "{password}"'
    fleet.file.write_text(fleet.file.read_text().replace("[broker]", login))
    pem = key.read_bytes()
    body = b"".join(pem.splitlines()[1:-1])
    return fleet, [PASSWORD.encode(), body, b64decode(body)[-32:]]


def test_no_key_and_no_password_is_in_the_memory_of_any_process(tmp_path: Path) -> None:
    fleet, secrets = _with_secrets(tmp_path)
    add_reports(fleet, add_plans(fleet, 1), {"north": 12}, 1)
    token = Tokens(tmp_path / "tokens").make("alice", 1, "operator")
    login = {"authorization": f"Bearer {token}"}
    with serving_alone(fleet) as (address, process):
        with httpx.Client(base_url=address, timeout=300, headers=login) as client:
            for path in PATHS:
                assert client.get(path).status_code == 200, path
        every = [process.pid, *below(process.pid)]
        assert len(every) > 1
        found = [_held(pid, [b"north-0003", CLIENTS.encode(), *secrets]) for pid in every]
    assert any(b"north-0003" in one for one in found)  # the control: what a page shows is found
    assert not [one for one in found if one & {*secrets}]
    asks = [one for one in found if CLIENTS.encode() in one]
    assert asks == [{CLIENTS.encode()}]  # who asks the provider has nothing of the store


def test_nothing_is_open_to_write_but_what_sqlite_reads_by(tmp_path: Path) -> None:
    """That is the -wal and the -shm, where the directory lets it: under the unit it does not."""
    fleet = make_fleet(tmp_path)
    add_plans(fleet, 1)
    with (
        serving_alone(fleet) as (address, process),
        httpx.Client(base_url=address, timeout=300) as client,
    ):
        for path in PATHS:
            assert client.get(path).status_code == 200, path
        opened = {
            name for pid in (process.pid, *below(process.pid)) for name in _files_to_write(pid)
        }
        listed = {path.name for path in tmp_path.iterdir()}
    ours = {str(Path(f"/proc/self/fd/{at}").readlink()) for at in (0, 1, 2)}  # it inherits these
    assert opened - ours <= {str(tmp_path / f"a.db{end}") for end in ("-wal", "-shm")}
    assert listed <= {"aggregator.toml", *(f"a.db{end}" for end in ("", ".lock", "-wal", "-shm"))}


# in the place of what an intruder runs: what it gets at of that which a line of stdin names
INTRUDER = """
import ctypes, json, os, signal, socket, sys

def opened(name):
    with open(name, "rb") as file:
        return bool(file.read(1))

def traced(pid):
    if ctypes.CDLL(None).ptrace(16, pid, None, None):  # PTRACE_ATTACH
        raise PermissionError
    return True

def connected(port):
    with socket.create_connection(("127.0.0.1", port)):
        return True

ACTS = {
    "open": opened, "list": os.listdir, "trace": traced, "connect": connected,
    "make": lambda name: os.mkdir(name) is None, "signal": lambda pid: os.kill(pid, 0) is None,
}

def tries(_number, _frame):
    got = []
    for act, what in json.loads(sys.stdin.readline()):
        try:
            got += [act] if ACTS[act](what) else []
        except PermissionError:
            pass
    print(json.dumps(got), flush=True)

signal.signal(signal.SIGUSR1, tries)
"""


def test_code_in_the_process_that_others_reach_gets_at_nothing_but_answers(tmp_path: Path) -> None:
    """It runs there, between requests; the control is the same code in one that answers."""
    version = ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1)
    if version < NETWORKS:
        needs.missing("Landlock of Linux 6.7")
    fleet = make_fleet(tmp_path, console=f'tokens_file = "{tmp_path / "tokens"}"')
    add_reports(fleet, add_plans(fleet, 1), {"north": 12}, 1)
    token = Tokens(tmp_path / "tokens").make("alice", 1, "operator")
    (tmp_path / "code").mkdir()
    (tmp_path / "code/sitecustomize.py").write_text(INTRUDER)
    path = os.pathsep.join([str(tmp_path / "code"), os.environ.get("PYTHONPATH", "")])
    with (
        serving_alone(fleet, PYTHONPATH=path) as (address, process),
        socket.create_server(("127.0.0.1", 0)) as other,
        httpx.Client(base_url=address, timeout=300) as client,
    ):
        client.headers["authorization"] = f"Bearer {token}"
        assert all(client.get(path).status_code == 200 for path in PATHS)
        web, house, *answering = process.pid, *below(process.pid)
        store = str(fleet.config.store.path)
        wanted = [
            ("list", str(tmp_path)),
            *(("open", name) for name in (store, str(tmp_path / "tokens"), str(fleet.file))),
            ("make", str(tmp_path / "new")),
            ("connect", other.getsockname()[1]),
        ]
        reached = [("open", f"/proc/{answering[0]}/mem"), ("trace", house)]
        reached += [("signal", house)] if version >= SIGNALS else []
        assert _tried(process, web, [*wanted, *reached]) == []
        assert _tried(process, answering[0], wanted) == [act for act, _ in wanted]
        assert all(client.get(path).status_code == 200 for path in PATHS)
        opened = {pid: {str(one.readlink()) for one in _links(pid)} for pid in (web, *answering)}
        assert store not in opened[web]
        assert store not in Path(f"/proc/{web}/maps").read_text()
        assert any(store in opened[pid] for pid in answering)


def _tried(process: subprocess.Popen[str], pid: int, wanted: list[tuple[str, Any]]) -> Any:
    """Return what code in a process of the console gets at of what is wanted."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(wanted) + "\n")
    process.stdin.flush()
    os.kill(pid, signal.SIGUSR1)
    return json.loads(process.stdout.readline())


def _links(pid: int) -> list[Path]:
    return [*Path(f"/proc/{pid}/fd").iterdir()]


def _held(pid: int, wanted: list[bytes]) -> set[bytes]:
    """Return what of it lies anywhere in a process's memory that it can write."""
    found: set[bytes] = set()
    maps = Path(f"/proc/{pid}/maps").read_text()
    with Path(f"/proc/{pid}/mem").open("rb", 0) as memory:
        for first, last in re.findall(r"^(\w+)-(\w+) rw", maps, re.MULTILINE):
            try:
                memory.seek(int(first, 16))
                text = memory.read(int(last, 16) - int(first, 16))
            except (OSError, OverflowError):  # gone since, or the kernel's own
                continue
            found |= {one for one in wanted if one in text}
    return found


def _files_to_write(pid: int) -> list[str]:
    """Return the files, not pipes or sockets, that a process has open to write."""
    found = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        info = Path(f"/proc/{pid}/fdinfo/{link.name}").read_text()
        flags = re.search(r"flags:\s*(\d+)", info)
        is_file = stat.S_ISREG(link.stat().st_mode)
        if is_file and flags is not None and int(flags[1], 8) & os.O_ACCMODE:
            found.append(str(link.readlink()))
    return found
