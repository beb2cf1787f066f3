"""PostgreSQL: the console's role reads what pages show, and nothing else; it writes nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import psycopg
import pytest
from psycopg import errors
from psycopg.sql import SQL, Identifier

from tests import needs
from tests.aggregator.console.small_fleet import add_plans, add_reports, make_fleet, serving

if TYPE_CHECKING:
    from tests.postgres import PostgresServer

SCRIPT = Path(__file__).parents[3] / "config" / "postgres-readonly.sql"


@pytest.mark.slow
def test_the_role_reads_and_cannot_write(server: PostgresServer, tmp_path: Path) -> None:
    url = server.new_database()
    own = url.replace("postgres@", "ldp_console@")
    fleet = make_fleet(tmp_path, store=f'url = "{url}"', least=1, console=f'url = "{own}"')
    psql = [needs.program("psql"), url, "-v", "reader=ldp_console", "-f", str(SCRIPT)]
    for _ in range(2):  # again, as after an upgrade
        done = subprocess.run(psql, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    add_reports(fleet, add_plans(fleet, 1), {"north": 3}, 1)
    with serving(fleet) as (address, _):
        for name in ("query", "completeness", "status"):
            assert httpx.get(f"{address}/api/v1/{name}").json() == fleet.json(name)
        for path in ("/", "/stream", "/devices", "/privacy", "/plans", "/dossier", "/metrics"):
            assert httpx.get(address + path).status_code == 200, path
    with psycopg.connect(own, autocommit=True) as db:
        for table in ("watched", "enrolled"):
            with pytest.raises(errors.InsufficientPrivilege):
                db.execute(SQL("SELECT * FROM {}").format(Identifier(table)))
        db.execute("SET default_transaction_read_only = off")
        tables = [
            name
            for (name,) in db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        ]
        assert len(tables) > 15
        for table in tables:
            with pytest.raises(errors.InsufficientPrivilege):
                db.execute(SQL("DELETE FROM {}").format(Identifier(table)))
        with pytest.raises(errors.InsufficientPrivilege):
            db.execute("CREATE TABLE mine (x int)")
