"""Batches keep every report, unchanged: packing."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.claims.batches import (
    Batch,
    BatchSeries,
    Key,
    Numbering,
    fitting,
    pack,
    random_series,
)
from agent.claims.pipeline import Report
from edge_ldp.device.frame import HEAD_BYTES, MAX_OFFSET, MAX_REPORTS, PAIR_BYTES, decode
from tests.agent.samples import SERIES, numbered


def reports_of(slots: list[int], stream: int = 1, epoch: int = 1) -> list[Report]:
    return [Report(stream, slot, epoch, slot % 97, 5 * epoch) for slot in slots]


def unpacked(batches: list[Batch]) -> list[Report]:
    found = []
    for batch in batches:
        frame = decode(batch.payload)
        assert frame.stream == batch.key.stream
        assert batch.last_slot == frame.slots[-1]
        assert batch.reports == len(frame.slots)
        found += [
            Report(frame.stream, slot, frame.epoch, code, frame.tag)
            for slot, code in zip(frame.slots, frame.codes, strict=True)
        ]
    return found


@st.composite
def waiting_reports(draw: st.DrawFn) -> list[Report]:
    """Draw waiting reports: per stream slots rise and epochs never fall, as a device's do."""
    made = []
    for stream in draw(st.sets(st.integers(0, 255), max_size=3)):
        slot = draw(st.integers(0, 1 << 31))
        epoch = draw(st.integers(1, 5))
        for _ in range(draw(st.integers(1, 30))):
            slot += draw(st.sampled_from([1, 1, 1, 2, 500, MAX_OFFSET - 1, MAX_OFFSET, 1 << 17]))
            epoch += draw(st.sampled_from([0, 0, 0, 1]))
            made.append(Report(stream, slot, epoch, draw(st.integers(0, 65_535)), epoch * 9))
    return made


@given(waiting_reports(), st.integers(1, 1 << 31))
def test_frames_decode_to_the_same_reports_AGT_13(reports: list[Report], first: int) -> None:
    batches = pack(reports, numbered(*range(256), following=first))
    assert sorted(unpacked(batches)) == sorted(reports)
    for batch in batches:
        frame = decode(batch.payload)
        assert frame.slots[-1] - frame.slots[0] <= MAX_OFFSET
        assert len(batch.payload) == HEAD_BYTES + PAIR_BYTES * batch.reports
    for stream in {report.stream for report in reports}:
        of_stream = [batch for batch in batches if batch.key.stream == stream]
        assert [batch.key.number for batch in of_stream] == [
            first + k for k in range(len(of_stream))
        ]
        frames = [decode(batch.payload) for batch in of_stream]
        assert [frame.batch for frame in frames] == list(range(1, len(frames) + 1))
        assert {frame.series for frame in frames} == {SERIES}
        assert all(a.last_slot < b.last_slot for a, b in pairwise(of_stream))


@pytest.mark.parametrize(
    ("count", "sizes"),
    [(1, [1]), (1023, [1023]), (1024, [1024]), (1025, [1024, 1]), (3000, [1024, 1024, 952])],
)
def test_a_batch_holds_up_to_1024_reports(count: int, sizes: list[int]) -> None:
    assert MAX_REPORTS == 1024
    batches = pack(reports_of(list(range(50, 50 + count))), numbered(1, following=7))
    assert [batch.reports for batch in batches] == sizes
    assert [batch.key.number for batch in batches] == list(range(7, 7 + len(sizes)))


@pytest.mark.parametrize(("offset", "batches"), [(65_534, 1), (65_535, 1), (65_536, 2)])
def test_a_batch_spans_at_most_65535_slots(offset: int, batches: int) -> None:
    assert len(pack(reports_of([10, 10 + offset]), numbered(1))) == batches


@pytest.mark.parametrize(
    ("room_bytes", "reports"),
    [(0, 1), (30, 1), (31, 1), (34, 1), (35, 2), (4122, 1023), (4123, 1024), (10**6, 1024)],
)
def test_a_frame_of_so_many_bytes_holds_so_many_reports_and_never_none(
    room_bytes: int, reports: int
) -> None:
    assert (HEAD_BYTES, PAIR_BYTES) == (27, 4)
    assert fitting(room_bytes) == reports
    (batch,) = pack(reports_of(list(range(reports))), numbered(1, following=7))
    assert len(batch.payload) <= max(room_bytes, HEAD_BYTES + PAIR_BYTES)


def test_a_new_plan_epoch_begins_a_new_batch_AGT_13() -> None:
    reports = [*reports_of([1, 2], epoch=4), *reports_of([3], epoch=5), *reports_of([4], epoch=9)]
    frames = [decode(batch.payload) for batch in pack(reports, numbered(1))]
    assert [(frame.batch, frame.epoch, frame.tag, frame.slots) for frame in frames] == [
        (1, 4, 20, (1, 2)),
        (2, 5, 25, (3,)),
        (3, 9, 45, (4,)),
    ]


def test_another_plan_of_the_same_epoch_begins_a_new_batch_too() -> None:
    reports = [Report(1, 5, 4, 0, tag=1), Report(1, 6, 4, 0, tag=2)]
    assert [decode(one.payload).tag for one in pack(reports, numbered(1))] == [1, 2]


def test_a_state_of_an_older_version_goes_on_with_frames_v1_until_a_series_begins() -> None:
    old = numbered(1, following=900, series=0)
    (before,) = pack(reports_of([1, 2]), old)
    (after,) = pack(reports_of([3]), {1: old[1]._replace(following=901).begun(5)})
    frames = [decode(before.payload), decode(after.payload)]
    assert [(one.series, one.batch) for one in frames] == [(0, 900), (5, 1)]
    assert [before.key, after.key] == [Key(1, 900), Key(1, 901)]


def test_series_have_any_number_of_32_bits_but_0_and_batches_in_them_count_from_1() -> None:
    assert [random_series(draw) for draw in (lambda _: 0, lambda n: n - 1)] == [1, 0xFFFFFFFF]
    assert Numbering() == Numbering(following=1, series=0, base=0)
    assert [BatchSeries(1, 5, 9, 900, last).made for last in (5, 6, 8)] == [0, 1, 3]


def test_streams_are_numbered_apart() -> None:
    reports = [*reports_of([1, 2], 9), *reports_of([1], 4), *reports_of([3], 9)]
    batches = pack(reports, numbered(9, following=100) | numbered(4, 7, following=5))
    assert [(batch.key, batch.reports) for batch in batches] == [(Key(4, 5), 1), (Key(9, 100), 3)]


def test_nothing_waiting_packs_nothing() -> None:
    assert pack([], numbered(1)) == []


def test_a_stream_without_a_number_cannot_be_packed() -> None:
    with pytest.raises(KeyError):
        pack(reports_of([1]), {})


@given(st.lists(st.integers(0, 65_535), min_size=1, max_size=50))
def test_the_length_of_a_frame_tells_how_many_reports_it_holds_and_nothing_else_PRV_17(
    codes: list[int],
) -> None:
    reports = [Report(1, 1000 + at, 1, code) for at, code in enumerate(codes)]
    (batch,) = pack(reports, numbered(1))
    assert len(batch.payload) == HEAD_BYTES + PAIR_BYTES * len(codes)


def test_packing_again_gives_the_same_bytes_PRV_02() -> None:
    reports = reports_of([3, 5, 8])
    assert pack(reports, numbered(1)) == pack(list(reports), numbered(1))
