"""What devices keep until the aggregator's receipt covers it: a broker's word settles nothing.

When what is kept goes again is decided as an agent decides it (`agent.claims.delivery`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from agent.claims.batches import Key
from agent.claims.delivery import Delivery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from edge_ldp.protocol.messages import Receipt
    from studies.load.traffic import Sent

ALL = 1 << 30  # a whole fleet shares the window of its one link


class Unreceipted:
    """Frames of a whole fleet that no receipt covers yet, and what waits for one.

    `resend_s` without a receipt pass before a device sends anything again; `draw(n)` gives 0..n-1,
    for waits alone.
    """

    def __init__(self, resend_s: float, draw: Callable[[int], int]) -> None:
        self._deliveries = defaultdict[int, Delivery](lambda: Delivery(ALL, resend_s, draw))
        self._kept: dict[int, dict[Key, Sent]] = {}
        self._waiting: dict[tuple[int, Key], list[Sent]] = {}
        self._released: list[Sent] = []

    def __len__(self) -> int:
        """Return how many frames no receipt covers."""
        return sum(map(len, self._kept.values()))

    def put(self, frames: Iterable[Sent], now_s: float) -> list[Sent]:
        """Keep what must be covered; return what goes now."""
        ready = []
        for frame in frames:
            key = Key(frame.stream, frame.batch)
            mine = self._kept.setdefault(frame.device, {})
            if frame.settles:
                mine[key] = frame
                self._deliveries[frame.device].add([key])
                ready += self._taken(frame.device, now_s)
            elif frame.after and key in mine:
                self._waiting.setdefault((frame.device, key), []).append(frame)
            else:
                ready.append(frame)
        return ready

    def cover(self, device: int, receipt: Receipt, now_s: float) -> None:
        """Forget what a receipt of a device covers."""
        mine = self._kept.get(device, {})
        for key in self._deliveries[device].received(receipt, now_s):
            del mine[key]
            self._released += self._waiting.pop((device, key), [])
        if not mine:
            del self._deliveries[device]

    def released(self) -> list[Sent]:
        """Return, once, what waited for frames that were covered since."""
        found, self._released = self._released, []
        return found

    def due(self, now_s: float) -> list[Sent]:
        """Return what is kept and goes now."""
        found = []
        for device in [device for device, mine in self._kept.items() if mine]:
            self._deliveries[device].overdue(now_s)
            found += self._taken(device, now_s)
        return found

    def oldest(self) -> dict[int, dict[int, int]]:
        """Return the oldest batch kept of each stream, of devices that keep any."""
        found: dict[int, dict[int, int]] = {}
        for device, mine in self._kept.items():
            for stream, batch in sorted(mine, reverse=True):
                found.setdefault(device, {})[stream] = batch
        return found

    def asking(self) -> list[int]:
        """Return the devices that keep any and are not silent: their statuses ask for receipts."""
        return [
            device
            for device, mine in self._kept.items()
            if mine and not self._deliveries[device].is_silent
        ]

    def _taken(self, device: int, now_s: float) -> list[Sent]:
        """Return what goes now; the link sends it again itself where it breaks."""
        found, delivery = [], self._deliveries[device]
        while (key := delivery.take()) is not None:
            delivery.acknowledged(key, now_s)
            found.append(self._kept[device][key])
        return found
