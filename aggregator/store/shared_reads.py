"""What both engines share: statements, and how rows of counts are added up."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from aggregator.counting.classes import CLASS_BITS
from aggregator.counting.reporters import united
from aggregator.counting.tally import CODE_BITS, CountRows, dense
from aggregator.store.forms import PairSum, unpack_pairs

WHOSE = f"(CAST(grp AS bigint) << {CLASS_BITS} | cls)"  # tally.whose_of
PLAN_HELD = "plan held, stream "
RETIRED = "retired, stream "
FACTS = "SELECT name, value FROM facts"
FACT = "SELECT value FROM facts WHERE name = ?"
PUT_FACT = """INSERT INTO facts (name, value) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value"""
PUT_REVISION = """INSERT INTO looks (stream, at_s, payload) VALUES (?, ?, ?)
    ON CONFLICT (stream, at_s) DO UPDATE SET payload = excluded.payload"""
ADD_AUDIT = "INSERT INTO audit SELECT coalesce(max(id), 0) + 1, ?, ?, ? FROM audit"
_NONE = np.zeros(0, np.int64)
_CODE_MASK = (1 << CODE_BITS) - 1


def streams_of(facts: Iterable[tuple[str, str]], what: str) -> dict[int, int]:
    """Return the streams of which a fact is kept, PLAN_HELD or RETIRED, and since when."""
    found = ((name, value) for name, value in facts if name.startswith(what))
    return {int(name.removeprefix(what)): int(value) for name, value in found}


def by_bucket(rows: Iterable[tuple[int, int, int, bytes, bytes]]) -> CountRows:
    """Return counts by epoch, bucket and whose they are, in any order; histograms of one add up.

    Of rows (epoch, bucket, whose, reporters, stored histogram); here and below, a damaged one
    raises RowError.
    """
    given = list(rows)
    who = _reporters((bucket, who) for _, bucket, _, who, _ in given)
    heads = [row[:3] for row in given]
    found = [unpack_pairs(row[4]) for row in given]
    codes, counts = (np.concatenate([_NONE, *(row[at] for row in found)]) for at in (0, 1))
    sizes = [len(row[0]) for row in found]
    if all(one < after for one, after in pairwise(heads)):
        head = np.repeat(np.array(heads, np.int64).reshape(-1, 3), sizes, axis=0)
        return CountRows(head[:, 0], head[:, 1], codes, counts, who, head[:, 2])
    places, place = np.unique(np.array(heads, np.int64), axis=0, return_inverse=True)
    cells, where = np.unique(
        np.repeat(place.reshape(-1), sizes) << CODE_BITS | codes, return_inverse=True
    )
    head = places[cells >> CODE_BITS]
    summed = dense(where, counts, len(cells))
    return CountRows(head[:, 0], head[:, 1], cells & _CODE_MASK, summed, who, head[:, 2])


def by_part(
    rows: Iterable[tuple[int, int, int, bytes, bytes]], part_of: Callable[[int], Hashable]
) -> CountRows:
    """Return counts added up by epoch, part of the bucket, and whose they are.

    A sum stands at the first bucket of its part; epochs, and buckets within each, rise.
    """
    parts: dict[tuple[int, Hashable, int], PairSum] = {}
    firsts: dict[tuple[int, Hashable, int], int] = {}
    named: dict[tuple[int, Hashable, int], set[bytes]] = {}
    for epoch, bucket, whose, who, blob in rows:
        key = epoch, part_of(bucket), whose
        if key not in parts:
            parts[key], firsts[key], named[key] = PairSum(), bucket, set()
        firsts[key] = min(bucket, firsts[key])
        parts[key].add(blob)
        named[key].add(who)
    order = sorted(parts, key=lambda key: (key[0], firsts[key], key[2]))
    found = _rising([(key[0], firsts[key], key[2], parts[key]) for key in order])
    who_in = _reporters((firsts[key], one) for key in order for one in named[key])
    return replace(found, reporters=who_in)


def added_up(rows: Iterable[tuple[int, int, bytes]]) -> CountRows:
    """Return counts added up by epoch, whose they are, and code; all of bucket 0."""
    sums: dict[tuple[int, int], PairSum] = {}
    for epoch, whose, blob in rows:
        sums.setdefault((epoch, whose), PairSum()).add(blob)
    return _rising([(epoch, 0, whose, sums[epoch, whose]) for epoch, whose in sorted(sums)])


def _reporters(rows: Iterable[tuple[int, bytes]]) -> dict[int, bytes]:
    found: dict[int, set[bytes]] = {}
    for bucket, who in rows:
        found.setdefault(bucket, set()).add(who)
    return {bucket: united(blobs) for bucket, blobs in found.items()}


def _rising(sums: Sequence[tuple[int, int, int, PairSum]]) -> CountRows:
    heads = np.array([row[:3] for row in sums], np.int64).reshape(-1, 3)
    found = [row[3].pairs() for row in sums]
    head = np.repeat(heads, [len(row[0]) for row in found], axis=0)
    codes, counts = (np.concatenate([_NONE, *(row[at] for row in found)]) for at in (0, 1))
    return CountRows(head[:, 0], head[:, 1], codes, counts, whose=head[:, 2])
