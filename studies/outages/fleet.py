"""A fleet, its broker and its aggregator as events: each home is the product's own `Delivery`.

Nothing is averaged and no home stands for others: one Delivery each, given what an agent gives it
(`agent.link.uplink`): a batch when a slot of its window is over, a status every receipt interval
unless it is silent, and with each turn; a message of up to 64 batches. Only what lies between the
homes and the store is a model: a broker that queues what an aggregator does not take, drops what is
beyond its limit and keeps the order; an aggregator that takes a unit of work for a batch and one
for a status, at a rate that is told, and answers with receipts as `aggregator.intake` schedules
them. A link takes no time, and none breaks.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from agent.claims.batches import Key
from agent.claims.delivery import RESEND_INTERVALS, Delivery
from aggregator.intake.receipt_schedule import Delays
from edge_ldp.protocol.frames import MAX_FRAMES
from edge_ldp.protocol.messages import Receipt, StreamReceipt

if TYPE_CHECKING:
    from collections.abc import Sequence

DAY_S = 86_400.0
INTERVAL_S = 3600.0  # between receipts, and statuses
JITTER_S = 300.0
SLOT_S, REPORTS, PERIOD = 900.0, 8, 107  # the default window: 8 in 97, again every 107
WINDOW = 10  # messages on their way
RECEIPTS_PER_S = 500.0
QUEUE_BYTES = 1_610_612_736  # config/mosquitto.conf
BATCH_BYTES, STATUS_BYTES = 34, 600
STREAM = 1
AWAY_S = 60.0  # after which a receipt is tried again
UNITS_A_DAY = DAY_S / SLOT_S * REPORTS / PERIOD + DAY_S / INTERVAL_S  # of one home


@dataclass(slots=True)
class Home:
    """One home; `highest` and `missing`: what the store knows of its batches."""

    delivery: Delivery
    made: int = 0
    wakes_s: float | None = None
    highest: int = 0
    missing: set[int] = field(default_factory=set)
    receipt_s: float | None = None
    receipts: int = 0

    def receipt(self) -> Receipt:
        """Return the home's receipt, of version 2."""
        gaps: list[tuple[int, int]] = []
        for number in sorted(self.missing):
            if gaps and gaps[-1][1] == number - 1:
                gaps[-1] = gaps[-1][0], number
            else:
                gaps.append((number, number))
        return Receipt((StreamReceipt(STREAM, self.highest, tuple(gaps[:64])),), "0" * 16)


@dataclass(slots=True)
class Tally:
    """What became of batches (`made`, `settled`, `duplicates`) and of messages (the rest)."""

    made: int = 0
    reports: int = 0
    statuses: int = 0
    dropped: int = 0
    settled: int = 0
    duplicates: int = 0
    most_queued: int = 0


