"""Answers in tables that others read (config/postgres-answers.sql): no part of the store itself."""

from collections.abc import Iterable, Mapping

import psycopg
from psycopg import errors

from aggregator.errors import StoreError
from aggregator.store.postgres.link import connect, translate

ENERGIES = ("energy_kwh", "energy_kwh_low", "energy_kwh_high")
KEYS = ("stream", "group", "unit", "from_s", "mean", "low", "high", *ENERGIES, "withheld")
COLUMNS = {  # of each table, as answers name them
    "spans": (*KEYS, "length", "n", "device_slots"),
    "periods": (
        *(*KEYS, "to_s", "homes", "slots", "coverage"),
        *("full_kwh", "full_kwh_low", "full_kwh_high"),
        *("volume_m3", "volume_m3_low", "volume_m3_high"),
        *("full_m3", "full_m3_low", "full_m3_high"),
    ),
}
NAMES = {"group": '"group"', "from_s": "from_at", "to_s": "to_at"}
REMOVE = {
    "spans": "from_at >= to_timestamp(%s) AND from_at < to_timestamp(%s)",
    "periods": "to_at > to_timestamp(%s) AND to_at <= to_timestamp(%s)",
}
SCRIPT = "run config/postgres-answers.sql in this database, as the owner of its tables"


def write_answers(
    url: str,
    password: str | None,
    where: str,
    spans: Iterable[tuple[str, int, int]],
    tables: Mapping[str, Iterable[Mapping[str, object]]],
) -> None:
    """Put the rows of each table in the place of all of the spans (stream, first second, end).

    In one transaction, so that nobody finds half of a day. Raises StoreError.
    """
    spans = list(spans)
    try:
        with connect(url, password) as db, db.transaction(), db.cursor() as cursor:
            for table, told in tables.items():
                of = f"edge_ldp_answers.{table}"  # our own words, as all that follows
                cursor.executemany(f"DELETE FROM {of} WHERE stream = %s AND {REMOVE[table]}", spans)  # noqa: S608
                columns = COLUMNS[table]
                names = ", ".join(NAMES.get(name, name) for name in columns)
                places = ", ".join(
                    "to_timestamp(%s)" if name in {"from_s", "to_s"} else "%s" for name in columns
                )
                add = f"INSERT INTO {of} ({names}) VALUES ({places})"  # noqa: S608
                cursor.executemany(add, [[row[name] for name in columns] for row in told])
    except (errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName) as exc:
        raise StoreError(where, "has no such tables for answers", SCRIPT) from exc
    except psycopg.Error as exc:
        raise translate(exc, where, lost=False) from exc
