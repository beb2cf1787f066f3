"""Which worker this is: the only one, or one of several on one database (docs/workers.md)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aggregator.shell.receipt_turns import AlwaysOurs

if TYPE_CHECKING:
    from aggregator.shell.election import Lock
    from aggregator.shell.receipt_turns import Turns


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker's name ("" for the only one), and what it has to agree upon with the others.

    `lock`: who holds it leads; None where nobody else could. `turns`: to post receipts.
    """

    name: str = ""
    lock: Lock | None = None
    turns: Turns = field(default_factory=AlwaysOurs)

    def names(self, whole: str) -> str:
        """Return the name of something that each worker has of its own."""
        return f"{whole}-{self.name}" if self.name else whole


ALONE = Worker()
