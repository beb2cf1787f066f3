"""When each device's next receipt is due: at once, after a gap has had time to close, or lazily."""

import heapq
from dataclasses import dataclass

from aggregator.counting.records import Changes

GAP_DELAY_S = 1.0  # what was only reordered has arrived by then


@dataclass(frozen=True, slots=True)
class Delays:
    """Real seconds until a receipt is due: after a status, after a gap, after anything else."""

    asked_s: float
    gap_s: float
    settled_s: float

    @classmethod
    def of(cls, interval_s: float, *, shared: bool) -> "Delays":
        """Return the delays for a lazy interval; `shared`: workers share the reports of a device.

        Then what a status tells of is soon committed by another worker.
        """
        return cls(GAP_DELAY_S if shared else 0.0, GAP_DELAY_S, interval_s)


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

    def flushed(self, changes: Changes, now: float, delays: Delays) -> None:
        """Ask for the receipts that one flush makes due, which was committed at `now`."""
        for device in changes.statuses:
            self.note(device, now + delays.asked_s)
        for device in changes.gapped:
            self.note(device, now + delays.gap_s)
        for device in changes.settled:
            self.note(device, now + delays.settled_s)

    def take(self, now: float, limit: int) -> list[str]:
        """Remove and return up to `limit` devices that are due, earliest first."""
        taken: list[str] = []
        while self._heap and len(taken) < limit and self._heap[0][0] <= now:
            at, device = heapq.heappop(self._heap)
            if self._at.get(device) == at:  # else an earlier entry of it was taken before
                del self._at[device]
                taken.append(device)
        return taken
