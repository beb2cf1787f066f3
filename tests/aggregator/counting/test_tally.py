"""Counts are integers that merge in any order."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.counting.tally import (
    MOST,
    CountRows,
    Tally,
    add_pairs,
    count_columns,
    dense,
    exact_sum,
    merge,
    rows_of,
    whose_of,
    without_classes,
)
from tests.aggregator.tallies import count_batches

report = st.tuples(st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 16) - 1))
one_batch = st.tuples(
    st.integers(0, 255), st.integers(1, (1 << 32) - 1), st.lists(report, min_size=1, max_size=20)
)
batches = st.lists(one_batch, max_size=10)
BUCKET_SLOTS = 4


def tally_of(some: list[tuple[int, int, list[tuple[int, int]]]]) -> Tally:
    return count_batches(
        (
            (stream, epoch, epoch % 3, epoch % 2),
            BUCKET_SLOTS,
            np.array([slot for slot, _ in pairs], np.int64),
            np.array([code for _, code in pairs], np.int64),
        )
        for stream, epoch, pairs in some
    )


@given(batches)
def test_counts_are_those_of_a_plain_counter(
    some: list[tuple[int, int, list[tuple[int, int]]]],
) -> None:
    expected = Counter(
        (stream, epoch, epoch % 3, epoch % 2, slot // BUCKET_SLOTS, code)
        for stream, epoch, pairs in some
        for slot, code in pairs
    )
    tally = tally_of(some)
    assert {row[:6]: row[6] for row in tally.rows()} == dict(expected)
    assert tally.total == expected.total()


def test_counts_are_the_same_whether_reports_lie_near_each_other_or_not() -> None:
    parts = [(1, 1, 0, 0), (1, 2, 3, 0)]
    columns = np.array([[0, 0, 1, 1], [5, 5, 5, 7], [0, 1, 1, 1]])
    far = np.append(columns, [[1], [1 << 31], [65_535]], axis=1)
    near = count_columns(parts, *columns)
    assert [(*one.cells.tolist(), *one.counts.tolist()) for one in near.values()] == [
        (5 << 16, 5 << 16 | 1, 1, 1),
        (5 << 16 | 1, 7 << 16 | 1, 1, 1),
    ]
    for part, one in count_columns(parts, *far).items():
        assert one.cells[:2].tolist() == near[part].cells.tolist()
        assert one.counts[:2].tolist() == near[part].counts.tolist()


def test_the_last_slot_and_code_that_there_can_be_stay_in_their_own_part() -> None:
    """Where a bucket is a slot: 32 bits of it and 16 of a code lie beside the part's place."""
    parts, last = [(1, epoch, 0, 0) for epoch in (1, 2)], np.array([(1 << 32) - 1])
    tally = count_batches([(part, 1, last, np.array([65_535])) for part in parts])
    assert list(tally.rows()) == [(*part, int(last[0]), 65_535, 1) for part in parts]


@given(batches, batches, batches)
@settings(max_examples=40, deadline=None)
def test_merging_is_commutative_and_associative(
    a: list[tuple[int, int, list[tuple[int, int]]]],
    b: list[tuple[int, int, list[tuple[int, int]]]],
    c: list[tuple[int, int, list[tuple[int, int]]]],
) -> None:
    one, two, three = tally_of(a), tally_of(b), tally_of(c)
    together = tally_of([*a, *b, *c])
    assert merge([one, merge([two, three])]) == together
    assert merge([merge([three, one]), two]) == together


@given(batches)
def test_classes_add_up(some: list[tuple[int, int, list[tuple[int, int]]]]) -> None:
    tally = tally_of(some)
    split = Counter[tuple[int, ...]]()
    for *key, group, cls, bucket, code, count in tally.rows():
        assert (group, cls) == (key[1] % 3, key[1] % 2)
        split[*key, group, 0, bucket, code] += count
    assert {row[:6]: row[6] for row in without_classes(tally).rows()} == dict(split)


def test_the_empty_tally_is_neutral() -> None:
    assert merge([]) == Tally() == count_batches([])
    some = tally_of([(1, 1, [(5, 6)])])
    assert merge([some, Tally()]) == some
    assert some != Tally()


def test_sparse_histograms_add_up() -> None:
    pairs = [(np.array([1, 5]), np.array([2, 3])), (np.array([0, 1]), np.array([7, 2]))]
    codes, counts = add_pairs(*pairs)
    assert (codes.tolist(), counts.tolist()) == ([0, 1, 5], [7, 4, 3])
    codes, counts = add_pairs(*pairs[::-1])
    assert (codes.tolist(), counts.tolist()) == ([0, 1, 5], [7, 4, 3])
    assert dense(codes, counts, 7).tolist() == [7, 4, 0, 0, 0, 3, 0]


def test_counts_stay_at_the_largest_there_is_AGG_23() -> None:
    """2**63 − 2 and 5 became 3 short of the smallest number; now they stay at the top."""
    assert np.iinfo(np.int64).max == MOST
    codes = np.array([1, 4])
    near = np.array([MOST - 1, 7])
    found, counts = add_pairs((codes, near), (codes, np.array([5, 5])))
    assert found.tolist() == [1, 4]
    assert counts.tolist() == [MOST, 12]
    summed = dense(np.array([1, 1, 4]), np.array([MOST - 1, 5, 5]), 6)
    assert summed.tolist() == [0, MOST, 0, 0, 5, 0]


@given(st.lists(st.integers(0, MOST), max_size=9))
def test_a_sum_of_counts_is_exact_AGG_23(counts: list[int]) -> None:
    assert exact_sum(np.array(counts, np.int64)) == sum(counts)


@given(batches, st.integers(0, 255), st.integers(0, 1 << 30), st.integers(0, 1 << 30))
@settings(max_examples=40, deadline=None)
def test_the_rows_of_a_stream_are_its_counts_in_the_buckets_asked_for(
    some: list[tuple[int, int, list[tuple[int, int]]]], stream: int, first: int, last: int
) -> None:
    tally = tally_of([(stream, *one[1:]) if at % 2 else one for at, one in enumerate(some)])
    rows = rows_of(tally, stream, first, last)
    columns = (rows.epoch, rows.bucket, rows.whose, rows.code, rows.count)
    told = list(zip(*(one.tolist() for one in columns), strict=True))
    expected = [
        (epoch, bucket, whose_of(group, cls), code, count)
        for of, epoch, group, cls, bucket, code, count in tally.rows()
        if of == stream and first <= bucket <= last
    ]
    assert sorted(told) == sorted(expected)
    assert [row[:2] for row in told] == sorted(row[:2] for row in told)


def test_whom_counts_are_of_stays_with_them_or_is_anybody() -> None:
    epochs, buckets, codes, counts = np.array([[1, 1], [0, 5], [2, 3], [9, 8]])
    assert CountRows(epochs, buckets, codes, counts).whose.tolist() == [0, 0]
    whose = np.array([whose_of(2, 1), whose_of(0, 3)])
    rows = CountRows(epochs, buckets, codes, counts, whose=whose)
    assert rows.some(np.array([True, False])).whose.tolist() == [whose_of(2, 1)]
    assert whose_of(2, 1) != whose_of(1, 2)
