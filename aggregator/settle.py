"""One flush: frames and statuses in, what the store must change out. A pure function of its input.

The store loads the records named by `wanted`, calls `settle` and writes the Changes, all in one
transaction; acknowledging comes after. Because a batch that was settled before is recognised by the
records, a flush that is repeated after a crash changes nothing twice. Source: DESIGN §10.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict, replace
from hashlib import blake2s
from typing import TYPE_CHECKING

import numpy as np

from aggregator.guard import MARK_RATE, Reason, Rules, judge
from aggregator.poisoning_flush import observe_flush
from aggregator.presence import in_buckets, present, silence_of
from aggregator.receipts import Batch, Outcome, Placed, declare, place
from aggregator.records import Arrival, Changes, Key, Known, Marked, Record, WatchKey
from aggregator.tally import count_batches
from edge_ldp.vectorized import frame_arrays

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from aggregator.poisoning_sets import Watch
    from edge_ldp.messages import Status, StreamStatus

    Ints = NDArray[np.int64]

DIGEST_BYTES = 8
NO_STREAM = -1  # where a refusal has no stream that can be believed


def read_frame(device: str, payload: bytes) -> Arrival:
    """Return a frame as an arrival; raises WireError."""
    head, slots, codes = frame_arrays(payload)
    return Arrival(device, head, slots, codes, blake2s(payload, digest_size=DIGEST_BYTES).digest())


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
    work = _Settling(known, rules)
    for reason, messages in broken.items():
        work.refuse(reason, NO_STREAM, 0, messages)
    for arrival in sorted(arrivals, key=_order):
        work.take(arrival)
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
        self._counted: list[tuple[int, int, int, Ints, Ints]] = []
        self._frames: list[Arrival] = []
        self._watched = known.watched
        self._observed: dict[tuple[int, str], _Observed] = {}
        self._presence: Counter[tuple[int, int]] = Counter()
        self._messages: Counter[tuple[str, int]] = Counter()
        self._reports: Counter[tuple[str, int]] = Counter()

    def enrolled(self, device: str) -> bool:
        """Say whether the device may be heard; enrols it where enrolment is open."""
        listed = self._rules.devices
        if device in self._devices and (listed is None or device in listed):
            return True
        if not self._rules.enrols(device, self._device_count):
            return False
        self._devices.add(device)
        self._device_count += 1
        return True

    def take(self, arrival: Arrival) -> None:
        """Settle one frame."""
        head, rules = arrival.head, self._rules
        if not self.enrolled(arrival.device):
            self.refuse(Reason.DEVICE, NO_STREAM, head.count)
            return
        reason = judge(head, arrival.slots, arrival.codes, rules)
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
        old = self._records.get((device, told.stream), Record())
        self._records[device, told.stream] = declared(old, told)
        self._changed.add((device, told.stream))

    def changes(self, statuses: Mapping[str, Status]) -> Changes:
        """Return what changed."""
        watched, marked = self._looked()
        return Changes(
            records={key: self._records[key] for key in self._changed},
            statuses=statuses,
            tally=count_batches(self._counted),
            presence=self._presence,
            refused={key: (n, self._reports[key]) for key, n in self._messages.items()},
            enrolled=frozenset(self._devices - self._known_devices),
            gapped=frozenset(self._gapped),
            news=frozenset(self.news),
            watched=watched,
            marked=marked,
            counted=tuple(self._frames),
        )

    def _place(self, arrival: Arrival, reason: Reason | None) -> None:
        head = arrival.head
        key = (arrival.device, head.stream)
        old = self._records.get(key, Record())
        first, last = int(arrival.slots[0]), int(arrival.slots[-1])
        batch = Batch(head.batch, first, last, arrival.digest, counts=reason is None)
        state, placed = place(old.state, batch)
        outcome = placed.outcome
        if outcome in (Outcome.NEW, Outcome.LATE) and reason is None:
            self._count(arrival, placed)
        else:
            why = reason if reason is not None and outcome.settles else outcome
            self.refuse(why, head.stream, head.count)
        self._records[key] = account(replace(old, state=state), outcome, batch, head.count)
        self._changed.add(key)
        self.news.add(arrival.device)
        if len(state.gaps) > len(old.state.gaps) or outcome is Outcome.GAP_LIMIT:
            self._gapped.add(arrival.device)

    def _count(self, arrival: Arrival, placed: Placed) -> None:
        stream = arrival.head.stream
        rules = self._rules.streams[stream]
        length = rules.bucket_slots
        self._counted.append((stream, arrival.head.epoch, length, arrival.slots, arrival.codes))
        self._frames.append(arrival)
        watch = rules.plans[arrival.head.epoch].watch
        if watch is not None:
            seen = self._observed.setdefault((stream, watch.law), _Observed(watch))
            seen.codes[arrival.device].append(arrival.codes)
        for first, last in present(arrival.slots, placed, silence_of(rules.slot_seconds)):
            for bucket, slots in in_buckets(first, last, length):
                self._presence[stream, bucket] += slots

    def _looked(self) -> tuple[dict[WatchKey, bytes], dict[Key, Marked]]:
        """Return what is kept of the devices counted for their bounds, and those beyond them."""
        watched: dict[WatchKey, bytes] = {}
        marked: dict[Key, Marked] = {}
        for (stream, law), seen in self._observed.items():
            keys = [(device, stream, law) for device in seen.codes]
            frames = [np.concatenate(codes) for codes in seen.codes.values()]
            after, marks = observe_flush(
                seen.watch,
                [self._watched.get(key) for key in keys],
                np.repeat(np.arange(len(keys)), [len(codes) for codes in frames]),
                np.concatenate(frames),
                rate=MARK_RATE,
                devices=self._rules.triples,
            )
            watched.update(zip(keys, after, strict=True))
            for at, found in marks.items():
                worst = min(found, key=lambda mark: mark.chance)
                marked[keys[at][:2]] = Marked(**asdict(worst))
        return watched, marked


class _Observed:
    """Codes that were counted under one law in one flush, by device."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.codes: defaultdict[str, list[Ints]] = defaultdict(list)


def declared(old: Record, told: StreamStatus) -> Record:
    """Return the record with what its device says of the stream."""
    lost_state = 0 < old.first < told.first
    return replace(
        old,
        state=declare(old.state, told),
        created=told.created,
        expired=told.expired,
        first=told.first,
        next=told.next,
        before=old.counted + old.rejected if lost_state else old.before,
    )


def account(record: Record, outcome: Outcome, batch: Batch, reports: int) -> Record:
    """Return the record with one frame's reports put where they belong."""
    if outcome in (Outcome.NEW, Outcome.LATE) and batch.counts:
        first = record.first_slot
        lowest = batch.first_slot if first is None else min(first, batch.first_slot)
        return replace(record, counted=record.counted + reports, first_slot=lowest)
    if outcome.settles:
        return replace(record, rejected=record.rejected + reports)
    if outcome is Outcome.CONFLICT:
        return replace(record, conflicts=record.conflicts + reports)
    if outcome is Outcome.DUPLICATE:
        return replace(record, duplicates=record.duplicates + reports)
    return record


def _order(arrival: Arrival) -> tuple[str, int, int]:
    return arrival.device, arrival.head.stream, arrival.head.batch
