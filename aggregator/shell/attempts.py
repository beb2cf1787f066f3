"""What the last flushes had decided, for the one whose commit is found to have happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuid import UUID

    from aggregator.records import Changes

KEPT = 8  # more than flushes whose answer can be awaited at once


class Attempts:
    """Decisions by the flush's id, the newest few."""

    def __init__(self) -> None:
        self._changes: dict[UUID, Changes] = {}

    def remember(self, flush: UUID, changes: Changes) -> None:
        """Keep what an attempt decided, in place of an earlier one of the same flush."""
        self._changes.pop(flush, None)
        self._changes[flush] = changes
        while len(self._changes) > KEPT:
            del self._changes[next(iter(self._changes))]

    def find(self, flush: UUID) -> Changes | None:
        """Return what the last attempt of a flush decided, or None."""
        return self._changes.get(flush)
