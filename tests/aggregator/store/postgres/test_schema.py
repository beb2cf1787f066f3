"""What a database sharded by device needs of the tables and statements, as plain SQL."""

import pytest

from aggregator.store.flush_ids import DAYS
from aggregator.store.postgres import statements as schema
from aggregator.store.postgres.store import PostgresStore
from tests.postgres import PostgresServer

# sharded by device, as Citus does: copied to every node, or left on the one that is asked
WHOLE = {
    *("audit", "count_deltas", "counts", "edge_ldp_schema", "enrolled", "facts"),
    *("flushes", "groups"),
    *("looks", "plans", "presence", "presence_deltas", "refused", "refused_deltas"),
    *("period_totals", "released_designs", "rolled", "spooled", "sums"),
    *(f"flushes_{day}" for day in range(DAYS)),
}
SHARDED = {
    *("devices", "held_counts", "held_presence", "marks", "records"),
    *("period_sums", "released_chunks", "released_values", "watched"),
}
_TABLES = """SELECT table_name, bool_or(column_name = 'device') FROM information_schema.columns
    WHERE table_schema = 'public' GROUP BY 1"""
_KEYS = """SELECT rel.relname, array_agg(att.attname::text) FROM pg_index AS one
    JOIN pg_class AS rel ON rel.oid = one.indrelid
    JOIN pg_attribute AS att ON att.attrelid = rel.oid AND att.attnum = ANY(one.indkey)
    WHERE one.indisunique AND rel.relnamespace = 'public'::regnamespace
    GROUP BY one.indexrelid, rel.relname"""
_LOCKING = {  # table, and how each row is found by its device
    schema.LOCK_RECORDS: "(device, stream) IN",
    schema.PUT_RECORDS: "old.device = new.device",
    schema.GET_WATCHED: "(device, stream) IN",
    schema.GET_DEVICES: "device = ANY",
    schema.HOLD_DEVICES: "device = ANY",
    schema.LOCK_HELD: "device = %s",
}


@pytest.fixture
def url(server: PostgresServer) -> str:
    url = server.new_database()
    PostgresStore.open(url).close()
    return url


def name(url: str) -> str:
    return url.split("@/")[1].split("?", maxsplit=1)[0]


def test_a_table_is_sharded_by_device_or_listed_as_whole(server: PostgresServer, url: str) -> None:
    found = dict(server.ask(_TABLES, name(url)))
    assert {table for table, has_device in found.items() if has_device} == SHARDED
    assert {table for table, has_device in found.items() if not has_device} == WHOLE


def test_every_unique_key_of_a_sharded_table_has_the_device(
    server: PostgresServer, url: str
) -> None:
    keys = [(table, key) for table, key in server.ask(_KEYS, name(url)) if table in SHARDED]
    assert {table for table, _ in keys} == SHARDED
    assert all("device" in key for _, key in keys)


@pytest.mark.parametrize("statement", _LOCKING)
def test_rows_that_a_flush_locks_are_found_by_their_device(statement: str) -> None:
    assert _LOCKING[statement] in statement


def test_a_flush_finds_its_records_by_the_index_however_many_there_are(
    server: PostgresServer, url: str
) -> None:
    database = name(url)
    server.ask(
        """INSERT INTO records SELECT 'home-' || n, 1, '\\x00' FROM generate_series(1, 20000) AS n;
        ANALYZE records""",
        database,
    )
    given = "ARRAY['home-7', 'home-19000']", "ARRAY[1, 1]", "ARRAY['\\x01'::bytea, '\\x02'::bytea]"
    for statement in (schema.LOCK_RECORDS, schema.PUT_RECORDS):
        query = statement
        for value in given[: statement.count("%b")]:
            query = query.replace("%b", value, 1)
        plan = "\n".join(line for (line,) in server.ask(f"EXPLAIN {query}", database))
        assert "records_pkey" in plan
        assert "Seq Scan on records" not in plan
