"""The right to write to a PostgreSQL store: advisory locks that last as long as a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psycopg import errors

from aggregator.shell import postgres_schema as schema
from aggregator.shell.postgres_link import LOCK_WAIT
from aggregator.shell.store import StoreHeldError

if TYPE_CHECKING:
    import psycopg

# a paused worker keeps no turn and no name: one at work asks something each second
SILENT = "SET idle_session_timeout = '60s'"


def claim(db: psycopg.Connection[Any], where: str, *, alone: bool, worker: str) -> None:
    """Be the only writer, or the worker of this name; raises StoreHeldError while another is.

    From here on an answer to COMMIT means: durable.
    """
    if db.execute("SHOW synchronous_commit").fetchone() in (("off",), ("local",)):
        db.execute("SET synchronous_commit = on")
    query = schema.CLAIM_ALONE if alone else schema.CLAIM_SHARED
    other, remedy = "another aggregator", "stop it first, or name another database"
    try:
        db.execute("SET lock_timeout = '1s'")  # one that was just killed is gone by then
        db.execute(query, (schema.LOCKS, schema.WRITING))
        if worker:
            other = f"another worker named {worker}"
            remedy = "give each worker a --worker name of its own"
            db.execute(schema.CLAIM_NAME, (schema.WORKERS, worker))
            db.execute(SILENT)
        db.execute(LOCK_WAIT)
    except errors.LockNotAvailable as exc:
        raise StoreHeldError(where, f"is in use by {other}", remedy) from exc
