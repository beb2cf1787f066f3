"""Which devices flood: messages that brought nothing new, counted by device and interval.

A message that counts is never charged: a device has at most one report for each slot, so those are
bounded by the slots of the re-send window, and a month's backlog is as welcome as one frame. What
is charged are duplicates, refused and broken frames and statuses; above the limit all messages of
the device are refused unread until the interval is over. Refused so, nothing is settled: an honest
device keeps its batches and sends them again. Source: docs/faults.md, REP-09.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

COUNTERS = 1024


class Quota:
    """Counts what `limit` useless messages an interval are measured by; in bounded memory.

    Names are the sender's to choose, so at most COUNTERS of them are counted (Misra and Gries 1982,
    "Finding repeated elements"): no device is ever counted too high, and one that sends more than
    limit + (useless messages of all) / COUNTERS is found.
    """

    def __init__(self, limit: int, interval_s: float) -> None:
        self._limit = limit
        self._interval_s = interval_s
        self._interval = -1
        self._counts: dict[str, int] = {}
        self._over: set[str] = set()

    @property
    def refuses_any(self) -> bool:
        """Say whether any device may be over its limit."""
        return bool(self._over)

    def over(self, now_s: float) -> AbstractSet[str]:
        """Return the devices that are refused in the interval of this time."""
        interval = int(now_s // self._interval_s)
        if interval != self._interval:  # also after a clock that was set back
            self._interval = interval
            self._counts.clear()
            self._over.clear()
        return self._over

    def charge(self, useless: Mapping[str, int], now_s: float) -> None:
        """Count messages that brought nothing, by device. Cost: O(devices), amortised."""
        over = self.over(now_s)
        for device, messages in useless.items():
            if messages <= 0 or device in over:
                continue
            self._count(device, messages)
            if self._counts.get(device, 0) > self._limit:
                del self._counts[device]
                self._over.add(device)

    def _count(self, device: str, messages: int) -> None:
        if device in self._counts or len(self._counts) < COUNTERS:
            self._counts[device] = self._counts.get(device, 0) + messages
            return
        least = min(messages, *self._counts.values())
        left = ((name, count - least) for name, count in self._counts.items())
        self._counts = {name: count for name, count in left if count}
        if messages > least:
            self._counts[device] = messages - least
