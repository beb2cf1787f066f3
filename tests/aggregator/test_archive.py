"""Reports as columns, records as bytes, and counts that are compared to the bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.archive import DAY_S, TYPES, make_reports, partition, shard_of, unite
from aggregator.archive_compare import Difference, compare, rows_of, tally_of_rows, totals_of
from aggregator.archive_record import (
    RecordError,
    decode_record,
    encode_record,
    find_records,
    first_frame,
    is_settled,
)
from aggregator.errors import ArgumentError
from aggregator.receipts import Batch, DeviceState, Outcome, place
from aggregator.settle import read_frame
from aggregator.tally import count_batches
from edge_ldp.device.frame import encode

if TYPE_CHECKING:
    from aggregator.archive import Reports
    from aggregator.records import Arrival

Row = tuple[str, int, int, int, int, int, int]


def arrival(device: str, batch: int, first: int, codes: list[int], stream: int = 1) -> Arrival:
    slots = range(first, first + len(codes))
    return read_frame(device, encode(stream, batch, 7, slots, codes))


def rows(reports: Reports) -> list[Row]:
    columns = [column.tolist() for column in reports.columns().values()]
    return [(reports.names[row[0]], *row[1:]) for row in zip(*columns, strict=True)]


def reports(*given: Row) -> Reports:
    names = sorted({row[0] for row in given})
    columns = {
        name: np.array([names.index(row[0]) if not at else row[at] for row in given])
        for at, name in enumerate(TYPES)
    }
    return make_reports(names, columns)


def decoded(spool: bytes) -> list[Row]:
    return [row for body in find_records(spool).bodies for row in rows(decode_record(body))]


def test_a_record_gives_back_every_report_of_its_frames() -> None:
    frames = [arrival("b-long-name", 3, 100, [5, 65_535]), arrival("a", 9, 2**32 - 1, [0], 255)]
    digests = [int.from_bytes(one.digest, "little") for one in frames]
    assert decoded(encode_record(frames)) == [
        ("b-long-name", 1, 7, 100, 5, 3, digests[0]),
        ("b-long-name", 1, 7, 101, 65_535, 3, digests[0]),
        ("a", 255, 7, 2**32 - 1, 0, 9, digests[1]),
    ]
    assert first_frame(find_records(encode_record(frames)).bodies[0]) == ("b-long-name", 1, 3)


def test_a_record_torn_at_any_byte_leaves_those_before_it() -> None:
    first, second = (
        encode_record([arrival("a", 1, 1, [1])]),
        encode_record([arrival("a", 2, 2, [2])]),
    )
    for cut in range(len(second)):
        for torn in (second[:cut], second[:cut] + bytes(len(second) - cut)):
            found = find_records(first + torn)
            if torn == second:
                continue
            assert (len(found.bodies), found.last, found.end) == (1, 0, len(first))


def test_damage_before_the_end_is_told_and_not_taken_for_a_crash() -> None:
    first, second = (
        encode_record([arrival("a", 1, 1, [1])]),
        encode_record([arrival("a", 2, 2, [2])]),
    )
    for at in range(len(first)):
        spool = bytearray(first + second)
        spool[at] ^= 0x55
        with pytest.raises(RecordError, match="damaged at byte 0"):
            find_records(bytes(spool))


SOME_ROWS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.integers(0, 1),
        st.integers(1, 2),
        st.integers(0, 4),
        st.integers(0, 3),
        st.just(1),
        st.just(2),
    ),
    max_size=12,
)


@given(st.lists(SOME_ROWS, min_size=1, max_size=4))
def test_uniting_keeps_the_earliest_of_each_device_stream_and_slot(parts: list[list[Row]]) -> None:
    kept: dict[tuple[str, int, int], Row] = {}
    repeats = conflicts = 0
    for row in (row for part in parts for row in part):
        first = kept.setdefault((row[0], row[1], row[3]), row)
        repeats += first is not row
        conflicts += first != row
    united = unite([reports(*part) for part in parts])
    assert rows(united.reports) == [kept[key] for key in sorted(kept)]
    assert (united.repeats + len(kept), united.conflicts) == (sum(map(len, parts)), conflicts)
    again = unite([united.reports, *(reports(*part) for part in parts)])
    assert rows(again.reports) == rows(united.reports)


def test_every_report_goes_to_the_day_of_its_slot_and_the_shard_of_its_device() -> None:
    given = [(f"d{n}", n % 2, 1, 95 + n // 2, 3, 1, 2) for n in range(8)]
    found = list(partition(reports(*given), {0: 900, 1: 3600}, 3))
    assert sorted(row for _, part in found for row in rows(part)) == sorted(given)
    for (day, shard), part in found:
        for name, stream, _, slot, *_ in rows(part):
            assert day == slot * (900, 3600)[stream] // DAY_S
            assert shard == shard_of(name, 3)
    assert [key for key, _ in found] == sorted({key for key, _ in found})


def test_the_shard_of_a_device_never_changes() -> None:
    assert [shard_of(name, 16) for name in ("a", "home-001", "ü")] == [7, 8, 0]


def test_a_stream_that_is_not_known_is_named() -> None:
    with pytest.raises(KeyError, match="5"):
        list(partition(reports(("a", 5, 1, 1, 1, 1, 1)), {1: 900}, 1))


@given(st.permutations(range(1, 9)), st.integers(0, 8))
def test_a_batch_is_settled_after_the_flush_that_counts_it_and_not_before(
    order: list[int], rejected: int
) -> None:
    state = DeviceState()
    for number in order:
        batch = Batch(number, 10 * number, 10 * number + 5, bytes(8), counts=number != rejected)
        before = state
        state, placed = place(state, batch)
        assert placed.outcome in (Outcome.NEW, Outcome.LATE)
        assert (is_settled(before, number), is_settled(state, number)) == (False, True)


def test_counts_that_are_equal_differ_or_move_are_told_apart() -> None:
    full = count_batches([(1, 2, 4, np.array([0, 1, 4, 8]), np.full(4, 9))])
    less = count_batches([(1, 2, 4, np.array([0, 4, 8]), np.full(3, 9))])
    assert compare(full, full, full).equal == 3
    assert compare(less, full, full).differ == (Difference(1, 2, 0, 9, 1, 2),)
    assert compare(full, less, full).moving == 1
    assert not compare(full, less, full).differ
    nothing = count_batches([])
    assert (
        len(compare(nothing, full, full).differ) == len(compare(full, nothing, nothing).differ) == 3
    )


def test_a_tally_becomes_the_rows_that_a_store_gives_and_comes_back() -> None:
    rng = np.random.default_rng(1)
    batches = [
        (stream, epoch, 4, rng.integers(0, 40, 50), rng.integers(0, 9, 50))
        for stream in (1, 2)
        for epoch in (3, 4)
    ]
    tally = count_batches(batches)
    back = tally_of_rows({stream: rows_of(tally, stream, 0, 100) for stream in (1, 2)})
    assert back == tally
    some = rows_of(tally, 1, 3, 5)
    assert set(some.bucket.tolist()) == {3, 4, 5}
    totals = totals_of(tally, 2)
    assert totals.count.sum() == 100
    assert set(totals.bucket.tolist()) == {0}
    per_code = dict.fromkeys(zip(totals.epoch.tolist(), totals.code.tolist(), strict=True), 0)
    for stream, epoch, _, code, count in tally.rows():
        if stream == 2:
            per_code[epoch, code] += count
    assert list(per_code.values()) == totals.count.tolist()


def test_more_devices_than_a_key_can_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aggregator.archive.MAX_DEVICES", 2)
    parts = [reports((name, 1, 1, 1, 1, 1, 1)) for name in "abc"]
    assert len(unite(parts[:2]).reports) == 2
    with pytest.raises(ArgumentError, match="use more shards"):
        unite(parts)
