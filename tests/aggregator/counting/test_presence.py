"""Device-slots: the same sum in whatever order batches come."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.counting.classes import class_of
from aggregator.counting.flush_counts import away_after, in_buckets, present
from aggregator.counting.seen_batches import ArrivedBatch, DeviceState, Outcome, place

SILENCE = 10


def ranges(slots: list[int], after: int = -1, before: int | None = None) -> list[tuple[int, int]]:
    near = (np.array([after]), np.array([-1 if before is None else before]))
    _, firsts, lasts = present(np.array(slots), np.array([len(slots)]), *near, np.array([SILENCE]))
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def bucketed(some: list[tuple[int, int]], bucket_slots: int) -> dict[tuple[int, int], int]:
    firsts, lasts = np.array(some, np.int64).reshape(-1, 2).T
    return in_buckets(firsts, lasts, bucket_slots, np.arange(len(some)) % 2)


def test_a_device_that_reports_now_and_then_is_there_in_between() -> None:
    assert ranges([5, 8, 15]) == [(5, 15)]


def test_a_long_silence_is_an_absence() -> None:
    assert ranges([5, 8, 19, 20]) == [(5, 8), (19, 20)]


def test_a_new_batch_makes_the_way_from_the_last_slot_present() -> None:
    assert ranges([12, 13], after=8) == [(9, 13)]
    assert ranges([30, 31], after=8) == [(30, 31)]
    assert ranges([2], before=5) == [(2, 4)]


def test_a_late_batch_between_near_neighbours_adds_nothing() -> None:
    assert ranges([10, 12], after=8, before=18) == []


def test_a_late_batch_closes_an_absence_as_far_as_it_reaches() -> None:
    assert ranges([20, 25], after=12, before=60) == [(13, 25)]
    assert ranges([30], after=12, before=35) == [(30, 34)]
    assert ranges([22], after=12, before=32) == [(13, 31)]


def test_a_range_is_split_at_the_edges_of_buckets() -> None:
    assert bucketed([(3, 9)], 4) == {(0, 0): 1, (1, 0): 4, (2, 0): 2}
    assert bucketed([(4, 4), (5, 6), (7, 8)], 4) == {(1, 0): 2, (1, 1): 2, (2, 0): 1}
    assert bucketed([], 4) == {}


def test_away_means_more_than_a_day() -> None:
    assert away_after(900) == 97
    assert away_after(86_400) == 2
    often, seldom, least = (class_of(Fraction(1, n)) for n in (12, 107, 2**16))
    assert [away_after(900, cls) for cls in (often, seldom, least)] == [97, 646, 672]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_any_order_of_batches_gives_the_device_slots_of_the_ordered_run(
    steps: list[int], order: object
) -> None:
    slots = np.cumsum([100, *steps]).tolist()
    batches = [
        (number, slots[at : at + 2]) for number, at in enumerate(range(0, len(slots), 2), start=1)
    ]
    ordered = _presence(batches)
    shuffled = list(batches)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert _presence(shuffled) == ordered
    jumps = [b - a for a, b in pairwise(slots) if b - a <= SILENCE]
    assert ordered.total() == len(slots) + sum(jump - 1 for jump in jumps)


def _presence(batches: list[tuple[int, list[int]]]) -> Counter[int]:
    state, found = DeviceState(), Counter[int]()
    for number, slots in batches:
        state, placed = place(state, ArrivedBatch(number, slots[0], slots[-1], b""))
        assert placed.outcome in (Outcome.NEW, Outcome.LATE)
        for one in ranges(slots, placed.after, placed.before):
            found.update({bucket: slots for (bucket, _), slots in bucketed([one], 4).items()})
    return found
