"""Turns to post receipts among workers on one PostgreSQL database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aggregator.shell import postgres_schema as schema
from aggregator.shell.postgres_reader import PostgresReader
from aggregator.shell.store import StoreHeldError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aggregator.shell.store import Store

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
