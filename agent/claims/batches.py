"""Batches: how waiting reports are packed, and which batch is to be sent next.

A batch is numbered and its bytes are fixed when it is packed; every sending is bit for bit the
same. It is kept until the aggregator's receipt covers it: a broker's acknowledgement settles
nothing (docs/design.md, Messages). Source: docs/design.md, Values and reports, Messages.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from agent.claims.pipeline import Report
from edge_ldp.device.frame import HEAD_BYTES, MAX_OFFSET, MAX_REPORTS, PAIR_BYTES, encode
from edge_ldp.protocol.messages import Receipt

RESEND_INTERVALS = 2  # receipt intervals without a receipt after which a batch is sent again


class Key(NamedTuple):
    """Which batch of which stream."""

    stream: int
    number: int


@dataclass(frozen=True, slots=True)
class Batch:
    """A packed batch: its bytes never change again."""

    key: Key
    payload: bytes
    last_slot: int
    reports: int


def pack(
    reports: Sequence[Report], following: dict[int, int], most: int = MAX_REPORTS
) -> list[Batch]:
    """Return the batches that carry these reports, numbered from `following[stream]` on.

    Reports come in rising slots per stream; each plan epoch has its own batches of at most `most`
    reports within 65,535 slots.
    """
    batches: list[Batch] = []
    numbers = dict(following)
    for stream, of_stream in groupby(sorted(reports), key=lambda report: report.stream):
        for run in _runs(of_stream, most):
            number = numbers[stream]
            numbers[stream] = number + 1
            slots = [report.slot for report in run]
            payload = encode(stream, number, run[0].epoch, slots, [r.code for r in run])
            batches.append(Batch(Key(stream, number), payload, slots[-1], len(run)))
    return batches


def fitting(room_bytes: int) -> int:
    """Return how many reports a frame of so many bytes holds, at least one."""
    return max(1, min(MAX_REPORTS, (room_bytes - HEAD_BYTES) // PAIR_BYTES))


def _runs(reports: Iterable[Report], most: int) -> Iterable[list[Report]]:
    run: list[Report] = []
    for report in reports:
        if run and (
            report.epoch != run[0].epoch
            or len(run) == most
            or report.slot - run[0].slot > MAX_OFFSET
        ):
            yield run
            run = []
        run.append(report)
    if run:
        yield run


@dataclass(slots=True)
class Delivery:
    """Which kept batches to send now; in memory only: after a restart all of them are due again.

    Each batch is in one of three places: in the queue, first one first; in flight, at most
    `window`; or sent, with the time when the broker acknowledged it. `now_s` is monotonic time at
    the clock's rate.
    """

    window: int
    resend_s: float
    _queue: deque[Key] = field(default_factory=deque, init=False)
    _in_flight: set[Key] = field(default_factory=set, init=False)
    _sent: dict[Key, float] = field(default_factory=dict, init=False)

    def add(self, keys: Iterable[Key]) -> None:
        """Take batches that were packed, oldest first."""
        self._queue.extend(keys)

    def start(self) -> list[Key]:
        """Return the batches to send now, and count them as in flight."""
        started = []
        while self._queue and len(self._in_flight) < self.window:
            key = self._queue.popleft()
            self._in_flight.add(key)
            started.append(key)
        return started

    def acknowledged(self, key: Key, now_s: float) -> None:
        """Note the broker's acknowledgement: the batch now waits for its receipt."""
        if key in self._in_flight:
            self._in_flight.discard(key)
            self._sent[key] = now_s

    def failed(self, key: Key) -> None:
        """Put a batch back to be sent first, after older ones of its stream: its link was lost."""
        if key in self._in_flight:
            self._in_flight.discard(key)
            older = [at for at, other in enumerate(self._queue) if _is_older(other, key)]
            self._queue.insert(older[-1] + 1 if older else 0, key)

    def received(self, receipt: Receipt) -> list[Key]:
        """Forget the batches that a receipt covers and return them, to be deleted."""
        covered = [
            key
            for key in (*self._sent, *self._queue, *self._in_flight)
            if receipt.covers(key.stream, key.number)
        ]
        self.forget(covered)
        return covered

    def forget(self, keys: Iterable[Key]) -> None:
        """Drop batches that are settled or expired."""
        gone = set(keys)
        self._queue = deque(key for key in self._queue if key not in gone)
        self._in_flight -= gone
        for key in gone:
            self._sent.pop(key, None)

    def clear(self) -> None:
        """Drop every batch: none of them is kept any more."""
        self._queue.clear()
        self._in_flight.clear()
        self._sent.clear()

    def overdue(self, now_s: float) -> None:
        """Make batches due again whose receipt has not come in time, oldest first."""
        late = sorted(key for key, at_s in self._sent.items() if now_s - at_s >= self.resend_s)
        for key in late:
            del self._sent[key]
        self._queue.extendleft(reversed(late))

    @property
    def due(self) -> bool:
        """Whether a batch waits to be sent."""
        return bool(self._queue)


def _is_older(key: Key, other: Key) -> bool:
    return key.stream == other.stream and key.number < other.number
