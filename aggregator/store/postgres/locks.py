"""Advisory locks of PostgreSQL: who may write, who leads, and whose turn it is to post receipts.

They last as long as a connection: whoever dies or is cut off holds none.
"""

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import errors

from aggregator.errors import StoreError, StoreHeldError
from aggregator.store.contract import Store
from aggregator.store.postgres import statements as schema
from aggregator.store.postgres.link import LOCK_WAIT
from aggregator.store.postgres.reader import PostgresReader

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


LEASE_S = 5  # a leader that is silent so long is none any more
OLDEST = 140_000  # the first server version that ends a silent session


class Leadership:
    """The right to issue plans: an advisory lock on a connection of its own (AGG-08).

    It ends with the connection, and the server ends that after LEASE_S of silence: of a leader that
    is paused as of one that is gone. The fence of `PostgresStore.add_plan` stands besides.
    """

    def __init__(self, url: str, password: str | None = None) -> None:
        self._reader = PostgresReader(url, password)
        self._is_ours = False

    def is_ours(self) -> bool:
        """Try to lead, or see that we still do; raises StoreHeldError when the server is gone."""
        try:
            with self._reader.reading() as db:
                if self._is_ours:
                    db.execute("SELECT 1")
                else:
                    self._is_ours = self._try(db)
        except StoreError:
            self.close()
            raise
        return self._is_ours

    def close(self) -> None:
        """Lead no more."""
        self._is_ours = False
        self._reader.close()

    def _try(self, db: psycopg.Connection[Any]) -> bool:
        if db.info.server_version < OLDEST:
            reason = f"is PostgreSQL {db.info.server_version // 10_000}"
            raise StoreError(self._reader.where, reason, "several workers need 14 or newer")
        db.execute(f"SET idle_session_timeout = '{LEASE_S}s'".encode())
        values = (schema.LOCKS, schema.LEADING)
        row = db.execute("SELECT pg_try_advisory_lock(%s, %s)", values).fetchone()
        return row == (True,)


_TAKE = "SELECT name, pg_try_advisory_lock(%s, hashtext(name)) FROM unnest(%s::text[]) AS name"
_GIVE = "SELECT name, pg_advisory_unlock(%s, hashtext(name)) FROM unnest(%s::text[]) AS name"


class PostgresTurns:
    """Advisory locks of the store's own connection: with it they end, which `give_back` sees.

    Devices whose names share a hash share a lock, which a connection may hold several times.
    """

    def __init__(self) -> None:
        self._taken: list[str] = []

    def take(self, store: Store, devices: Sequence[str]) -> list[str]:
        """Return the devices that no other worker posts a receipt of now."""
        self.give_back(store)  # what an attempt took that failed
        self._taken = [name for name, is_ours in _ask(_TAKE, store, devices) if is_ours]
        return self._taken

    def give_back(self, store: Store) -> list[str]:
        """End the turns; return the devices whose lock went with a lost connection."""
        taken, self._taken = self._taken, []
        if not taken:
            return []
        try:
            return [name for name, was_ours in _ask(_GIVE, store, taken) if not was_ours]
        except StoreHeldError:
            return taken


def _ask(query: str, store: Store, devices: Sequence[str]) -> list[tuple[str, bool]]:
    assert isinstance(store, PostgresReader)  # noqa: S101 (stores.open_worker made both)
    with store.reading() as db:
        return db.execute(query.encode(), (schema.TURNS, list(devices))).fetchall()
