"""Who issues plans when several workers serve one fleet."""

from __future__ import annotations

from aggregator.shell import postgres_schema as schema
from aggregator.shell.postgres_reader import PostgresReader
from aggregator.shell.store import StoreError


class Leadership:
    """The right to issue plans: an advisory lock on a connection of its own (AGG-08).

    It ends with the connection, also without us noticing; what still stands then is the fence of
    `PostgresStore.add_plan`.
    """

    def __init__(self, url: str, password: str | None = None) -> None:
        self._reader = PostgresReader(url, password)
        self._is_ours = False

    def is_ours(self) -> bool:
        """Try to lead, or see that we still do; raises StoreHeldError when the server is gone."""
        values = (schema.LOCKS, schema.LEADING)
        try:
            with self._reader.reading() as db:
                if self._is_ours:
                    db.execute("SELECT 1")
                else:
                    row = db.execute("SELECT pg_try_advisory_lock(%s, %s)", values).fetchone()
                    self._is_ours = row == (True,)
        except StoreError:
            self.close()
            raise
        return self._is_ours

    def close(self) -> None:
        """Lead no more."""
        self._is_ours = False
        self._reader.close()
