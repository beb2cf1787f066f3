"""Connections to PostgreSQL: how they are made, what they may say, what is at the other end."""

from contextlib import suppress
from typing import Any

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from aggregator.errors import StoreAwayError, StoreError, StoreHeldError
from aggregator.store.postgres import schema as tables
from aggregator.store.postgres.arrays import learn

# A dead network ends a call within seconds; the server ends what a lost client left open.
LINK = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "application_name": "edge-ldp aggregator",
}
LOCK_WAIT = "SET lock_timeout = '5s'"
SILENT = "10s"  # of a client within its transaction
SETTINGS = (
    LOCK_WAIT,
    f"SET idle_in_transaction_session_timeout = '{SILENT}'",
    "SET default_transaction_isolation = 'read committed'",
)
# between the statements of a pipeline that timeout does not run; an id means: something is locked
_END_SILENT = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user AND backend_xid IS NOT NULL
    AND wait_event_type = 'Client' AND query_start < now() - %s::interval"""
# what a server that is there says although it can be waited for
_COMES_BACK = ("starting up", "shutting down", "recovery", "too many clients", "terminating")
_WAIT = "is the server up, and [store] url right? Nothing is acknowledged until it works"
RIGHTS = "ask somebody whose role may, or grant this user the rights (config/postgres-roles.sql)"
DAMAGED = "restore a backup, or name an empty database"


def connect(url: str, password: str | None) -> psycopg.Connection[Any]:
    """Return a connection in autocommit mode; what the URL says itself stands."""
    given = conninfo_to_dict(url)
    options: dict[str, Any] = {key: value for key, value in LINK.items() if key not in given}
    if password is not None:
        options["password"] = password
    db = psycopg.connect(url, autocommit=True, **options)
    learn(db)
    try:
        for setting in SETTINGS:
            db.execute(setting)
    except BaseException:
        db.close()
        raise
    return db


def end_silent(url: str, password: str | None) -> None:
    """End connections of ours that lock something and whose client has long said nothing.

    Of a worker that was frozen in the middle of a flush, or whose machine is gone: for whoever
    waited for a lock in vain. If that is not allowed, or the server is gone, nothing happens.
    """
    with suppress(psycopg.Error), connect(url, password) as db:
        db.execute(_END_SILENT, (SILENT,))


def translate(exc: Exception, where: str, *, lost: bool) -> StoreError:
    """Return the store's error for one of psycopg's; `lost`: the connection is gone."""
    reason = " ".join(str(exc).split())  # one line, whatever the server says
    passing = isinstance(
        exc, psycopg.OperationalError | psycopg.InterfaceError | errors.ReadOnlySqlTransaction
    )
    if passing or lost:
        refused = "FATAL:" in reason and not any(text in reason for text in _COMES_BACK)
        kind = StoreHeldError if refused else StoreAwayError
        return kind(where, f"cannot be used now ({reason})", _WAIT)
    if isinstance(exc, errors.InsufficientPrivilege | errors.WithCheckOptionViolation):
        return StoreError(where, f"refuses us ({reason})", RIGHTS)
    return StoreError(where, f"is damaged or not ours ({reason})", DAMAGED)


def check(db: psycopg.Connection[Any], where: str) -> int:
    """Return the version, 0 for an empty database; refuse one newer than we, or not in UTF-8."""
    (encoding,) = db.execute("SHOW server_encoding").fetchone() or ("",)
    if encoding != "UTF8":
        raise StoreError(where, f"is encoded in {encoding}", "create the database with UTF8")
    (known,) = db.execute("SELECT to_regclass('edge_ldp_schema') IS NOT NULL").fetchone() or (0,)
    if not known:
        return 0
    (version,) = db.execute("SELECT version FROM edge_ldp_schema").fetchone() or (0,)
    if version > tables.VERSION:
        reason = f"was written by a newer version (schema {version}, we read {tables.VERSION})"
        raise StoreError(where, reason, "upgrade edge-ldp")
    return int(version)
