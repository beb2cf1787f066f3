"""One flush: frames and statuses in, what the store must change out. A pure function of its input.

The store loads the records named by `wanted`, calls `settle` and writes the Changes, all in one
transaction; acknowledging comes after. Because a batch that was settled before is recognised by the
records, a flush that is repeated after a crash changes nothing twice. Source: docs/design.md, The
aggregator.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from aggregator.counting.accounts import is_plausible
from aggregator.counting.classes import UNTOLD, class_of
from aggregator.counting.flush_counts import Counting
from aggregator.counting.frames import CountedFrames, FrameBatch
from aggregator.counting.records import Again, Changes, HeldCounts, Key, Known, Marked, Member
from aggregator.counting.refusals import Reason, Rules, judge_all
from aggregator.counting.seen_batches import ArrivedBatch
from aggregator.counting.settlement import NO_STREAM, Settlement
from aggregator.counting.watching import look_at
from edge_ldp.arrays import Ints
from edge_ldp.protocol.messages import Status

_PLAIN = Member()
NONE: Mapping[Key, Again] = MappingProxyType({})
_NOT_BELIEVED = "its account: more reports than slots"  # named beside what the device refuses


def wanted(frames: FrameBatch, statuses: Mapping[str, Status]) -> frozenset[Key]:
    """Return the keys of the records that `settle` will look at."""
    told = {(device, s.stream) for device, status in statuses.items() for s in status.streams}
    return frozenset(frames.keys | told)


def settle(  # noqa: PLR0913, PLR0917 (what a flush is made of)
    frames: FrameBatch,
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
    reports = _Reports(known, rules, work, frames.ordered())
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
    told = {device: class_of(status.chance, status.effect) for device, status in statuses.items()}
    return reports.changes(accepted, told)


class _Reports:
    """What a flush's reports add to the counts, and to what is watched of their devices."""

    def __init__(self, known: Known, rules: Rules, work: Settlement, frames: FrameBatch) -> None:
        self._known, self._rules, self._work, self._frames = known, rules, work, frames
        placed = np.array(self._placed(), np.int64).reshape(-1, 3)
        self._places, self._after, self._before = placed.T

    def _placed(self) -> list[tuple[int, int, int]]:
        """Settle the frames, in their order; return the places of those that count.

        Beside each the counted slots next to it, -1 where there are none.
        """
        frames, work, found = self._frames, self._work, []
        columns = (frames.devices, *frames.heads.tolist(), frames.lasts.tolist(), frames.digests)
        rows = zip(*columns, judge_all(frames, self._rules), strict=True)
        for at, row in enumerate(rows):
            device, stream, number, _, first, count, series, _, last, digest, reason = row
            key = device, stream
            if device not in work.heard and not work.enrols(device):
                work.refuse(Reason.DEVICE, NO_STREAM, count)
            elif reason is not None and not reason.is_final:
                work.refuse(reason, NO_STREAM if reason is Reason.STREAM else stream, count)
            elif (
                reason is None
                and (after := work.follow(key, count, first, last, number, digest, series))
                is not None
            ):
                found.append((at, after, -1))
            else:
                batch = ArrivedBatch(number, first, last, digest, reason is None, series)
                placed = work.place(key, batch, count, reason)
                if placed is not None:
                    _, after, before = placed
                    found.append((at, after, -1 if before is None else before))
        return found

    def changes(self, statuses: Mapping[str, Status], told: Mapping[str, int]) -> Changes:
        """Return what changed; `told`: classes of devices by their statuses."""
        counted, is_held = self._counted(told)
        watched, marked = look_at(
            counted.frames, self._rules.streams, self._known.watched, self._rules.triples
        )
        work, free = self._work, self._counting(counted, np.flatnonzero(~is_held))
        frames, held = counted.frames, {}
        for owner in np.unique(frames.owner[is_held]).tolist():
            mine = self._counting(counted, np.flatnonzero(frames.owner == owner))
            held[frames.names[owner]] = HeldCounts(mine.tally(), mine.presence())
        return Changes(
            records=work.records,
            statuses=statuses,
            tally=free.tally(),
            presence=free.presence(),
            refused=work.refused,
            enrolled=work.enrolled,
            gapped=work.gapped,
            settled=work.settled,
            watched=watched,
            marked=marked,
            counted=counted,
            held=held,
            holds=self._holds(marked),
            reporters=free.reporters(),
        )

    def _counted(self, told: Mapping[str, int]) -> tuple[CountedFrames, NDArray[np.bool_]]:
        """Return the frames that count, with whose they are, and which of them are held."""
        frames, members = self._frames.some(self._places), self._known.members
        every = [members.get(name, _PLAIN) for name in frames.names]
        classes = [
            UNTOLD if one.held else told.get(name, UNTOLD) or one.cls  # until it is released
            for name, one in zip(frames.names, every, strict=True)
        ]
        groups, is_held = [one.group for one in every], [one.held for one in every]
        columns = (np.array(one, np.int64)[frames.owner] for one in (groups, classes, is_held))
        of_groups, of_classes, held = columns
        return CountedFrames(frames, of_groups, of_classes), held > 0

    def _counting(self, counted: CountedFrames, places: Ints) -> Counting:
        return Counting(
            counted.some(places), self._after[places], self._before[places], self._rules.streams
        )

    def _holds(self, marked: Mapping[Key, Marked]) -> frozenset[str]:
        """Return the devices that these marks hold: not those that an operator released before."""
        if not self._rules.marks_hold:
            return frozenset()
        members = {device: self._known.members.get(device, _PLAIN) for device, _ in marked}
        return frozenset(name for name, one in members.items() if not (one.held or one.cleared))
