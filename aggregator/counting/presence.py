"""Device-slots: in how many slots of a time bucket devices were there, reporting or not.

A device that may report in 8 of 97 slots is heard in all 97; one that was silent for longer than it
ever is, as often as it may report (`away_after`), was not there in between. Counts are integers and
add up, like the tally: a batch adds the slots that it makes present, given the counted slots next
to it, so the sum is the same in whatever order batches come. A fleet total is mean × device-slots
(docs/design.md, Estimation).
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from aggregator.counting.classes import UNTOLD, slots_a_report

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

Presence = dict[tuple[int, int], int]  # (bucket, place): slots
PLACE_BITS = 31
_PLACE = (1 << PLACE_BITS) - 1
DAY_S = 86_400
GAPS, LONGEST_DAYS = 6, 7


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
