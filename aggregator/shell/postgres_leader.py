"""Who issues plans when several workers serve one fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aggregator.shell import postgres_schema as schema
from aggregator.shell.postgres_reader import PostgresReader
from aggregator.shell.store import StoreError

if TYPE_CHECKING:
    import psycopg

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
