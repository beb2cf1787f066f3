"""What one flush counts in one place: codes by bucket, who reported, and slots of devices there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from aggregator.counting.frames import EPOCH, STREAM
from aggregator.counting.presence import away_after, in_buckets, present
from aggregator.counting.reporters import reporters_of
from aggregator.counting.tally import Tally, count_columns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from aggregator.counting.frames import CountedFrames
    from aggregator.counting.records import Cell, PresenceKey
    from aggregator.counting.refusals import StreamRules
    from aggregator.counting.tally import Part, Sparse

    Ints = NDArray[np.int64]
    Whose = tuple[int, int]  # group and class


class _OfStream:
    """Frames of one stream that count: `after`, `before` are the counted slots next to each."""

    def __init__(
        self, counted: CountedFrames, after: Ints, before: Ints, rules: StreamRules
    ) -> None:
        self.frames, self.after, self.before, self.rules = counted.frames, after, before, rules
        found: dict[tuple[int, int, int], int] = {}
        epochs = self.frames.heads[EPOCH].tolist()
        whose = zip(epochs, counted.groups.tolist(), counted.classes.tolist(), strict=True)
        # the parts that there are (epoch, group, class), and the part of each frame and report
        self.part_of = np.array([found.setdefault(one, len(found)) for one in whose])
        self.parts = [*found]
        self.of = np.repeat(self.part_of, self.frames.counts)
        self.buckets = self.frames.slots // rules.bucket_slots


class Counting:
    """Frames that count, to be added up: `after`, `before` are the counted slots next to each."""

    def __init__(
        self, counted: CountedFrames, after: Ints, before: Ints, rules: Mapping[int, StreamRules]
    ) -> None:
        streams = counted.frames.heads[STREAM]
        self._streams: dict[int, _OfStream] = {}
        for stream in np.unique(streams).tolist():
            mine = np.flatnonzero(streams == stream)
            self._streams[stream] = _OfStream(
                counted.some(mine), after[mine], before[mine], rules[stream]
            )

    def tally(self) -> Tally:
        """Return the counts."""
        found: dict[Part, Sparse] = {}
        for stream, mine in self._streams.items():
            named = [(stream, *part) for part in mine.parts]
            found |= count_columns(named, mine.of, mine.buckets, mine.frames.codes)
        return Tally(found)

    def reporters(self) -> Mapping[Cell, bytes]:
        """Return who reported, by stream, epoch, group, class and bucket."""
        found: dict[Cell, bytes] = {}
        for stream, mine in self._streams.items():
            plans, every, frames = mine.rules.plans, mine.parts, mine.frames
            surveys_from = np.array([plans[epoch].surveys_from for epoch, _, _ in every])
            surveys = frames.codes >= surveys_from[mine.of]
            # a frame's slots rise: what it has in a bucket stands together
            begins = np.append(True, mine.buckets[1:] != mine.buckets[:-1])
            begins[frames.begins] = True
            at = np.flatnonzero(begins)
            kinds = [np.logical_or.reduceat(one, at) for one in (~surveys, surveys)]
            first = int(mine.buckets.min())
            bits = (int(mine.buckets.max()) - first).bit_length()
            cells = mine.of[at] << bits | mine.buckets[at] - first
            owners = frames.owner[np.searchsorted(frames.ends, at, side="right")]
            streams, others = map(np.flatnonzero, kinds)
            both = np.concatenate([streams, others])
            is_survey = np.arange(len(both)) >= len(streams)
            sets = reporters_of(cells[both], owners[both], is_survey, frames.names)
            for cell, who in sets.items():
                found[stream, *every[cell >> bits], first + (cell & (1 << bits) - 1)] = who
        return found

    def presence(self) -> Mapping[PresenceKey, int]:
        """Return device-slots by (stream, bucket, group, class)."""
        found: dict[PresenceKey, int] = {}
        for stream, mine in self._streams.items():
            rules, parts, frames = mine.rules, mine.parts, mine.frames
            silences = np.array([away_after(rules.slot_seconds, part[-1]) for part in parts])
            batches, firsts, lasts = present(
                frames.slots, frames.counts, mine.after, mine.before, silences[mine.part_of]
            )
            places: dict[Whose, int] = {}
            whose = [places.setdefault(part[1:], len(places)) for part in parts]
            of = np.array(whose)[mine.part_of[batches]]
            slots = in_buckets(firsts, lasts, rules.bucket_slots, of)
            named = list(places)
            for (bucket, at), count in slots.items():
                found[stream, bucket, *named[at]] = count
        return found
