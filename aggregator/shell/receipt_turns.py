"""Whose turn it is to post a device's receipt, so that an older one never replaces a newer one.

A receipt is read from what is committed and then published. Had two workers done both for one
device at the same time, the slower one's older receipt could be retained. So a worker takes the
devices' turns first, reads, publishes, and gives the turns back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aggregator.shell.store import Store


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
