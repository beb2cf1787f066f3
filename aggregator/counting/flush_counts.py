"""What one flush counts in one place: codes by bucket, who reported, and slots of devices there."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from aggregator.counting.presence import away_after, in_buckets, present
from aggregator.counting.reporters import reporters_of
from aggregator.counting.tally import count_batches

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aggregator.counting.records import Arrival, Cell, PresenceKey
    from aggregator.counting.refusals import StreamRules
    from aggregator.counting.seen_batches import Placed
    from aggregator.counting.tally import Tally

    Whose = tuple[int, int]  # group and class


class Counting:
    """Frames that count, gathered and then added up at once."""

    def __init__(self) -> None:
        self._rules: dict[int, StreamRules] = {}
        self._frames: defaultdict[int, list[tuple[Arrival, Placed, Whose]]] = defaultdict(list)

    def add(self, arrival: Arrival, placed: Placed, whose: Whose, rules: StreamRules) -> None:
        """Count one frame of a device of the group and class."""
        stream = arrival.head.stream
        self._rules[stream] = rules
        self._frames[stream].append((arrival, placed, whose))

    def tally(self) -> Tally:
        """Return the counts."""
        return count_batches(
            (
                (stream, one.head.epoch, *whose),
                self._rules[stream].bucket_slots,
                one.slots,
                one.codes,
            )
            for stream, frames in self._frames.items()
            for one, _, whose in frames
        )

    def reporters(self) -> Mapping[Cell, bytes]:
        """Return who reported, by stream, epoch, group, class and bucket."""
        found: dict[Cell, bytes] = {}
        for stream, frames in self._frames.items():
            rules = self._rules[stream]
            named = [(stream, one.head.epoch, *whose) for one, _, whose in frames]
            parts = {part: at for at, part in enumerate(dict.fromkeys(named))}
            names = [one.device for one, _, _ in frames]
            devices = {name: at for at, name in enumerate(dict.fromkeys(names))}
            reports = np.array([one.head.count for one, _, _ in frames])
            of = np.repeat([parts[part] for part in named], reports)
            surveys_from = np.array([rules.plans[epoch].surveys_from for _, epoch, *_ in parts])
            buckets = np.concatenate([one.slots for one, _, _ in frames]) // rules.bucket_slots
            first = int(buckets.min())
            bits = (int(buckets.max()) - first).bit_length()
            sets = reporters_of(
                of << bits | buckets - first,
                np.repeat([devices[name] for name in names], reports),
                np.concatenate([one.codes for one, _, _ in frames]) >= surveys_from[of],
                list(devices),
            )
            every = list(parts)
            for cell, who in sets.items():
                found[*every[cell >> bits], first + (cell & (1 << bits) - 1)] = who
        return found

    def presence(self) -> Mapping[PresenceKey, int]:
        """Return device-slots by (stream, bucket, group, class)."""
        found: dict[PresenceKey, int] = {}
        for stream, frames in self._frames.items():
            rules = self._rules[stream]
            batches, firsts, lasts = present(
                np.concatenate([one.slots for one, _, _ in frames]),
                np.array([one.head.count for one, _, _ in frames]),
                np.array([placed.after for _, placed, _ in frames]),
                np.array([-1 if p.before is None else p.before for _, p, _ in frames]),
                away_after(rules.slot_seconds),
            )
            places: dict[Whose, int] = {}
            of = np.array([places.setdefault(whose, len(places)) for _, _, whose in frames])
            slots = in_buckets(firsts, lasts, rules.bucket_slots, of[batches])
            named = list(places)
            for (bucket, at), count in slots.items():
                found[stream, bucket, *named[at]] = count
        return found
