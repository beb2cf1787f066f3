"""One of the processes that serve a fleet together: what only one may hold, and receipts' turns.

A receipt is read from what is committed and then published. Had two workers done both for one
device at the same time, the slower one's older receipt could be retained. So a worker takes the
devices' turns first, reads, publishes, and gives the turns back.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from aggregator.store.contract import Store


class Turns(Protocol):
    """Turns of devices, taken and given back on the store's thread."""

    def take(self, store: Store, devices: Sequence[str]) -> list[str]:
        """Return the devices whose turn is ours until it is given back."""

    def give_back(self, store: Store) -> list[str]:
        """End what was taken; return devices whose turn was lost before: post theirs again.

        Never raises StoreHeldError: with the connection to the store the turns are gone.
        """


class AlwaysOurs:
    """Turns where nobody else posts receipts."""

    def take(self, _store: Store, devices: Sequence[str]) -> list[str]:
        """Return all of them."""
        return list(devices)

    def give_back(self, _store: Store) -> list[str]:
        """Return none."""
        return []


class Lock(Protocol):
    """What only one process holds: `aggregator.store.postgres.locks.Leadership`."""

    def is_ours(self) -> bool:
        """Try to get it, or see that we still have it; raises StoreHeldError if nobody can say."""

    def close(self) -> None:
        """Let go of it."""


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
