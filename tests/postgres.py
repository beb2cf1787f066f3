"""A private PostgreSQL server for tests: its own directory, a socket in it, no port."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import psycopg
import pytest

from tests import needs

DEBIAN = Path("/usr/lib/postgresql")
START_S = 300


def find_postgres() -> Path:
    """Return the folder of the server's programs."""
    versions = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return versions[-1].parent if versions else Path(needs.program("initdb")).parent


class PostgresServer:
    """One cluster in a short-lived folder; `crash` is an immediate shutdown.

    Without `durable` it never waits for the disk: what a crash of the server alone leaves is the
    same, only the machine's would lose it. `of`: a copy of a running server, which follows it.
    """

    def __init__(self, *, durable: bool = False, of: "PostgresServer | None" = None) -> None:
        self._fsync = "on" if durable else "off"
        self._programs = find_postgres()
        self.directory = Path(mkdtemp(prefix="edge-ldp-pg-"))
        self._as_user: list[str] = []
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(self.directory, "postgres")
            drop = ["--reuid=postgres", "--regid=postgres", "--clear-groups"]
            self._as_user = ["setpriv", *drop, "env", f"HOME={self.directory}"]
        self._made = 0
        user = "-U", "postgres"
        if of is None:
            form = "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"
            self._run("initdb", "-A", "trust", *user, *form)
        else:
            self._run("pg_basebackup", *user, "-h", str(of.directory), "-R", "-c", "fast")

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        options = f"-c listen_addresses='' -c unix_socket_directories={self.directory}"
        more = f"-c fsync={self._fsync} -c max_connections=40 -c shared_buffers=64MB"
        self._run(
            "pg_ctl", "-w", "-l", str(self.directory / "log"), "-o", f"{options} {more}", "start"
        )

    def crash(self) -> None:
        """End it at once; what was not committed is gone."""
        self._run("pg_ctl", "-w", "-m", "immediate", "stop")

    def set(self, name: str, value: str) -> None:
        """Give a setting a value that stays."""
        self.ask(f"ALTER SYSTEM SET {name} = '{value}'")
        self.ask("SELECT pg_reload_conf()")

    def promote(self) -> None:
        """End following: it takes writers."""
        self._run("pg_ctl", "-w", "promote")

    def go_back(self, point: str, restore: str) -> None:
        """Start a copy, with what was archived up to a named point; `restore`: restore_command."""
        data = self.directory / "data"
        (data / "standby.signal").rename(data / "recovery.signal")
        with (data / "postgresql.auto.conf").open("a") as conf:
            conf.write(f"restore_command = '{restore}'\nrecovery_target_name = '{point}'\n")
            conf.write("recovery_target_action = 'promote'\narchive_mode = 'off'\n")
        self.start()
        while self.ask("SELECT pg_is_in_recovery()") != [(False,)]:
            time.sleep(0.01)

    def remove(self) -> None:
        """End it and delete what it kept."""
        if (self.directory / "data" / "postmaster.pid").exists():
            self.crash()
        # a gigabyte in 34,000 files: no test's time is spent on it
        deleting = ["sh", "-c", 'rm -rf "$0" &', str(self.directory)]
        subprocess.run(deleting, check=True, start_new_session=True)

    def new_database(self) -> str:
        """Make an empty database; return its URL."""
        self._made += 1
        name = f"fleet{self._made}"
        self.ask(f"CREATE DATABASE {name} TEMPLATE template0")
        return self.url(name)

    def url(self, name: str) -> str:
        """Return the URL of a database."""
        return f"postgresql://postgres@/{name}?host={self.directory}"

    def ask(self, query: str, name: str = "postgres") -> list[tuple[Any, ...]]:
        """Run a statement as its owner; return its rows, if it gives any."""
        with psycopg.connect(self.url(name), autocommit=True) as db:
            done = db.execute(query.encode())
            return done.fetchall() if done.description else []

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._as_user, str(self._programs / program), "-D", f"{self.directory}/data"]
        said = self.directory / "said"  # not a pipe: the server would hold it open
        with said.open("ab") as out:
            done = subprocess.run(
                [*command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=self.directory,
                timeout=START_S,
                check=False,
            )
        if done.returncode:
            pytest.fail(f"{program} failed: {said.read_text()}")


@contextmanager
def running_postgres(*, durable: bool = False) -> Iterator[PostgresServer]:
    """Give a running server, and remove it afterwards."""
    server = PostgresServer(durable=durable)
    try:
        server.start()
        yield server
    finally:
        server.remove()
