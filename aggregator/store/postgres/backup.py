"""Backups of a PostgreSQL store by the server's own pg_dump and pg_restore."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from aggregator.archive.directory import replacing
from aggregator.errors import StoreError
from aggregator.store.postgres.flush import add_audit, add_plan
from aggregator.store.postgres.reader import PostgresReader
from aggregator.store.postgres.schema import STEPS
from aggregator.store.postgres.store import PostgresStore
from aggregator.store.postgres.upgrade import upgrade
from aggregator.store.sqlite.backup import GoingOn, Since, free_name

DEBIAN = Path("/usr/lib/postgresql")
_ENTRY = re.compile(r"\d+; \d+ \d+ ([A-Z ]*[A-Z]) (.*)")
_RELATIONS = ("TABLE", "TABLE DATA", "TABLE ATTACH", "INDEX", "INDEX ATTACH", "SCHEMA", "COMMENT")
_PARTS = ("CONSTRAINT", "FK CONSTRAINT", "DEFAULT", "SEQUENCE", "SEQUENCE SET", "SEQUENCE OWNED BY")
_OURS = {*_RELATIONS, *_PARTS}
_TABLE = re.compile(r"CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?(\w+)")


def back_up(url: str, password: str | None, target: Path) -> int:
    """Write a database's schema of ours into a file and return its size; it is there whole or not.

    One snapshot, so what is in it is one moment; workers write on meanwhile.
    """
    with closing(PostgresReader.open(url, password)) as reader:
        space = _space(reader)
    options = ("--format=custom", "--no-owner", "--no-privileges", f"--schema={space}")
    try:
        with replacing(target) as draft:
            _run("pg_dump", url, password, *options, f"--file={draft}")
        return target.stat().st_size
    except OSError as exc:
        remedy = "name a file that can be written"
        raise StoreError(str(target), exc.strerror or str(exc), remedy) from exc


def restore(
    url: str, password: str | None, source: Path, going_on: GoingOn
) -> tuple[Since, Path | None]:
    """Put a backup in the place of what the database holds, if no worker runs.

    Tables and the plans added to them in one transaction: killed at any moment, the database holds
    what it held, or what it shall. Returns what was added, and where what was replaced is kept.
    """
    if not source.exists():
        raise StoreError(str(source), "does not exist", "name a backup")
    _refuse_foreign(source)
    store = PostgresStore(url, password)
    try:
        with store.reading() as db:  # we are the only writer from here on
            row = db.execute("SELECT to_regclass('edge_ldp_schema') IS NOT NULL").fetchone()
        is_ours = row == (True,)
        since, kept = Since(), None
        if is_ours:
            since, kept = _keep(store, url, password, source)
        with TemporaryDirectory() as place:
            script = Path(place, "make.sql")
            where = ("--no-owner", "--no-privileges", f"--schema={_space(store)}")
            _run("pg_restore", None, None, *where, f"--file={script}", str(source))

            def replace(db: psycopg.Connection[Any]) -> Since:
                _make_anew(db, script, drops=is_ours)
                upgrade(db, url)
                added = going_on(store, since)
                for row in sorted(added.plans, key=lambda row: (row.stream, row.epoch)):
                    add_plan(db, url, row)
                add_audit(db, added.orders)
                return added

            added = store.in_transaction(replace)
    finally:
        store.close()
    return added, kept


def _refuse_foreign(source: Path) -> None:
    """Raise StoreError for triggers, views, functions and whatever else no store of ours has."""
    for line in _run("pg_restore", None, None, "--list", str(source)).splitlines():
        entry = _ENTRY.match(line)
        if entry and entry[1] not in _OURS:
            reason = f"holds a {entry[1].lower()} ({entry[2]!r}), and no store has one"
            raise StoreError(str(source), reason, "the store is as it was: name another backup")


def _keep(store: PostgresStore, url: str, password: str | None, source: Path) -> tuple[Since, Path]:
    kept = free_name(source.with_name(source.name + ".replaced"))
    back_up(url, password, kept)
    return Since(store.plans(), store.audit()), kept


def _make_anew(db: psycopg.Connection[Any], script: Path, *, drops: bool) -> None:
    """Drop our tables and make those of the backup, in the transaction that runs."""
    steps = " ".join(statement for step in STEPS.values() for statement in step)
    if drops:
        for table in ("edge_ldp_schema", *sorted(set(_TABLE.findall(steps)))):
            db.execute(f"DROP TABLE IF EXISTS {table} CASCADE".encode())
    (path,) = db.execute("SHOW search_path").fetchone() or ("public",)
    with script.open("rb") as lines:
        _run_script(db, lines)
    db.execute("SELECT set_config('search_path', %s, false)", (path,))  # which it emptied


def _run_script(db: psycopg.Connection[Any], lines: Iterator[bytes]) -> None:
    """Run what pg_restore wrote: statements, rows after a COPY, and commands of psql's own."""
    statements: list[bytes] = []
    for line in lines:
        if line.startswith(b"COPY ") and line.endswith(b" FROM stdin;\n"):
            db.execute(b"".join(statements))
            statements.clear()
            with db.cursor() as cursor, cursor.copy(line) as rows:
                for row in takewhile(lambda row: row != b"\\.\n", lines):
                    rows.write(row)
        elif not line.startswith(b"\\"):
            statements.append(line)
    db.execute(b"".join(statements))


def _space(reader: PostgresReader) -> str:
    """Return the schema that our tables are in, or would be made in."""
    with reader.reading() as db:
        (space,) = db.execute("SELECT current_schema()").fetchone() or ("public",)
    return str(space)


def _run(program: str, url: str | None, password: str | None, *options: str) -> str:
    """Run one of PostgreSQL's programs and return what it says; raises StoreError in its words."""
    where = [] if url is None else [f"--dbname={url}"]
    secret = {} if password is None else {"PGPASSWORD": password}
    process = subprocess.run(  # noqa: S603 (a program of PostgreSQL's, our own options)
        [_find(program), *where, *options],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **secret},
    )
    if process.returncode:
        output = " ".join(process.stderr.split())[:500]
        raise StoreError(url or options[-1], f"{program} failed ({output})", "nothing was changed")
    return process.stdout


def _find(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        versions = sorted(DEBIAN.glob(f"*/bin/{program}"), key=lambda path: int(path.parts[-3]))
        if not versions:
            remedy = "apt-get install postgresql-client, of the server's version"
            raise StoreError(program, "is not installed", remedy)
        found = str(versions[-1])
    return found
