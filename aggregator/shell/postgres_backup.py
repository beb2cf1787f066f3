"""Backups of a PostgreSQL store by the server's own pg_dump and pg_restore."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from aggregator.shell import postgres_schema as schema
from aggregator.shell.archive_spool import sync_directory
from aggregator.shell.postgres_reader import PostgresReader
from aggregator.shell.postgres_store import PostgresStore
from aggregator.shell.sqlite_backup import free_name
from aggregator.shell.store import StoreError

if TYPE_CHECKING:
    from aggregator.shell.sqlite_backup import GoingOn
    from aggregator.shell.store import PlanRow

DEBIAN = Path("/usr/lib/postgresql")
_TABLE = re.compile(r"CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?(\w+)")
_QUIET = ("-X", "-q", "-v", "ON_ERROR_STOP=1", "--single-transaction")


def back_up(url: str, password: str | None, target: Path) -> int:
    """Write a database's schema of ours into a file and return its size; it is there whole or not.

    One snapshot, so what is in it is one moment; workers write on meanwhile.
    """
    with closing(PostgresReader.open(url, password)) as reader:
        space = _space(reader)
    draft = target.with_name(target.name + ".new")
    options = ("--format=custom", "--no-owner", "--no-privileges", f"--schema={space}")
    try:
        _run("pg_dump", url, password, *options, f"--file={draft}")
        draft.chmod(0o640)
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        size = draft.stat().st_size
        draft.replace(target)
        sync_directory(target.absolute().parent)
    except OSError as exc:
        remedy = "name a file that can be written"
        raise StoreError(str(target), exc.strerror or str(exc), remedy) from exc
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    return size


def restore(
    url: str, password: str | None, source: Path, going_on: GoingOn
) -> tuple[list[PlanRow], Path | None]:
    """Put a backup in the place of what the database holds, if no worker runs.

    Tables are replaced in one transaction, the plans added in the next one: killed in between, do
    it again. Returns the plans added, and where what was replaced is kept.
    """
    if not source.exists():
        raise StoreError(str(source), "does not exist", "name a backup")
    store = PostgresStore(url, password)
    try:
        with store.reading() as db:  # we are the only writer from here on
            row = db.execute("SELECT to_regclass('edge_ldp_schema') IS NOT NULL").fetchone()
        ours = row == (True,)
        since: list[PlanRow] = []
        kept = None
        if ours:
            since, kept = _keep(store, url, password, source)
        _replace(url, password, source, _space(store), drops=ours)
        store.prepare()
        added = going_on(store, since)
        for row in sorted(added, key=lambda row: (row.stream, row.epoch)):
            store.add_plan(row)
    finally:
        store.close()
    return added, kept


def _keep(
    store: PostgresStore, url: str, password: str | None, source: Path
) -> tuple[list[PlanRow], Path]:
    kept = free_name(source.with_name(source.name + ".replaced"))
    since = store.plans()
    back_up(url, password, kept)
    return since, kept


def _replace(url: str, password: str | None, source: Path, space: str, *, drops: bool) -> None:
    """Drop our tables and make those of the backup, in one transaction."""
    steps = " ".join(statement for step in schema.STEPS.values() for statement in step)
    tables = ["edge_ldp_schema", *sorted(set(_TABLE.findall(steps)))]
    with TemporaryDirectory() as place:
        dropping, making = Path(place, "drop.sql"), Path(place, "make.sql")
        lines = [f"DROP TABLE IF EXISTS {table} CASCADE;\n" for table in tables if drops]
        dropping.write_text("".join(lines))
        options = ("--no-owner", "--no-privileges", f"--schema={space}", f"--file={making}")
        _run("pg_restore", None, None, *options, str(source))
        _run("psql", url, password, *_QUIET, "-f", str(dropping), "-f", str(making))


def _space(reader: PostgresReader) -> str:
    """Return the schema that our tables are in, or would be made in."""
    with reader.reading() as db:
        (space,) = db.execute("SELECT current_schema()").fetchone() or ("public",)
    return str(space)


def _run(program: str, url: str | None, password: str | None, *options: str) -> None:
    """Run one of PostgreSQL's programs; raises StoreError in its words."""
    where = [] if url is None else [f"--dbname={url}"]
    secret = {} if password is None else {"PGPASSWORD": password}
    done = subprocess.run(  # noqa: S603 (a program of PostgreSQL's, our own options)
        [_find(program), *where, *options],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **secret},
    )
    if done.returncode:
        said = " ".join(done.stderr.split())[:500]
        raise StoreError(url or options[-1], f"{program} failed ({said})", "nothing was changed")


def _find(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        versions = sorted(DEBIAN.glob(f"*/bin/{program}"), key=lambda path: int(path.parts[-3]))
        if not versions:
            remedy = "apt-get install postgresql-client, of the server's version"
            raise StoreError(program, "is not installed", remedy)
        found = str(versions[-1])
    return found
