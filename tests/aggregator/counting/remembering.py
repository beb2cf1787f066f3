"""A model that remembers everything: every report ever made, what may count, and what must.

A world of honest devices and one liar, on one clock of slots. What is made may be lost, come late,
come twice, in any order; devices are reinstalled, give up, and send again after weeks; the liar
jumps with slots and batch numbers, repeats itself and contradicts itself. The model keeps every
counted (device, slot); the aggregator must get by with its bounded state.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from aggregator.counting.seen_batches import build_receipt
from edge_ldp.protocol.messages import StreamReceipt
from edge_ldp.service.broker import Message
from tests.integration.both_stores import (
    BUCKET,
    CODES,
    SLOT_S,
    STREAM,
    WINDOW_S,
    House,
    report,
    rules,
    status,
)

START = 2_000_000
DAY = 96
WINDOW = WINDOW_S // SLOT_S
Action = tuple[str, int, int]
NAMES = ("make", "bring", "lie", "wait", "resend", "tell", "receipt", "give up", "reinstall")
WEIGHTS = (8, 8, 8, 2, 1, 3, 3, 1, 0.3)
Sent = tuple[str, int, tuple[int, ...], tuple[int, ...]]  # device, batch, slots, codes


@dataclass
class Home:
    """An honest device's outbox, as the agent keeps it."""

    name: str
    first: int = 1
    next: int = 1
    next_slot: int = START
    created: int = 0
    expired: int = 0
    kept: dict[int, Sent] = field(default_factory=dict)
    gone: list[Sent] = field(default_factory=list)
    is_reinstalled: bool = False

    def make(self, count: int, skip: int, now: int) -> Sent | None:
        """Make a batch of reports of slots that are over; of none there is no batch."""
        slots = tuple(range(self.next_slot, now, 1 + skip))[: count + 1]
        if not slots:
            return None
        sent = (self.name, self.next, slots, tuple((slot * 5 + skip) % CODES for slot in slots))
        self.kept[self.next] = sent
        self.next, self.next_slot = self.next + 1, slots[-1] + 1
        self.created += len(slots)
        return sent

    def give_up(self, batches: int) -> None:
        """Drop the oldest batches for their age or for want of room."""
        for number in sorted(self.kept)[:batches]:
            self.gone.append(self.kept.pop(number))
            self.expired += len(self.gone[-1][2])

    def reinstall(self, now: int) -> None:
        """Begin anew at the next slot, with a number that no batch can have had."""
        self.kept.clear()
        self.is_reinstalled = True
        self.first = self.next = self.next_slot = now + 1
        self.created = self.expired = 0

    def status(self) -> Message:
        """Return its own account."""
        oldest = min(self.kept, default=self.next)
        told = {"first": self.first, "expired": self.expired}
        return status(self.name, self.created, following=self.next, oldest=oldest, **told)


