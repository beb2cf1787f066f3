"""Curated streams coming in: frames of released values judged and settled beside the reports.

A device's curated stream is its own: its values are stored as they came and never added to a
fleet's counts. Batches are numbered, receipted and accounted for as those of reports (receipts.py),
under keys from 256. A frame is taken or refused whole. Source: DESIGN §8, §10, §12.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from hashlib import blake2s
from typing import TYPE_CHECKING

from aggregator.accounts import account, declared
from aggregator.guard import Reason, Rules
from aggregator.receipts import Batch, Outcome, place
from aggregator.records import Changes, Key, Known, Record
from aggregator.settle import DIGEST_BYTES, NO_STREAM
from edge_ldp.continual import Shape
from edge_ldp.device.errors import ParameterError
from edge_ldp.released import FIRST_KEY, ReleasedFrame, decode_released

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from edge_ldp.messages import Status
    from edge_ldp.released import PublicDesign


@dataclass(frozen=True, slots=True)
class ReleasedArrival:
    """One well-formed frame of released values, from the device that its topic names."""

    device: str
    frame: ReleasedFrame
    digest: bytes

    @property
    def key(self) -> Key:
        """The device and stream, in records and receipts."""
        return self.device, self.frame.key


def read_released(device: str, payload: bytes) -> ReleasedArrival:
    """Return a frame as an arrival; raises WireError."""
    frame = decode_released(payload)  # first: hashing 10 MB of anything else takes 20 ms (REP-12)
    return ReleasedArrival(device, frame, blake2s(payload, digest_size=DIGEST_BYTES).digest())


def wanted_released(arrivals: Iterable[ReleasedArrival]) -> frozenset[Key]:
    """Return the keys of the records that `settle_released` will look at, beside the statuses'."""
    return frozenset(one.key for one in arrivals)


def settle_released(
    arrivals: Sequence[ReleasedArrival],
    statuses: Mapping[str, Status],
    known: Known,
    rules: Rules,
    changes: Changes,
) -> Changes:
    """Return the flush's changes with its curated streams settled too, each in batch order.

    `changes`: what `settle` made of the same flush; its enrolments hold.
    """
    if not arrivals and not any(
        s.stream >= FIRST_KEY for t in statuses.values() for s in t.streams
    ):
        return changes
    work = _Settling(known, rules, changes)
    for arrival in sorted(arrivals, key=lambda one: (*one.key, one.frame.batch)):
        work.take(arrival)
    for device, status in changes.statuses.items():
        for one in status.streams:
            if one.stream >= FIRST_KEY:
                work.update((device, one.stream), declared(work.record(device, one.stream), one))
    return work.changes()


def judge_released(frame: ReleasedFrame, rules: Rules) -> Reason | None:
    """Return why an enrolled device's frame may not count, or None."""
    try:
        shape_of(frame.design)
    except ParameterError:
        return Reason.RANGE
    seconds = frame.design.slot_seconds
    if frame.slots[-1] * seconds > rules.now_s + rules.tolerance_s:
        return Reason.EARLY
    if (frame.slots[0] + 1) * seconds + rules.window_s < rules.closing_s:
        return Reason.LATE
    return None


def shape_of(design: PublicDesign) -> Shape:
    """Return the noise's structure; raises ParameterError for one that cannot be."""
    return Shape(design.kind, design.fanout, design.chunk, design.pruned)


class _Settling:
    """What a flush's curated streams add to its changes."""

    def __init__(self, known: Known, rules: Rules, changes: Changes) -> None:
        self._rules = rules
        self._base = changes
        self._known = dict(known.records)
        self._records = dict(changes.records)
        self._members = known.members
        self._devices = set(known.devices | changes.enrolled)
        self._enrolled = set(changes.enrolled)
        self._device_count = known.device_count + len(changes.enrolled)
        self._refused = Counter[tuple[str, int]]()
        self._values = Counter[tuple[str, int]]()
        self._released: list[ReleasedArrival] = []
        self._news: set[str] = set()
        self._gapped: set[str] = set()

    def record(self, device: str, key: int) -> Record:
        """Return a record as it stands within the flush."""
        return self._records.get((device, key)) or self._known.get((device, key)) or Record()

    def update(self, key: Key, record: Record) -> None:
        """Put a record."""
        self._records[key] = record

    def take(self, arrival: ReleasedArrival) -> None:
        """Settle one frame."""
        device, frame = arrival.device, arrival.frame
        if not self._enrols(device):
            self._refuse(Reason.DEVICE, NO_STREAM, frame)
            return
        reason = judge_released(frame, self._rules)
        if reason is not None and not reason.is_final:
            self._refuse(reason, frame.key, frame)
            return
        self._place(arrival, reason)

    def changes(self) -> Changes:
        """Return everything that changed."""
        refused = dict(self._base.refused)
        for key, messages in self._refused.items():
            before = refused.get(key, (0, 0))
            refused[key] = (before[0] + messages, before[1] + self._values[key])
        return replace(
            self._base,
            records=self._records,
            refused=refused,
            enrolled=frozenset(self._enrolled),
            news=self._base.news | self._news,
            gapped=self._base.gapped | self._gapped,
            released=tuple(self._released),
        )

    def _place(self, arrival: ReleasedArrival, reason: Reason | None) -> None:
        frame = arrival.frame
        old = self.record(*arrival.key)
        slots, count = frame.slots, len(frame.slots)
        batch = Batch(frame.batch, slots[0], slots[-1], arrival.digest, counts=reason is None)
        state, placed = place(old.state, batch)
        outcome = placed.outcome
        if outcome in (Outcome.NEW, Outcome.LATE) and reason is None:
            self._released.append(arrival)
        else:
            why = reason if reason is not None and outcome.settles else outcome
            self._refuse(why, frame.key, frame)
        self.update(arrival.key, account(old, state, outcome, batch, count))
        self._news.add(arrival.device)
        if len(state.gaps) > len(old.state.gaps) or outcome is Outcome.GAP_LIMIT:
            self._gapped.add(arrival.device)

    def _enrols(self, device: str) -> bool:
        if device in self._devices:
            return self._rules.hears(device, self._members.get(device))
        if not self._rules.enrols(device, self._device_count):
            return False
        self._devices.add(device)
        self._enrolled.add(device)
        self._device_count += 1
        return True

    def _refuse(self, reason: str, stream: int, frame: ReleasedFrame) -> None:
        self._refused[reason, stream] += 1
        self._values[reason, stream] += len(frame.slots)