class Fleet:
    """`rates`: from when on the aggregator does how many units a second; 0: it is away.

    `of`: how many homes the fleet is a part of: of the broker's queue and of the receipts a second
    it has its share, so what becomes of one home is what would become of it among so many.
    `queue_bytes`: of the broker, for all of them.
    """

    def __init__(
        self,
        homes: int,
        rates: Sequence[tuple[float, float]],
        seed: int,
        of: int | None = None,
        queue_bytes: int = QUEUE_BYTES,
    ) -> None:
        share = homes / (of or homes)
        self._most_bytes, self._receipts_per_s = share * queue_bytes, share * RECEIPTS_PER_S
        self._random = random.Random(seed)  # noqa: S311 (waits and slots of a model)
        self.homes = [
            Home(Delivery(WINDOW, RESEND_INTERVALS * INTERVAL_S, self._draw, several=True))
            for _ in range(homes)
        ]
        self.tally = Tally()
        self.now_s = 0.0
        self.old = 0  # batches of before the last rate, not settled yet
        self.backlog = 0  # these, and the statuses that waited then
        self.recovered_s: float | None = None
        self._old_of = [0] * homes
        self._events: list[tuple[float, int, int, float]] = []
        self._kinds = (self._make, self._status, self._wake, self._post, self._served, self._turn)
        self._queue: deque[tuple[int, list[Key] | None]] = deque()
        self._queued_bytes = 0
        self._rate = 0.0
        self._is_serving = False
        self._post_s = 0.0
        self._delays = Delays.of(INTERVAL_S, shared=False)
        self._last_rate_s = rates[-1][0]
        for at in range(homes):
            self._at(self._random.random() * self._between_s(), 0, at)
            self._at(self._random.random() * INTERVAL_S, 1, at)
        for at_s, rate in rates:
            heappush(self._events, (at_s, 5, 0, rate))

    def run(self, until_s: float) -> None:
        """Go on until then."""
        events = self._events
        while events and events[0][0] <= until_s:
            self.now_s, kind, at, what = heappop(events)
            self._kinds[kind](at, what)
        self.now_s = until_s

    def _draw(self, size: int) -> int:
        return self._random.randrange(size)

    def _between_s(self) -> float:
        """Return the time to a home's next report: its window's slots, at random."""
        return SLOT_S * max(1, round(self._random.expovariate(REPORTS / PERIOD)))

    def _at(self, at_s: float, kind: int, home: int) -> None:
        heappush(self._events, (at_s, kind, home, at_s))

    def _make(self, at: int, _: float) -> None:
        """Make a batch of a report whose slot is over, to go within the jitter."""
        home = self.homes[at]
        home.made += 1
        self.tally.made += 1
        home.delivery.add([Key(STREAM, home.made)])
        self._at(self.now_s + self._between_s(), 0, at)
        if home.delivery.due:
            self._wake_at(home, at, self.now_s + self._random.random() * JITTER_S)

    def _status(self, at: int, _: float) -> None:
        if not self.homes[at].delivery.is_silent:
            self._publish(at, None)
        self._at(self.now_s + INTERVAL_S, 1, at)

    def _wake(self, at: int, when_s: float) -> None:
        home = self.homes[at]
        if home.wakes_s == when_s:
            home.wakes_s = None
            self._send(home, at)

    def _send(self, home: Home, at: int) -> None:
        """Do what an agent does when it looks: a turn that is due, and whatever may go."""
        delivery = home.delivery
        delivery.overdue(self.now_s)
        while (first := delivery.take()) is not None:
            keys = [first]
            while len(keys) < MAX_FRAMES and (key := delivery.following(first)) is not None:
                delivery.join(first, key)
                keys.append(key)
            self._publish(at, keys)
            delivery.acknowledged(first, self.now_s)
            if delivery.is_silent:
                self._publish(at, None)
        self._look_again(home, at)

    def _look_again(self, home: Home, at: int) -> None:
        until_s = home.delivery._until_s  # noqa: SLF001 (an agent looks each second: too often here)
        if until_s is not None:
            self._wake_at(home, at, max(until_s, self.now_s))

    def _wake_at(self, home: Home, at: int, when_s: float) -> None:
        if home.wakes_s is None or when_s < home.wakes_s:
            home.wakes_s = when_s
            self._at(when_s, 2, at)

    def _publish(self, at: int, keys: list[Key] | None) -> None:
        """Take a message, as the broker does: acknowledged, whatever becomes of it."""
        size = STATUS_BYTES if keys is None else BATCH_BYTES * len(keys)
        self.tally.statuses += keys is None
        self.tally.reports += keys is not None
        if self._queued_bytes + size > self._most_bytes:
            self.tally.dropped += 1
            return
        self._queued_bytes += size
        self._queue.append((at, keys))
        self.tally.most_queued = max(self.tally.most_queued, len(self._queue))
        self._serve()

    def _serve(self) -> None:
        """Begin with the next message, if the aggregator is there and free."""
        if self._is_serving or not self._rate or not self._queue:
            return
        self._is_serving = True
        keys = self._queue[0][1]
        units = 1 if keys is None else len(keys)
        self._at(self.now_s + units / self._rate, 4, 0)

    def _served(self, _at: int, _: float) -> None:
        self._is_serving = False
        at, keys = self._queue.popleft()
        self._queued_bytes -= STATUS_BYTES if keys is None else BATCH_BYTES * len(keys)
        home = self.homes[at]
        if keys is None:
            self._ask(home, at, self._delays.asked_s)
        else:
            before = len(home.missing)
            for key in keys:
                self._settle(home, at, key.number)
            has_gap = len(home.missing) > before
            self._ask(home, at, self._delays.gap_s if has_gap else self._delays.settled_s)
        self._serve()

    def _settle(self, home: Home, at: int, number: int) -> None:
        if number > home.highest:
            home.missing.update(range(home.highest + 1, number))
            home.highest = number
        elif number in home.missing:
            home.missing.remove(number)
        else:
            self.tally.duplicates += 1
            return
        self.tally.settled += 1
        if number <= self._old_of[at]:
            self.old -= 1
            if not self.old:
                self.recovered_s = self.now_s

    def _ask(self, home: Home, at: int, delay_s: float) -> None:
        """Schedule a receipt; an earlier one that is already due stands."""
        when_s = self.now_s + delay_s
        if home.receipt_s is None or when_s < home.receipt_s:
            home.receipt_s = when_s
            self._at(when_s, 3, at)

    def _post(self, at: int, when_s: float) -> None:
        home = self.homes[at]
        if home.receipt_s != when_s:
            return
        if not self._rate or self.now_s < self._post_s:  # away, or others' turn
            later_s = max(self._post_s, self.now_s + (0.0 if self._rate else AWAY_S))
            home.receipt_s = later_s
            self._at(later_s, 3, at)
            return
        self._post_s = self.now_s + 1 / self._receipts_per_s
        home.receipt_s = None
        home.delivery.received(home.receipt(), self.now_s)
        if home.delivery.due:
            self._wake_at(home, at, self.now_s + self._random.random() * JITTER_S)
        self._look_again(home, at)

    def _turn(self, _at: int, rate: float) -> None:
        """Go on at another rate; who was away says that it is there."""
        was, self._rate = self._rate, rate
        if rate and not was:
            for at, home in enumerate(self.homes):
                home.delivery.met(self.now_s, INTERVAL_S)
                self._look_again(home, at)
        if self.now_s == self._last_rate_s:
            self._old_of = [home.made for home in self.homes]
            self.old = self.tally.made - self.tally.settled
            self.backlog = self.old + sum(keys is None for _, keys in self._queue)
        self._serve()
