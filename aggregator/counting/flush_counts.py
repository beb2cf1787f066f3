"""What one flush counts in one place: codes by bucket, and slots in which devices were there."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from aggregator.counting.presence import away_after, in_buckets, present
from aggregator.counting.tally import count_batches

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aggregator.counting.records import Arrival
    from aggregator.counting.refusals import StreamRules
    from aggregator.counting.seen_batches import Placed
    from aggregator.counting.tally import Tally


class Counting:
    """Frames that count, gathered and then added up at once."""

    def __init__(self) -> None:
        self._rules: dict[int, StreamRules] = {}
        self._frames: defaultdict[int, list[tuple[Arrival, Placed, int]]] = defaultdict(list)

    def add(self, arrival: Arrival, placed: Placed, group: int, rules: StreamRules) -> None:
        """Count one frame of a device of the group."""
        stream = arrival.head.stream
        self._rules[stream] = rules
        self._frames[stream].append((arrival, placed, group))

    def tally(self) -> Tally:
        """Return the counts."""
        return count_batches(
            (stream, one.head.epoch, group, self._rules[stream].bucket_slots, one.slots, one.codes)
            for stream, frames in self._frames.items()
            for one, _, group in frames
        )

    def presence(self) -> Mapping[tuple[int, int, int], int]:
        """Return device-slots by (stream, bucket, group)."""
        found: dict[tuple[int, int, int], int] = {}
        for stream, frames in self._frames.items():
            rules = self._rules[stream]
            batches, firsts, lasts = present(
                np.concatenate([one.slots for one, _, _ in frames]),
                np.array([one.head.count for one, _, _ in frames]),
                np.array([placed.after for _, placed, _ in frames]),
                np.array([-1 if p.before is None else p.before for _, p, _ in frames]),
                away_after(rules.slot_seconds),
            )
            groups = np.array([group for _, _, group in frames])[batches]
            slots = in_buckets(firsts, lasts, rules.bucket_slots, groups)
            found.update({(stream, *key): count for key, count in slots.items()})
        return found
