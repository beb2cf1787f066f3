"""One flush: frames and statuses in, what the store must change out. A pure function of its input.

The store loads the records named by `wanted`, calls `settle` and writes the Changes, all in one
transaction; acknowledging comes after. Because a batch that was settled before is recognised by the
records, a flush that is repeated after a crash changes nothing twice. Source: DESIGN §10.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from hashlib import blake2s
from typing import TYPE_CHECKING

from aggregator.accounts import account, declared
from aggregator.counting import Counting
from aggregator.guard import Reason, Rules, judge_all
from aggregator.observed import Observed
from aggregator.receipts import Batch, Outcome, Placed, place
from aggregator.records import Apart, Arrival, Changes, Key, Known, Marked, Member, Record
from edge_ldp.vectorized import decode_frames

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from edge_ldp.messages import Status, StreamStatus

DIGEST_BYTES = 8
NO_STREAM = -1  # where a refusal has no stream that can be believed
_PLAIN = Member()
_NEVER_HEARD = Record()


def read_frames(frames: Sequence[tuple[str, bytes]]) -> list[Arrival | None]:
    """Return each payload of a device as an arrival, or None where it is no frame."""
    decoded = decode_frames([payload for _, payload in frames])
    return [
        found and Arrival(device, *found, blake2s(payload, digest_size=DIGEST_BYTES).digest())
        for (device, payload), found in zip(frames, decoded, strict=True)
    ]


def wanted(arrivals: Iterable[Arrival], statuses: Mapping[str, Status]) -> frozenset[Key]:
    """Return the keys of the records that `settle` will look at."""
    keys = {(one.device, one.head.stream) for one in arrivals}
    keys |= {(device, s.stream) for device, status in statuses.items() for s in status.streams}
    return frozenset(keys)


def settle(
    arrivals: Sequence[Arrival],
    statuses: Mapping[str, Status],
    broken: Mapping[str, int],
    known: Known,
    rules: Rules,
) -> Changes:
    """Settle frames, each device's in the order of its batch numbers, then statuses.

    `broken`: messages by reason that are no frame or status of ours; they are only counted.
    """
    rules = rules.retiring(known.retired) if known.retired else rules
    work = _Settling(known, rules)
    for what, messages in broken.items():
        work.refuse(what, NO_STREAM, 0, messages)
    ordered = sorted(arrivals, key=_order)
    for arrival, reason in zip(ordered, judge_all(ordered, rules), strict=True):
        work.take(arrival, reason)
    heard = {}
    for device, status in statuses.items():
        if not work.enrolled(device):
            work.refuse(Reason.DEVICE, NO_STREAM, 0)
            continue
        heard[device] = status
        for told in status.streams:
            work.declare(device, told)
    return work.changes(heard)


class _Settling:
    """The records as they change within one flush."""

    def __init__(self, known: Known, rules: Rules) -> None:
        self.news: set[str] = set()
        self._rules = rules
        self._records = dict(known.records)
        self._known_devices = known.devices
        self._devices = set(known.devices)
        self._device_count = known.device_count
        self._changed: set[Key] = set()
        self._gapped: set[str] = set()
        self._members = known.members
        self._counted = Counting()
        self._apart: defaultdict[str, Counting] = defaultdict(Counting)
        self._frames: list[tuple[Arrival, int]] = []
        self._watched = known.watched
        self._observed = Observed()
        self._messages: Counter[tuple[str, int]] = Counter()
        self._reports: Counter[tuple[str, int]] = Counter()

    def enrolled(self, device: str) -> bool:
        """Say whether the device may be heard; enrols it where enrolment is open."""
        if device in self._devices:
            return self._rules.hears(device, self._members.get(device))
        if not self._rules.enrols(device, self._device_count):
            return False
        self._devices.add(device)
        self._device_count += 1
        return True

    def take(self, arrival: Arrival, reason: Reason | None) -> None:
        """Settle one frame; `reason`: why it may not count, if its device is heard."""
        head = arrival.head
        if not self.enrolled(arrival.device):
            self.refuse(Reason.DEVICE, NO_STREAM, head.count)
            return
        if reason is not None and not reason.is_final:
            known_stream = NO_STREAM if reason is Reason.STREAM else head.stream
            self.refuse(reason, known_stream, head.count)
            return
        self._place(arrival, reason)

    def refuse(self, reason: str, stream: int, reports: int, messages: int = 1) -> None:
        """Count messages that do not count."""
        self._messages[reason, stream] += messages
        self._reports[reason, stream] += reports

    def declare(self, device: str, told: StreamStatus) -> None:
        """Take over what a device says of one stream; unknown streams get no row."""
        if told.stream not in self._rules.streams:
            return
        old = self._records.get((device, told.stream), _NEVER_HEARD)
        self._records[device, told.stream] = declared(old, told)
        self._changed.add((device, told.stream))

    def changes(self, statuses: Mapping[str, Status]) -> Changes:
        """Return what changed."""
        watched, marked = self._observed.look(self._watched, self._rules.triples)
        return Changes(
            records={key: self._records[key] for key in self._changed},
            statuses=statuses,
            tally=self._counted.tally(),
            presence=self._counted.presence(),
            refused={key: (n, self._reports[key]) for key, n in self._messages.items()},
            enrolled=frozenset(self._devices - self._known_devices),
            gapped=frozenset(self._gapped),
            news=frozenset(self.news),
            watched=watched,
            marked=marked,
            counted=tuple(self._frames),
            apart={name: Apart(one.tally(), one.presence()) for name, one in self._apart.items()},
            holds=self._holds(marked),
        )

    def _place(self, arrival: Arrival, reason: Reason | None) -> None:
        head = arrival.head
        key = (arrival.device, head.stream)
        old = self._records.get(key, _NEVER_HEARD)
        last = int(arrival.slots[-1])
        batch = Batch(head.batch, head.first_slot, last, arrival.digest, reason is None)
        state, placed = place(old.state, batch)
        outcome = placed.outcome
        if outcome in (Outcome.NEW, Outcome.LATE) and reason is None:
            self._count(arrival, placed)
        else:
            why = reason if reason is not None and outcome.settles else outcome
            self.refuse(why, head.stream, head.count)
        self._records[key] = account(old, state, outcome, batch, head.count)
        self._changed.add(key)
        self.news.add(arrival.device)
        if len(state.gaps) > len(old.state.gaps) or outcome is Outcome.GAP_LIMIT:
            self._gapped.add(arrival.device)

    def _count(self, arrival: Arrival, placed: Placed) -> None:
        stream = arrival.head.stream
        rules = self._rules.streams[stream]
        member = self._members.get(arrival.device, _PLAIN)
        where = self._apart[arrival.device] if member.held else self._counted
        where.add(arrival, placed, member.group, rules)
        self._frames.append((arrival, member.group))
        watch = rules.plans[arrival.head.epoch].watch
        if watch is not None:
            self._observed.add(arrival, watch)

    def _holds(self, marked: Mapping[Key, Marked]) -> frozenset[str]:
        """Return the devices that these marks hold: not those that an operator released before."""
        if not self._rules.marks_hold:
            return frozenset()
        members = {device: self._members.get(device, _PLAIN) for device, _ in marked}
        return frozenset(name for name, one in members.items() if not (one.held or one.cleared))


def _order(arrival: Arrival) -> tuple[str, int, int]:
    return arrival.device, arrival.head.stream, arrival.head.batch
