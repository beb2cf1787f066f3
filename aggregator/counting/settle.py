"""One flush: frames and statuses in, what the store must change out. A pure function of its input.

The store loads the records named by `wanted`, calls `settle` and writes the Changes, all in one
transaction; acknowledging comes after. Because a batch that was settled before is recognised by the
records, a flush that is repeated after a crash changes nothing twice. Source: docs/design.md, The
aggregator.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from hashlib import blake2s
from types import MappingProxyType
from typing import TYPE_CHECKING

from aggregator.counting.accounts import is_plausible
from aggregator.counting.classes import UNTOLD, class_of
from aggregator.counting.flush_counts import Counting
from aggregator.counting.records import Arrival, Changes, HeldCounts, Member
from aggregator.counting.refusals import Reason, judge_all
from aggregator.counting.seen_batches import ArrivedBatch
from aggregator.counting.settlement import DIGEST_BYTES, NO_STREAM, Settlement
from aggregator.counting.watching import WatchedFrames
from edge_ldp.vectorized import decode_frames

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from aggregator.counting.records import Again, Key, Known, Marked
    from aggregator.counting.refusals import Rules
    from aggregator.counting.seen_batches import Placed
    from edge_ldp.protocol.messages import Status

_PLAIN = Member()
NONE: Mapping[Key, Again] = MappingProxyType({})
_NOT_BELIEVED = "its account: more reports than slots"  # named beside what the device refuses


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


def settle(  # noqa: PLR0913, PLR0917 (what a flush is made of)
    arrivals: Sequence[Arrival],
    statuses: Mapping[str, Status],
    broken: Mapping[str, int],
    known: Known,
    rules: Rules,
    again: Mapping[Key, Again] = NONE,
) -> Changes:
    """Settle frames, each device's in the order of its batch numbers, then statuses.

    `broken`: messages by reason that are no frame or status of ours; they are only counted.
    `again`: frames that were settled before, by device and stream.
    """
    rules = rules.retiring(known.retired) if known.retired else rules
    work = Settlement(known, rules)
    for what, messages in broken.items():
        work.refuse(what, NO_STREAM, 0, messages)
    told = {device: class_of(status.chance, status.effect) for device, status in statuses.items()}
    reports = _Reports(known, rules, work, told)
    ordered = sorted(arrivals, key=_order)
    for arrival, reason in zip(ordered, judge_all(ordered, rules), strict=True):
        reports.settle(arrival, reason)
    for key, one in again.items():
        if work.enrols(key[0]):
            work.place_again(key, one)
        else:
            work.refuse(Reason.DEVICE, NO_STREAM, one.reports, one.messages)
    accepted = {}
    for device, status in statuses.items():
        if not work.enrols(device):
            work.refuse(Reason.DEVICE, NO_STREAM, 0)
            continue
        accepted[device] = status
        for of_stream in status.streams:
            stream = rules.streams.get(of_stream.stream)  # unknown streams get no row
            if stream is None:
                continue
            if is_plausible(of_stream, stream.slot_seconds, rules.now_s):
                work.apply_status(device, of_stream)
            else:
                accepted[device] = replace(status, refusals=(*status.refusals, _NOT_BELIEVED))
    return reports.changes(accepted)


class _Reports:
    """What a flush's reports add to the counts, and to what is watched of their devices."""

    def __init__(
        self, known: Known, rules: Rules, work: Settlement, told: Mapping[str, int]
    ) -> None:
        self._rules = rules
        self._told = told
        self._work = work
        self._members = known.members
        self._watched = known.watched
        self._counted = Counting()
        self._held: defaultdict[str, Counting] = defaultdict(Counting)
        self._frames: list[tuple[Arrival, int, int]] = []
        self._frames_watched = WatchedFrames()

    def settle(self, arrival: Arrival, reason: Reason | None) -> None:
        """Settle one frame; `reason`: why it may not count, if its device may report."""
        head = arrival.head
        if not self._work.enrols(arrival.device):
            self._work.refuse(Reason.DEVICE, NO_STREAM, head.count)
            return
        if reason is not None and not reason.is_final:
            known_stream = NO_STREAM if reason is Reason.STREAM else head.stream
            self._work.refuse(reason, known_stream, head.count)
            return
        last = int(arrival.slots[-1])
        batch = ArrivedBatch(
            head.batch, head.first_slot, last, arrival.digest, reason is None, head.series
        )
        placed = self._work.place((arrival.device, head.stream), batch, head.count, reason)
        if placed is not None:
            self._count(arrival, placed)

    def changes(self, statuses: Mapping[str, Status]) -> Changes:
        """Return what changed."""
        watched, marked = self._frames_watched.look(self._watched, self._rules.triples)
        work = self._work
        return Changes(
            records=work.records,
            statuses=statuses,
            tally=self._counted.tally(),
            presence=self._counted.presence(),
            refused=work.refused,
            enrolled=work.enrolled,
            gapped=work.gapped,
            settled=work.settled,
            watched=watched,
            marked=marked,
            counted=tuple(self._frames),
            held={
                name: HeldCounts(one.tally(), one.presence()) for name, one in self._held.items()
            },
            holds=self._holds(marked),
            reporters=self._counted.reporters(),
        )

    def _count(self, arrival: Arrival, placed: Placed) -> None:
        stream = arrival.head.stream
        rules = self._rules.streams[stream]
        member = self._members.get(arrival.device, _PLAIN)
        cls = self._told.get(arrival.device, UNTOLD) or member.cls
        if member.held:
            cls = UNTOLD  # until it is released
            self._held[arrival.device].add(arrival, placed, (member.group, cls), rules)
        else:
            self._counted.add(arrival, placed, (member.group, cls), rules)
        self._frames.append((arrival, member.group, cls))
        watch = rules.plans[arrival.head.epoch].watch
        if watch is not None:
            self._frames_watched.add(arrival, watch)

    def _holds(self, marked: Mapping[Key, Marked]) -> frozenset[str]:
        """Return the devices that these marks hold: not those that an operator released before."""
        if not self._rules.marks_hold:
            return frozenset()
        members = {device: self._members.get(device, _PLAIN) for device, _ in marked}
        return frozenset(name for name, one in members.items() if not (one.held or one.cleared))


def _order(arrival: Arrival) -> tuple[str, int, int, int]:
    """Return how frames of a device follow each other: by number, and from series to series."""
    head = arrival.head
    return arrival.device, head.stream, head.first_slot if head.series else 0, head.batch
