"""What one flush counts in one place: codes by bucket, who reported, and slots of devices there."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from aggregator.counting.presence import away_after, in_buckets, present
from aggregator.counting.reporters import reporters_of
from aggregator.counting.tally import Tally, count_columns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from aggregator.counting.records import Arrival, Cell, PresenceKey
    from aggregator.counting.refusals import StreamRules
    from aggregator.counting.seen_batches import Placed
    from aggregator.counting.tally import Part, Sparse

    Ints = NDArray[np.int64]
    Whose = tuple[int, int]  # group and class


@dataclass(eq=False)
class _Frames:
    """Frames of one stream as columns, an entry a frame; arrays of all reports once all are in."""

    rules: StreamRules
    parts: dict[tuple[int, int, int], int] = field(default_factory=dict)  # epoch, group, class
    devices: dict[str, int] = field(default_factory=dict)
    slots: list[Ints] = field(default_factory=list)
    codes: list[Ints] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    part: list[int] = field(default_factory=list)
    owner: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    before: list[int] = field(default_factory=list)

    @cached_property
    def of(self) -> Ints:
        """The part of each report."""
        return np.repeat(self.part, self.counts)

    @cached_property
    def every_slot(self) -> Ints:
        """The slot of each report."""
        return np.concatenate(self.slots)

    @cached_property
    def every_code(self) -> Ints:
        """The code of each report."""
        return np.concatenate(self.codes)

    @cached_property
    def buckets(self) -> Ints:
        """The bucket of each report."""
        return self.every_slot // self.rules.bucket_slots


class Counting:
    """Frames that count, gathered and then added up at once."""

    def __init__(self) -> None:
        self._streams: dict[int, _Frames] = {}

    def add(self, arrival: Arrival, placed: Placed, whose: Whose, rules: StreamRules) -> None:
        """Count one frame of a device of the group and class."""
        head = arrival.head
        mine = self._streams.get(head.stream)
        if mine is None:
            mine = self._streams[head.stream] = _Frames(rules)
        mine.slots.append(arrival.slots)
        mine.codes.append(arrival.codes)
        mine.counts.append(head.count)
        mine.part.append(mine.parts.setdefault((head.epoch, *whose), len(mine.parts)))
        mine.owner.append(mine.devices.setdefault(arrival.device, len(mine.devices)))
        mine.after.append(placed.after)
        mine.before.append(-1 if placed.before is None else placed.before)

    def tally(self) -> Tally:
        """Return the counts."""
        found: dict[Part, Sparse] = {}
        for stream, mine in self._streams.items():
            named = [(stream, *part) for part in mine.parts]
            found |= count_columns(named, mine.of, mine.buckets, mine.every_code)
        return Tally(found)

    def reporters(self) -> Mapping[Cell, bytes]:
        """Return who reported, by stream, epoch, group, class and bucket."""
        found: dict[Cell, bytes] = {}
        for stream, mine in self._streams.items():
            plans, every = mine.rules.plans, list(mine.parts)
            surveys_from = np.array([plans[epoch].surveys_from for epoch, _, _ in every])
            surveys = mine.every_code >= surveys_from[mine.of]
            # a frame's slots rise: what it has in a bucket stands together
            begins = np.append(True, mine.buckets[1:] != mine.buckets[:-1])
            ends = np.cumsum(mine.counts)
            begins[ends[:-1]] = True
            at = np.flatnonzero(begins)
            kinds = [np.logical_or.reduceat(one, at) for one in (~surveys, surveys)]
            first = int(mine.buckets.min())
            bits = (int(mine.buckets.max()) - first).bit_length()
            cells = mine.of[at] << bits | mine.buckets[at] - first
            owners = np.array(mine.owner)[np.searchsorted(ends, at, side="right")]
            streams, others = map(np.flatnonzero, kinds)
            both = np.concatenate([streams, others])
            is_survey = np.arange(len(both)) >= len(streams)
            sets = reporters_of(cells[both], owners[both], is_survey, list(mine.devices))
            for cell, who in sets.items():
                found[stream, *every[cell >> bits], first + (cell & (1 << bits) - 1)] = who
        return found

    def presence(self) -> Mapping[PresenceKey, int]:
        """Return device-slots by (stream, bucket, group, class)."""
        found: dict[PresenceKey, int] = {}
        for stream, mine in self._streams.items():
            rules = mine.rules
            counts, after, before = map(np.array, (mine.counts, mine.after, mine.before))
            silences = np.array([away_after(rules.slot_seconds, part[-1]) for part in mine.parts])
            silence = silences[np.array(mine.part)]
            batches, firsts, lasts = present(mine.every_slot, counts, after, before, silence)
            places: dict[Whose, int] = {}
            whose = [places.setdefault(part[1:], len(places)) for part in mine.parts]
            of = np.array(whose)[np.array(mine.part)[batches]]
            slots = in_buckets(firsts, lasts, rules.bucket_slots, of)
            named = list(places)
            for (bucket, at), count in slots.items():
                found[stream, bucket, *named[at]] = count
        return found
