"""Answers in tables that others read (config/postgres-answers.sql): no part of the store itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
from psycopg import errors

from aggregator.errors import StoreError
from aggregator.store.postgres.link import connect, translate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

COLUMNS = (
    *("stream", "group", "length", "from_s", "unit", "n", "device_slots", "mean", "low", "high"),
    *("energy_kwh", "energy_kwh_low", "energy_kwh_high", "withheld"),
)
_NAMES = ", ".join('"group"' if name == "group" else name for name in COLUMNS).replace(
    "from_s", "from_at"
)
_PLACES = ", ".join("to_timestamp(%s)" if name == "from_s" else "%s" for name in COLUMNS)
_REMOVE = """DELETE FROM edge_ldp_answers.spans
    WHERE stream = %s AND from_at >= to_timestamp(%s) AND from_at < to_timestamp(%s)"""
_ADD = f"INSERT INTO edge_ldp_answers.spans ({_NAMES}) VALUES ({_PLACES})"  # noqa: S608 (our own names)
SCRIPT = "run config/postgres-answers.sql in this database, as the owner of its tables"


def write_answers(
    url: str,
    password: str | None,
    where: str,
    spans: Iterable[tuple[str, int, int]],
    rows: Iterable[Mapping[str, object]],
) -> None:
    """Put rows in the place of all that there are of the spans (stream, first second, end).

    In one transaction, so that nobody finds half of a day. Raises StoreError.
    """
    try:
        with connect(url, password) as db, db.transaction(), db.cursor() as cursor:
            cursor.executemany(_REMOVE, list(spans))
            cursor.executemany(_ADD, [[row[name] for name in COLUMNS] for row in rows])
    except (errors.UndefinedTable, errors.InvalidSchemaName) as exc:
        raise StoreError(where, "has no tables for answers", SCRIPT) from exc
    except psycopg.Error as exc:
        raise translate(exc, where, lost=False) from exc
