"""Frames that the aggregator has not receipted yet, of every home: the only queue of the fleet.

A frame is made once and never changes; what is sent again is the same bytes object (docs/faults.md,
PRV-02). When it goes again is decided as an agent decides it, for each home by itself
(`agent.claims.delivery`); a receipt alone removes a frame (docs/design.md, Messages). Size: one
entry for each frame that waits, so at most homes times simulated days.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from agent.claims.batches import Key
from agent.claims.delivery import RESEND_INTERVALS, Delivery
from edge_ldp.protocol.messages import Receipt
from edge_ldp.protocol.released import FIRST_SUMS_KEY

WINDOW = 10  # frames of one home on their way


@dataclass(slots=True)
class WaitingFrame:
    """One frame; `sent`: how often a broker took it."""

    device: str
    key: Key
    payload: bytes
    reports: int
    sent: int = 0


@dataclass(slots=True)
class _Home:
    delivery: Delivery
    frames: dict[Key, WaitingFrame] = field(default_factory=dict)


class Outbox:
    """What each home keeps; times are monotonic, in seconds of the fleet's clock.

    `draw(n)` gives 0..n-1, for waits alone.
    """

    def __init__(self, receipt_interval_s: float, draw: Callable[[int], int]) -> None:
        self._interval_s = receipt_interval_s
        self._draw = draw
        self._homes: dict[str, _Home] = {}
        self.created = 0
        self.confirmed = 0
        self.resent = 0

    @property
    def pending(self) -> int:
        """Reports not covered by a receipt."""
        return self.created - self.confirmed

    def add(self, device: str, key: Key, payload: bytes, reports: int) -> None:
        """Keep a new frame, to be sent."""
        home = self._homes.get(device)
        if home is None:
            resend_s = RESEND_INTERVALS * self._interval_s
            home = self._homes[device] = _Home(Delivery(WINDOW, resend_s, self._draw))
        home.frames[key] = WaitingFrame(device, key, payload, reports)
        home.delivery.add([key])
        self.created += reports

    def take(self, now_s: float) -> list[WaitingFrame]:
        """Return what goes now, oldest first; it is on its way until it `went` or `failed`."""
        found = []
        for home in self._homes.values():
            home.delivery.overdue(now_s)
            while (key := home.delivery.take()) is not None:
                found.append(home.frames[key])
        return sorted(found, key=lambda entry: entry.key.number)

    def went(self, entry: WaitingFrame, now_s: float) -> None:
        """Note that the broker took a frame: a receipt alone settles it."""
        self.resent += entry.sent > 0
        entry.sent += 1
        self._homes[entry.device].delivery.acknowledged(entry.key, now_s)

    def failed(self, entries: Iterable[WaitingFrame]) -> None:
        """Put frames back, whose link was lost."""
        for entry in entries:
            self._homes[entry.device].delivery.failed(entry.key)

    def on_receipt(
        self, device: str, receipt: Receipt, now_s: float, *, is_live: bool = True
    ) -> int:
        """Forget what the receipt covers and return how many reports that were.

        A receipt for an unknown device, or one seen before, changes nothing.
        """
        home = self._homes.get(device)
        if home is None:
            return 0
        covered = home.delivery.received(receipt, now_s, is_live=is_live)
        reports = sum(home.frames.pop(key).reports for key in covered)
        self.confirmed += reports
        return reports

    def met(self, now_s: float) -> None:
        """Take in that an aggregator says it is there: each home may ask again soon."""
        for home in self._homes.values():
            home.delivery.met(now_s, self._interval_s)

    def oldest(self, device: str, *, sums: bool = False) -> int | None:
        """Return the lowest batch of reports, or of sums, that a device still keeps, or None."""
        home = self._homes.get(device)
        frames = () if home is None else home.frames
        kept = (key.number for key in frames if (key.stream >= FIRST_SUMS_KEY) is sums)
        return min(kept, default=None)

    def keepers(self, *, silent: bool) -> list[str]:
        """Return the devices that still keep a frame, and hear nothing (`silent`) or do."""
        return [
            name
            for name, home in self._homes.items()
            if home.frames and home.delivery.is_silent == silent
        ]
