"""Device-slots: in how many slots of a time bucket devices were there, reporting or not.

A device that may report in 8 of 97 slots is heard in all 97; one that was silent for longer than
`silence` slots was not there in between. Counts are integers and add up, like the tally: a batch
adds the slots that it makes present, given the counted slots next to it, so the sum is the same in
whatever order batches come. A fleet total is mean × device-slots (DESIGN §6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from aggregator.receipts import Placed

    Ints = NDArray[np.int64]

DAY_S = 86_400


def silence_of(slot_seconds: int) -> int:
    """Return after how many slots without a report a device counts as away: one day and a slot."""
    return DAY_S // slot_seconds + 1


def present(slots: Ints, placed: Placed, silence: int) -> list[tuple[int, int]]:
    """Return the slot ranges (first, last) that a counted batch newly makes present.

    Cost: O(reports), however far the slots lie apart.
    """
    after, before = placed.after, placed.before
    if after >= 0 and before is not None and before - after <= silence:
        return []  # its neighbours had made these slots present
    head = [after] if after >= 0 else []
    tail = [before] if before is not None else []
    points = np.concatenate([np.array(head, np.int64), slots, np.array(tail, np.int64)])
    cuts = np.flatnonzero(np.diff(points) > silence) + 1
    starts = points[np.concatenate([[0], cuts])].tolist()
    ends = points[np.concatenate([cuts - 1, [len(points) - 1]])].tolist()
    ranges = (
        (start + (start == after), end - (end == before))
        for start, end in zip(starts, ends, strict=True)
    )
    return [(first, last) for first, last in ranges if first <= last]


def in_buckets(first: int, last: int, bucket_slots: int) -> Iterator[tuple[int, int]]:
    """Yield (bucket, slots of the range in it) for the range first..last."""
    for bucket in range(first // bucket_slots, last // bucket_slots + 1):
        start = bucket * bucket_slots
        yield bucket, min(last, start + bucket_slots - 1) - max(first, start) + 1
