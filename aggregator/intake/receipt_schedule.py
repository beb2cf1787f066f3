"""When each device's next receipt is due: at once, after a gap has had time to close, or lazily."""

from __future__ import annotations

import heapq


class ReceiptSchedule:
    """Devices that should get a receipt, by time; times in any one unit, given by the caller.

    Holds each device once, at its earliest time: memory is bounded by the devices that report.
    """

    def __init__(self) -> None:
        self._at: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._at)

    def note(self, device: str, at: float) -> None:
        """Ask for a receipt at a time; an earlier one that is already asked for stands."""
        if at < self._at.get(device, float("inf")):
            self._at[device] = at
            heapq.heappush(self._heap, (at, device))

    def take(self, now: float, limit: int) -> list[str]:
        """Remove and return up to `limit` devices that are due, earliest first."""
        taken: list[str] = []
        while self._heap and len(taken) < limit and self._heap[0][0] <= now:
            at, device = heapq.heappop(self._heap)
            if self._at.get(device) == at:  # else an earlier entry of it was taken before
                del self._at[device]
                taken.append(device)
        return taken
