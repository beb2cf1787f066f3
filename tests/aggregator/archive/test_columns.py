"""Reports as columns, records as bytes, and counts that are compared to the bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.archive.columns import (
    DAY_S,
    TYPES,
    Reports,
    make_reports,
    partition,
    shard_of,
    unite,
)
from aggregator.archive.spool_record import (
    RecordError,
    decode_record,
    doubt_of,
    encode_record,
    find_records,
)
from aggregator.counting.frames import Arrival, CountedFrames
from aggregator.counting.records import Doubt
from aggregator.counting.retention import RolledUp
from aggregator.counting.seen_batches import ArrivedBatch, DeviceState, Outcome, is_settled, place
from aggregator.counting.tally import Tally, merge, rows_of
from aggregator.replay.comparison import (
    Difference,
    compare_archive,
    digest_of,
    only_group,
    rolled,
    subtract,
    tally_of_columns,
    tally_of_rows,
)
from aggregator.replay.view import replay_text
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.frame import encode
from tests.aggregator.arrivals import read_frame
from tests.aggregator.tallies import count_batches

Row = tuple[str, int, int, int, int, int, int, int, int]
FLUSH = bytes(range(16))
OLD_RECORD = bytes.fromhex(
    "454153312800000042dea23e010000000100000001000000"
    "01000101000000070000000100eb931b3f4a60781301000000090061"
)


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


def in_group(group: int, *frames: Arrival) -> CountedFrames:
    return CountedFrames.of((one, group, 3) for one in frames)


def test_a_record_gives_back_every_report_of_its_frames() -> None:
    frames = [arrival("b-long-name", 3, 100, [5, 65_535]), arrival("a", 9, 2**32 - 1, [0], 255)]
    digests = [int.from_bytes(one.digest, "little") for one in frames]
    counted = CountedFrames.of([(frames[0], 2**32 - 1, 257), (frames[1], 0, 0)])
    record = encode_record(counted, FLUSH)
    assert decoded(record) == [
        ("b-long-name", 1, 7, 100, 5, 3, digests[0], 2**32 - 1, 257),
        ("b-long-name", 1, 7, 101, 65_535, 3, digests[0], 2**32 - 1, 257),
        ("a", 255, 7, 2**32 - 1, 0, 9, digests[1], 0, 0),
    ]
    assert doubt_of(find_records(record).bodies[0]) == Doubt(FLUSH, "b-long-name", 1, 3)


def test_a_record_of_before_groups_is_of_group_0() -> None:
    """Bytes that the program wrote before: one that is upgraded may find them in its spool."""
    assert decoded(OLD_RECORD + encode_record(in_group(5, arrival("a", 2, 2, [2])), FLUSH)) == [
        ("a", 1, 7, 1, 9, 1, 1402977155928527851, 0, 0),
        ("a", 1, 7, 2, 2, 2, int.from_bytes(arrival("a", 2, 2, [2]).digest, "little"), 5, 3),
    ]


def test_a_record_torn_at_any_byte_leaves_those_before_it() -> None:
    first, second = (
        encode_record(in_group(1, arrival("a", 1, 1, [1])), FLUSH),
        encode_record(in_group(1, arrival("a", 2, 2, [2])), FLUSH),
    )
    for cut in range(len(second)):
        for torn in (second[:cut], second[:cut] + bytes(len(second) - cut)):
            found = find_records(first + torn)
            if torn == second:
                continue
            assert (len(found.bodies), found.last, found.end) == (1, 0, len(first))


def test_damage_before_the_end_is_told_and_not_taken_for_a_crash() -> None:
    first, second = (
        encode_record(in_group(1, arrival("a", 1, 1, [1])), FLUSH),
        encode_record(in_group(1, arrival("a", 2, 2, [2])), FLUSH),
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
        st.integers(0, 1),
        st.just(3),
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
    given = [(f"d{n}", n % 2, 1, 95 + n // 2, 3, 1, 2, n % 3, 5) for n in range(8)]
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
        list(partition(reports(("a", 5, 1, 1, 1, 1, 1, 0, 0)), {1: 900}, 1))


@given(st.permutations(range(1, 9)), st.integers(0, 8))
def test_a_batch_is_settled_after_the_flush_that_counts_it_and_not_before(
    order: list[int], rejected: int
) -> None:
    state = DeviceState()
    for number in order:
        batch = ArrivedBatch(
            number, 10 * number, 10 * number + 5, bytes(8), counts=number != rejected
        )
        before = state
        state, placed = place(state, batch)
        assert placed.outcome in (Outcome.NEW, Outcome.LATE)
        assert (is_settled(before, number), is_settled(state, number)) == (False, True)


def test_counts_that_are_equal_differ_or_move_are_told_apart() -> None:
    full = count_batches([((1, 2, 6, 0), 4, np.array([0, 1, 4, 8]), np.full(4, 9))])
    less = count_batches([((1, 2, 6, 0), 4, np.array([0, 4, 8]), np.full(3, 9))])
    assert compare_archive(full, full, full).equal == 3
    assert compare_archive(less, full, full).differ == (Difference(1, 2, 6, 0, 9, 1, 2),)
    assert compare_archive(full, less, full).moving == 1
    assert not compare_archive(full, less, full).differ
    nothing = count_batches([])
    assert (
        len(compare_archive(nothing, full, full).differ)
        == len(compare_archive(full, nothing, nothing).differ)
        == 3
    )


def test_a_tally_becomes_the_rows_that_a_store_gives_and_comes_back() -> None:
    rng = np.random.default_rng(1)
    batches = [
        ((stream, epoch, 0, 0), 4, rng.integers(0, 40, 50), rng.integers(0, 9, 50))
        for stream in (1, 2)
        for epoch in (3, 4)
    ]
    tally = count_batches(batches)
    back = tally_of_rows({stream: rows_of(tally, stream, 0, 100) for stream in (1, 2)})
    assert back == tally
    some = rows_of(tally, 1, 3, 5)
    assert set(some.bucket.tolist()) == {3, 4, 5}


def test_more_devices_than_a_key_can_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aggregator.archive.columns.MAX_DEVICES", 2)
    parts = [reports((name, 1, 1, 1, 1, 1, 1, 0, 0)) for name in "abc"]
    assert len(unite(parts[:2]).reports) == 2
    with pytest.raises(ParameterError, match="use more shards"):
        unite(parts)


def test_the_counts_of_some_devices_are_taken_out_of_a_replay_and_no_cell_stays_empty() -> None:
    columns = [
        np.array(one) for one in ([1] * 3, [2] * 3, [0, 0, 7], [4, 4, 0], [5, 4, 4], [9, 9, 8])
    ]
    n, left_out = np.array([3, 2, 1]), np.array([1, 2, 0])
    whole, left = tally_of_columns([*columns, n, left_out])
    assert list(whole.rows()) == [
        (1, 2, 0, 4, 4, 9, 2),
        (1, 2, 0, 4, 5, 9, 3),
        (1, 2, 7, 0, 4, 8, 1),
    ]
    assert list(left.rows()) == [(1, 2, 0, 4, 4, 9, 2), (1, 2, 0, 4, 5, 9, 1)]
    kept = subtract(whole, left)
    assert list(kept.rows()) == [(1, 2, 0, 4, 5, 9, 2), (1, 2, 7, 0, 4, 8, 1)]
    assert list(only_group(kept, 7).rows()) == [(1, 2, 7, 0, 4, 8, 1)]
    assert not subtract(whole, whole).parts


def test_a_digest_is_that_of_the_counts_and_of_nothing_else() -> None:
    slots, codes = np.array([0, 4, 8]), np.array([9, 9, 8])
    more = count_batches([((1, 3, 0, 0), 4, slots[:1], codes[:1])])

    def digest(*parts: Tally) -> str:
        return digest_of(merge([*parts, more]))

    tally = count_batches([((1, 2, 0, 0), 4, slots, codes)])
    same = digest(tally)
    assert digest_of(merge([more, tally])) == same
    assert digest(count_batches([((1, 2, 0, 0), 4, slots + 3, codes)])) == same  # the same buckets
    others = [
        ((2, 2, 0, 0), 4, slots, codes),
        ((1, 3, 0, 0), 4, slots, codes),
        ((1, 2, 1, 0), 4, slots, codes),
    ]
    others += [((1, 2, 0, 0), 2, slots, codes), ((1, 2, 0, 0), 4, slots + 4, codes)]
    others += [((1, 2, 0, 0), 4, slots, codes + 1), ((1, 2, 0, 0), 4, slots[:2], codes[:2])]
    assert same not in {digest(count_batches([other])) for other in others}
    assert digest(tally, tally) != same


def test_counts_are_added_up_as_the_store_keeps_them() -> None:
    slots, codes = np.arange(40), np.zeros(40, np.int64)
    tally = count_batches([((1, 2, 0, 0), 1, slots, codes), ((2, 2, 0, 0), 1, slots, codes)])
    kept = {1: RolledUp({4: 20, 12: 12, 0: 0}), 2: RolledUp({0: 24})}
    found = rolled(tally, kept)
    assert [row[4] for row in found.rows() if row[0] == 1] == [0, 12, 16, *range(20, 40)]
    assert [row[6] for row in found.rows() if row[0] == 1] == [12, 4, 4, *[1] * 20]
    assert [row[4] for row in found.rows() if row[0] == 2] == [*range(24, 40)]
    assert rolled(found, kept) == found
    assert rolled(tally, {1: RolledUp({}), 2: RolledUp({})}) == tally


def test_what_is_left_out_of_an_answer_is_told_and_that_its_time_is_not() -> None:
    compared = {"cells": 0, "equal": 0, "differ": 0, "moving": 0, "first": []}
    compacted = {"reports": 0, "files": 0, "repeats": 0, "conflicts": 0}
    view = {"compared": compared, "compacted": compacted, "complete": True, "engine": "duckdb"}
    view |= {"sums": {"releases": 0, "differ": 0, "totals_differ": 0}}
    view |= {"reports": 9, "days": 1, "without": {"devices": ["home-1"], "reports": 4}}
    *_, left, time = replay_text(view).splitlines()
    assert left == "left out of the answer: 4 reports of home-1"
    assert time.startswith("their time is not: totals")
    assert "left out" not in replay_text(view | {"without": {"devices": [], "reports": 0}})
