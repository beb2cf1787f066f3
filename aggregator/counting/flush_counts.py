"""What one flush counts in one place: codes by bucket, who reported, and slots of devices there.

Device-slots tell in how many slots of a time bucket devices were there, reporting or not. A device
that may report in 8 of 97 slots is heard in all 97; one that was silent for longer than it ever is,
as often as it may report (`away_after`), was not there in between. Counts are integers and add up,
like the tally: a batch adds the slots that it makes present, given the counted slots next to it, so
the sum is the same in whatever order batches come. A fleet total is mean × device-slots
(docs/design.md, Estimation).
"""

from collections.abc import Mapping
from functools import lru_cache
from math import ceil

import numpy as np

from aggregator.counting.classes import UNTOLD, slots_a_report
from aggregator.counting.frames import EPOCH, STREAM, CountedFrames
from aggregator.counting.records import Cell, PresenceKey
from aggregator.counting.refusals import StreamRules
from aggregator.counting.reporters import reporters_of
from aggregator.counting.tally import Part, Sparse, Tally, count_columns
from edge_ldp.arrays import Ints

Whose = tuple[int, int]  # group and class

Presence = dict[tuple[int, int], int]  # (bucket, place): slots
PLACE_BITS = 31
_PLACE = (1 << PLACE_BITS) - 1
DAY_S = 86_400
GAPS, LONGEST_DAYS = 6, 7


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


@lru_cache(maxsize=1024)
def away_after(slot_seconds: int, cls: int = UNTOLD) -> int:
    """Return after how many slots without a report a device of a class counts as away.

    One day and a slot, or where it reports seldom six times what a report takes it on average, up
    to a week: of a device that is there all the time next to no slot is lost.
    """
    day = DAY_S // slot_seconds
    return max(day + 1, min(LONGEST_DAYS * day, ceil(GAPS * slots_a_report(cls))))


def present(
    slots: Ints, counts: Ints, after: Ints, before: Ints, silence: Ints
) -> tuple[Ints, Ints, Ints]:
    """Return (batch, first, last) of the slot ranges that counted batches newly make present.

    `slots`: of all batches, one after the other, `counts` of each; `after`, `before`: the counted
    slots next to each, -1 where there are none; `silence`: what each one's device is away after.
    Cost: O(reports), however far slots lie apart.
    """
    ends = np.cumsum(counts)
    starts = ends - counts
    firsts, lasts = slots.copy(), slots.copy()
    near = (after >= 0) & (slots[starts] - after <= silence)
    firsts[starts[near]] = after[near] + 1
    near = (before >= 0) & (before - slots[ends - 1] <= silence)
    lasts[ends[near] - 1] = before[near] - 1
    opens = np.append(True, np.diff(slots) > np.repeat(silence, counts)[1:])
    closes = np.append(opens[1:], True)
    opens[starts] = closes[ends - 1] = True
    batches = np.repeat(np.arange(len(counts)), counts)[opens]
    # where its neighbours lie near each other, they had made all of it present
    new = ~((after >= 0) & (before >= 0) & (before - after <= silence))[batches]
    return batches[new], firsts[opens][new], lasts[closes][new]


def in_buckets(firsts: Ints, lasts: Ints, bucket_slots: int, places: Ints) -> Presence:
    """Return the slots of ranges by (bucket, place). Cost: O(buckets that each range meets)."""
    low, high = firsts // bucket_slots, lasts // bucket_slots
    many = high - low + 1
    ends = np.cumsum(many)
    met = np.arange(many.sum()) + np.repeat(low - (ends - many), many)
    keys, times = np.unique(met << PLACE_BITS | np.repeat(places, many), return_counts=True)
    slots = times * bucket_slots
    before, behind = firsts - low * bucket_slots, (high + 1) * bucket_slots - 1 - lasts
    np.subtract.at(slots, np.searchsorted(keys, low << PLACE_BITS | places), before)
    np.subtract.at(slots, np.searchsorted(keys, high << PLACE_BITS | places), behind)
    cells = zip((keys >> PLACE_BITS).tolist(), (keys & _PLACE).tolist(), strict=True)
    return dict(zip(cells, slots.tolist(), strict=True))
