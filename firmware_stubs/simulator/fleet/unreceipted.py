"""What devices keep until the aggregator's receipt covers it: a broker's word settles nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from edge_ldp.protocol.messages import Receipt
    from firmware_stubs.simulator.fleet.traffic import Sent

Key = tuple[int, int]  # stream, batch


class Unreceipted:
    """Frames of a whole fleet that no receipt covers yet, and what waits for one."""

    def __init__(self) -> None:
        self._kept: dict[int, dict[Key, Sent]] = {}
        self._waiting: dict[tuple[int, Key], list[Sent]] = {}
        self._released: list[Sent] = []

    def __len__(self) -> int:
        """Return how many frames no receipt covers."""
        return sum(map(len, self._kept.values()))

    def put(self, frames: Iterable[Sent]) -> list[Sent]:
        """Keep what must be covered; return what may be sent now."""
        ready = []
        for frame in frames:
            key = (frame.stream, frame.batch)
            mine = self._kept.setdefault(frame.device, {})
            if frame.settles:
                mine[key] = frame
            elif frame.after and key in mine:
                self._waiting.setdefault((frame.device, key), []).append(frame)
                continue
            ready.append(frame)
        return ready

    def cover(self, device: int, receipt: Receipt) -> None:
        """Forget what a receipt of a device covers."""
        mine = self._kept.get(device, {})
        for key in [one for one in mine if receipt.covers(*one)]:
            del mine[key]
            self._released += self._waiting.pop((device, key), [])

    def released(self) -> list[Sent]:
        """Return, once, what waited for frames that were covered since."""
        found, self._released = self._released, []
        return found

    def due(self) -> list[Sent]:
        """Return every frame that is kept, each device's in the order of its batches."""
        return [mine[key] for _, mine in sorted(self._kept.items()) for key in sorted(mine)]

    def oldest(self) -> dict[int, dict[int, int]]:
        """Return the oldest batch kept of each stream, of devices that keep any."""
        found: dict[int, dict[int, int]] = {}
        for device, mine in self._kept.items():
            for stream, batch in sorted(mine, reverse=True):
                found.setdefault(device, {})[stream] = batch
        return found
