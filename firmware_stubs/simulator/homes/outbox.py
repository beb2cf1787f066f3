"""Frames that the aggregator has not receipted yet, of every home: the only queue of the fleet.

A frame is made once and never changes; what is sent again is the same bytes object (docs/faults.md,
PRV-02). A PUBACK only puts off the next sending; a receipt alone removes a frame (docs/design.md,
Messages). Size: one entry for each frame that waits, so at most homes times simulated days.
"""

from dataclasses import dataclass

from edge_ldp.protocol.messages import StreamReceipt


@dataclass(slots=True)
class WaitingFrame:
    """One frame; `due_s` is when it is to be sent next, `sent` how often a broker took it."""

    device: str
    batch: int
    payload: bytes
    reports: int
    due_s: float
    sent: int = 0


class Outbox:
    """Entries by device and batch; `resend_s` passes between a sending and the next."""

    def __init__(self, resend_s: float) -> None:
        self._resend_s = resend_s
        self._waiting: dict[str, dict[int, WaitingFrame]] = {}
        self.created = 0
        self.confirmed = 0
        self.resent = 0

    @property
    def pending(self) -> int:
        """Reports not covered by a receipt."""
        return self.created - self.confirmed

    def add(self, device: str, batch: int, payload: bytes, reports: int, now_s: float) -> None:
        """Keep a new frame, to be sent at once."""
        entry = WaitingFrame(device, batch, payload, reports, now_s)
        self._waiting.setdefault(device, {})[batch] = entry
        self.created += reports

    def due(self, now_s: float) -> list[WaitingFrame]:
        """Return what is to be sent by now, oldest batch first."""
        found = [
            entry
            for batches in self._waiting.values()
            for entry in batches.values()
            if entry.due_s <= now_s
        ]
        return sorted(found, key=lambda entry: entry.batch)

    def on_puback(self, entry: WaitingFrame, now_s: float) -> None:
        """Note that the broker took a frame: it is due again after `resend_s`, unless receipted."""
        self.resent += entry.sent > 0
        entry.sent += 1
        entry.due_s = now_s + self._resend_s

    def on_receipt(self, device: str, receipt: StreamReceipt) -> int:
        """Forget what the receipt covers and return how many reports that were.

        A receipt for an unknown device, or one seen before, changes nothing.
        """
        batches = self._waiting.get(device, {})
        covered = [batch for batch in batches if receipt.covers(batch)]
        reports = sum(batches.pop(batch).reports for batch in covered)
        self.confirmed += reports
        return reports

    def oldest(self, device: str) -> int | None:
        """Return the lowest batch that a device still keeps, or None."""
        return min(self._waiting.get(device, {}), default=None)

    def keepers(self) -> list[str]:
        """Return the devices that still keep a frame."""
        return [device for device, batches in self._waiting.items() if batches]