class World:
    """Everybody, everything that was ever sent, and everything that was ever counted."""

    def __init__(self, house: House, homes: int = 2) -> None:
        self.house = house
        self.now = START + DAY
        self.homes = [Home(f"home-{at}") for at in range(homes)]
        self.made: list[Sent] = []
        self.counted: dict[tuple[str, int], int] = {}
        self.rejected: set[tuple[str, int]] = set()  # batches that were settled without counting

    def live(self, seed: int, days: int) -> None:
        """Let that many actions happen, the same for the same seed."""
        rng = np.random.default_rng(seed)
        names = rng.choice(NAMES, days, p=np.array(WEIGHTS) / sum(WEIGHTS)).tolist()
        self.play(zip(names, *rng.integers(0, 200, (2, days)).tolist(), strict=True))

    def play(self, actions: Iterable[Action]) -> None:
        """Do as told, with what must always hold checked after each flush."""
        table: dict[str, Callable[[int, int], None]] = {
            "make": self._make,
            "bring": self._bring,
            "lie": self._lie,
            "wait": lambda one, _: self._wait(one),
            "resend": lambda one, _: self._resend(self._home(one)),
            "tell": lambda one, _: self._flush([self._home(one).status()], []),
            "receipt": lambda one, _: self._receipt(self._home(one)),
            "give up": lambda one, two: self._home(one).give_up(two % 3),
            "reinstall": lambda one, _: self._home(one).reinstall(self.now),
        }
        for name, one, two in actions:
            table[name](one, two)

    def settle(self) -> None:
        """Do as devices do in the end: send what no receipt covers until there is none."""
        self.now += DAY
        for home in self.homes:
            for _ in range(80):
                self._resend(home)
                self._flush([home.status()], [])
                self._receipt(home)
                if not home.kept:
                    break
            self._flush([home.status()], [])
            assert not home.kept

    def check(self) -> None:
        """Assert that every honest report counted once, or is told as what became of it."""
        records = self.house.records()
        for home in self.homes:
            record = records[home.name, STREAM]
            assert record.counted == sum(device == home.name for device, _ in self.counted)
            if home.is_reinstalled:  # its account begins anew; what it had sent may still come
                continue
            lost = [sent for sent in home.gone if (home.name, sent[2][0]) not in self.counted]
            assert record.created == home.created
            assert record.pending == 0
            missing = sum(len(sent[2]) for sent in lost) - record.given_up
            assert 0 <= missing <= record.rejected  # given up and yet brought, after its time
            assert record.counted + record.rejected + record.given_up == home.created

    def _home(self, one: int) -> Home:
        return self.homes[one % len(self.homes)]

    def _make(self, one: int, two: int) -> None:
        sent = self._home(one).make(two % 7, two // 7 % 3, self.now)
        if sent is not None:
            self.made.append(sent)

    def _bring(self, one: int, two: int) -> None:
        """Deliver up to eight of all batches ever made, in an order of their own."""
        if self.made:
            picked = [self.made[(one + at * (1 + two % 5)) % len(self.made)] for at in range(8)]
            self._deliver(picked[: 1 + two % 8])

    def _lie(self, one: int, two: int) -> None:
        """Jump anywhere, contradict what was sent before, or send what must be refused."""
        near = 1 + one % 9
        number = (near, near, near, 1 + one, self.now - one % DAY, (1 << 32) - 1)[two % 6]
        close = self.now - 31 + one % 31
        first = (close, close, self.now - one, self.now + one)[two // 6 % 4]
        slots = tuple(range(first, first + 1 + two % 5))
        codes = tuple(slot % CODES + CODES * (two % 4 == 0) for slot in slots)
        self._deliver([("liar", number, slots, codes)])

    def _wait(self, one: int) -> None:
        """A slot, hours, a day, and at times the thirty days after which a device sends again."""
        self.now += (1, 9, DAY, 30 * DAY if one % 3 == 0 else 2)[one % 4]

    def _resend(self, home: Home) -> None:
        self._deliver([home.kept[number] for number in sorted(home.kept)])

    def _receipt(self, home: Home) -> None:
        """Let the device forget what is covered: that must be counted, or rejected and told."""
        covers = self._covered(home)
        if covers is None:
            return
        for number in [number for number in home.kept if covers.covers(number)]:
            _, _, slots, _ = home.kept.pop(number)
            counted = {(home.name, slot) in self.counted for slot in slots}
            assert counted == {True} or (home.name, number) in self.rejected

    def _covered(self, home: Home) -> StreamReceipt | None:
        record = self.house.records().get((home.name, STREAM))
        return None if record is None else build_receipt([(STREAM, record.state)]).streams[0]

    def _deliver(self, sent: list[Sent]) -> None:
        messages = [report(n, slots, codes, device=who) for who, n, slots, codes in sent]
        self._flush(messages, sent)

    def _flush(self, messages: list[Message], sent: list[Sent]) -> None:
        changes = self.house.take(*messages, by=rules(now=self.now))
        for arrival, *_ in changes.counted:
            for slot, code in zip(arrival.slots.tolist(), arrival.codes.tolist(), strict=True):
                assert (arrival.device, slot) not in self.counted  # never twice
                assert slot <= self.now
                self.counted[arrival.device, slot] = code
        pairs = ((slot // BUCKET, code) for (_, slot), code in self.counted.items())
        assert self.house.counts() == Counter(pairs)
        self._note_rejected(sent)

    def _note_rejected(self, sent: list[Sent]) -> None:
        """Of what an honest device keeps only what is too old is settled without being counted."""
        records = self.house.records()
        kept = {(home.name, number) for home in self.homes for number in home.kept}
        for who, number, slots, _ in sent:
            if (who, number) not in kept or (who, slots[0]) in self.counted:
                continue
            record = records.get((who, STREAM))
            if record is not None and record.state.receipt(STREAM).covers(number):
                assert slots[0] + WINDOW < self.now
                self.rejected.add((who, number))
