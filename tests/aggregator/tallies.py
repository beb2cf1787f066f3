"""Tallies of batches, as tests write them down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from aggregator.counting.tally import Tally, count_columns

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aggregator.counting.tally import Part
    from edge_ldp.arrays import Ints


def count_batches(batches: Iterable[tuple[Part, int, Ints, Ints]]) -> Tally:
    """Return the tally of (part, bucket_slots, slots, codes) batches."""
    given = list(batches)
    if not given:
        return Tally()
    of_batch, lengths, slots, codes = zip(*given, strict=True)
    parts: dict[Part, int] = {}
    of = [parts.setdefault(part, len(parts)) for part in of_batch]
    counts = [len(one) for one in codes]
    buckets = np.concatenate(slots) // np.repeat(lengths, counts)
    return Tally(count_columns(list(parts), np.repeat(of, counts), buckets, np.concatenate(codes)))
