"""What one flush counts in one place: codes by bucket, who reported, and slots of devices there."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from aggregator.counting.presence import away_after, in_buckets, present
from aggregator.counting.reporters import reporters_of
from aggregator.counting.tally import Tally, count_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from aggregator.counting.records import Arrival, Cell, PresenceKey
    from aggregator.counting.refusals import StreamRules
    from aggregator.counting.seen_batches import Placed
    from aggregator.counting.tally import Part, Sparse

    Ints = NDArray[np.int64]
    Whose = tuple[int, int]  # group and class

T = TypeVar("T")


class _Frames:
    """Frames of one stream; the columns of what is added up are made once all are in."""

    def __init__(self, rules: StreamRules) -> None:
        self.rules = rules
        self.frames: list[tuple[Arrival, Placed, Whose]] = []

    @cached_property
    def counts(self) -> Ints:
        """How many reports each frame has."""
        return np.array([one.head.count for one, _, _ in self.frames])

    @cached_property
    def parts(self) -> tuple[list[tuple[int, int, int]], Ints]:
        """The parts that there are (epoch, group, class), and the part of each frame."""
        return _numbered((one.head.epoch, *whose) for one, _, whose in self.frames)

    @cached_property
    def devices(self) -> tuple[list[str], Ints]:
        """The devices that there are, and the device of each frame."""
        return _numbered(one.device for one, _, _ in self.frames)

    @cached_property
    def of(self) -> Ints:
        """The part of each report."""
        return np.repeat(self.parts[1], self.counts)

    @cached_property
    def every_slot(self) -> Ints:
        """The slot of each report."""
        return np.concatenate([one.slots for one, _, _ in self.frames])

    @cached_property
    def every_code(self) -> Ints:
        """The code of each report."""
        return np.concatenate([one.codes for one, _, _ in self.frames])

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
        mine = self._streams.get(arrival.head.stream)
        if mine is None:
            mine = self._streams[arrival.head.stream] = _Frames(rules)
        mine.frames.append((arrival, placed, whose))

    def tally(self) -> Tally:
        """Return the counts."""
        found: dict[Part, Sparse] = {}
        for stream, mine in self._streams.items():
            named = [(stream, *part) for part in mine.parts[0]]
            found |= count_columns(named, mine.of, mine.buckets, mine.every_code)
        return Tally(found)

    def reporters(self) -> Mapping[Cell, bytes]:
        """Return who reported, by stream, epoch, group, class and bucket."""
        found: dict[Cell, bytes] = {}
        for stream, mine in self._streams.items():
            plans, every = mine.rules.plans, mine.parts[0]
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
            devices, owner = mine.devices
            owners = owner[np.searchsorted(ends, at, side="right")]
            streams, others = map(np.flatnonzero, kinds)
            both = np.concatenate([streams, others])
            is_survey = np.arange(len(both)) >= len(streams)
            sets = reporters_of(cells[both], owners[both], is_survey, devices)
            for cell, who in sets.items():
                found[stream, *every[cell >> bits], first + (cell & (1 << bits) - 1)] = who
        return found

    def presence(self) -> Mapping[PresenceKey, int]:
        """Return device-slots by (stream, bucket, group, class)."""
        found: dict[PresenceKey, int] = {}
        for stream, mine in self._streams.items():
            rules, (parts, part_of) = mine.rules, mine.parts
            after = np.array([one.after for _, one, _ in mine.frames])
            before = np.array(
                [-1 if one.before is None else one.before for _, one, _ in mine.frames]
            )
            silences = np.array([away_after(rules.slot_seconds, part[-1]) for part in parts])
            silence = silences[part_of]
            batches, firsts, lasts = present(mine.every_slot, mine.counts, after, before, silence)
            places: dict[Whose, int] = {}
            whose = [places.setdefault(part[1:], len(places)) for part in parts]
            of = np.array(whose)[part_of[batches]]
            slots = in_buckets(firsts, lasts, rules.bucket_slots, of)
            named = list(places)
            for (bucket, at), count in slots.items():
                found[stream, bucket, *named[at]] = count
        return found


def _numbered(keys: Iterable[T]) -> tuple[list[T], Ints]:
    """Return the keys that there are, and the place of each in that list."""
    at: dict[T, int] = {}
    places = [at.setdefault(one, len(at)) for one in keys]
    return list(at), np.array(places)
