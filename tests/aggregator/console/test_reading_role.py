"""PostgreSQL: the console's role reads what pages show, and nothing else; it writes nothing."""

from collections import Counter
from contextlib import closing
from itertools import product
from pathlib import Path

import httpx
import numpy as np
import psycopg
import pytest
from psycopg import errors
from psycopg.sql import SQL, Identifier

from aggregator.store.forms import pack_pairs
from aggregator.store.postgres.reader import PostgresReader
from aggregator.store.rows import HeldRow
from edge_ldp.device.frame import encode
from edge_ldp.protocol.messages import topic
from edge_ldp.service.mqtt import Message
from tests import needs
from tests.aggregator.console.small_fleet import (
    END_S,
    SLOT_S,
    add_plans,
    add_reports,
    make_fleet,
    send,
    serving,
)
from tests.postgres import PostgresServer
from tests.processes import run_told

SCRIPT = Path(__file__).parents[3] / "config" / "postgres-readonly.sql"

MOVES = ("backup", "restore")


@pytest.mark.slow
def test_the_role_reads_and_cannot_write(server: PostgresServer, tmp_path: Path) -> None:
    url = server.new_database()
    own = url.replace("postgres@", "ldp_console@")
    fleet = make_fleet(tmp_path, store=f'url = "{url}"', least=1, console=f'url = "{own}"')
    psql = [needs.program("psql"), url, "-v", "reader=ldp_console", "-f", str(SCRIPT)]
    for _ in range(2):  # again, as after an upgrade
        _run(psql)
    plan, at = add_plans(fleet, 1), ["-c", str(fleet.file)]
    add_reports(fleet, plan, {"north": 3}, 1, slots=50)
    fleet.ask(["aggregator", "devices", "quarantine", *at, "north-0001"])
    slots = range(END_S // SLOT_S - 20, END_S // SLOT_S - 10)
    later = encode(1, 2, plan.epoch, slots, [3] * 9 + [40])
    send(fleet, plan, [Message(topic("demo", "report", "north-0001"), later)])
    assert [row["held"] for row in fleet.json("completeness")["devices"]] == [0, 10, 0]
    with serving(fleet) as (address, _):
        for name in ("query", "completeness", "status", "announced", "plan/propose"):
            found = httpx.get(f"{address}/api/v1/{name}").json()
            assert found == fleet.json(*name.split("/"))
        for path in ("/", "/stream", "/devices", "/privacy", "/plans", "/dossier", "/metrics"):
            assert httpx.get(address + path).status_code == 200, path
    with psycopg.connect(own, autocommit=True) as db:
        for table in ("watched", "enrolled", "held_presence"):
            with pytest.raises(errors.InsufficientPrivilege):
                db.execute(SQL("SELECT * FROM {}").format(Identifier(table)))
        with pytest.raises(errors.InsufficientPrivilege):
            db.execute("SELECT * FROM public.held_counts")
        db.execute("SET default_transaction_read_only = off")
        tables = [
            name
            for (name,) in db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        ]
        assert len(tables) > 15
        for table in tables:
            with pytest.raises(errors.InsufficientPrivilege):
                db.execute(SQL("DELETE FROM {}").format(Identifier("public", table)))
        with pytest.raises(errors.InsufficientPrivilege):
            db.execute("CREATE TABLE mine (x int)")
    backup = str(tmp_path / "backup")
    assert [code for code, _ in fleet.ask(*(["aggregator", w, *at, backup] for w in MOVES))] == [
        0,
        0,
    ]
    _run(psql)
    with serving(fleet) as (address, _):
        assert httpx.get(f"{address}/api/v1/completeness").json() == fleet.json("completeness")


@pytest.mark.slow
def test_of_devices_in_quarantine_the_role_sees_how_many_reports_and_no_code(
    server: PostgresServer, tmp_path: Path
) -> None:
    """Histograms of every form, added up by SQL and by numpy."""
    url = server.new_database()
    make_fleet(tmp_path, store=f'url = "{url}"')
    role = f"reader_{tmp_path.name[-8:]}".replace("-", "_")  # roles are the server's
    _run([needs.program("psql"), url, "-v", f"reader={role}", "-f", str(SCRIPT)])
    rng = np.random.default_rng(7)
    with psycopg.connect(url, autocommit=True) as db:
        for at, (most, step) in enumerate(product((200, 60_000, 2**31, 2**40), (1, 900))):
            codes = np.arange(0, 40 * step, step, dtype=np.int64)
            counts = rng.integers(1, most, len(codes), endpoint=True)
            counts[-1] = most
            for bucket in (at, at + 100):
                made = (f"home-{at % 3}", bucket, pack_pairs(codes, counts))
                db.execute("INSERT INTO held_counts VALUES (%s, 1, 2, 0, %s, %s)", made)
        forms = db.execute("SELECT DISTINCT get_byte(pairs, 0) FROM held_counts ORDER BY 1")
        assert [form for (form,) in forms] == [0, 1, 2, 3, 16, 17, 18, 19]
    whole, told = map(_held, (url, url.replace("postgres@", f"{role}@")))
    sums: Counter[str] = Counter()
    for row in whole:
        sums[row.device] += int(row.counts.sum())
    assert {row.device: row.counts.tolist() for row in told} == {
        device: [total] for device, total in sums.items()
    }
    assert all((row.codes.tolist(), row.epoch, row.bucket) == ([0], 0, 0) for row in told)


def _held(url: str) -> list[HeldRow]:
    with closing(PostgresReader.open(url)) as reader:
        return reader.held_counts()


def _run(command: list[str]) -> None:
    done = run_told(command)
    assert done.returncode == 0, done.stderr
