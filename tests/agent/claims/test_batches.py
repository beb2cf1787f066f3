"""Batches keep every report, unchanged: packing."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.claims.batches import Batch, Key, fitting, pack
from agent.claims.pipeline import Report
from edge_ldp.device.frame import (
    HEAD_BYTES,
    MAX_OFFSET,
    MAX_REPORTS,
    PAIR_BYTES,
    V1_HEAD_BYTES,
    decode,
)


def reports_of(slots: list[int], stream: int = 1, epoch: int = 1) -> list[Report]:
    return [Report(stream, slot, epoch, slot % 97) for slot in slots]


def unpacked(batches: list[Batch]) -> list[Report]:
    found = []
    for batch in batches:
        frame = decode(batch.payload)
        assert (frame.stream, frame.batch) == batch.key
        assert batch.last_slot == frame.slots[-1]
        assert batch.reports == len(frame.slots)
        found += [
            Report(frame.stream, slot, frame.epoch, code)
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
            made.append(Report(stream, slot, epoch, draw(st.integers(0, 65_535))))
    return made


@given(waiting_reports(), st.integers(1, 1 << 31))
def test_frames_decode_to_the_same_reports_AGT_13(reports: list[Report], first: int) -> None:
    batches = pack(reports, dict.fromkeys(range(256), first))
    assert sorted(unpacked(batches)) == sorted(reports)
    for batch in batches:
        frame = decode(batch.payload)
        assert frame.slots[-1] - frame.slots[0] <= MAX_OFFSET
        assert len(batch.payload) == V1_HEAD_BYTES + PAIR_BYTES * batch.reports
    for stream in {report.stream for report in reports}:
        of_stream = [batch for batch in batches if batch.key.stream == stream]
        assert [batch.key.number for batch in of_stream] == [
            first + k for k in range(len(of_stream))
        ]
        assert all(a.last_slot < b.last_slot for a, b in pairwise(of_stream))


@pytest.mark.parametrize(
    ("count", "sizes"),
    [
        (1, [1]),
        (1023, [1023]),
        (1024, [1024]),
        (1025, [1024, 1]),
        (3000, [1024, 1024, 952]),
    ],
)
def test_a_batch_holds_up_to_1024_reports(count: int, sizes: list[int]) -> None:
    assert MAX_REPORTS == 1024
    batches = pack(reports_of(list(range(50, 50 + count))), {1: 7})
    assert [batch.reports for batch in batches] == sizes
    assert [batch.key.number for batch in batches] == list(range(7, 7 + len(sizes)))


@pytest.mark.parametrize(("offset", "batches"), [(65_534, 1), (65_535, 1), (65_536, 2)])
def test_a_batch_spans_at_most_65535_slots(offset: int, batches: int) -> None:
    assert len(pack(reports_of([10, 10 + offset]), {1: 1})) == batches


@pytest.mark.parametrize(
    ("room_bytes", "reports"),
    [(0, 1), (30, 1), (31, 1), (34, 1), (35, 2), (4122, 1023), (4123, 1024), (10**6, 1024)],
)
def test_a_frame_of_so_many_bytes_holds_so_many_reports_and_never_none(
    room_bytes: int, reports: int
) -> None:
    assert (HEAD_BYTES, PAIR_BYTES) == (27, 4)
    assert fitting(room_bytes) == reports
    (batch,) = pack(reports_of(list(range(reports))), {1: 7})
    assert len(batch.payload) <= max(room_bytes, HEAD_BYTES + PAIR_BYTES)


def test_a_new_plan_epoch_begins_a_new_batch_AGT_13() -> None:
    reports = [*reports_of([1, 2], epoch=4), *reports_of([3], epoch=5), *reports_of([4], epoch=9)]
    frames = [decode(batch.payload) for batch in pack(reports, {1: 20})]
    assert [(frame.batch, frame.epoch, frame.slots) for frame in frames] == [
        (20, 4, (1, 2)),
        (21, 5, (3,)),
        (22, 9, (4,)),
    ]


def test_streams_are_numbered_apart() -> None:
    reports = [*reports_of([1, 2], 9), *reports_of([1], 4), *reports_of([3], 9)]
    batches = pack(reports, {9: 100, 4: 5, 7: 3})
    assert [(batch.key, batch.reports) for batch in batches] == [(Key(4, 5), 1), (Key(9, 100), 3)]


def test_nothing_waiting_packs_nothing() -> None:
    assert pack([], {1: 1}) == []


def test_a_stream_without_a_number_cannot_be_packed() -> None:
    with pytest.raises(KeyError):
        pack(reports_of([1]), {})


@given(st.lists(st.integers(0, 65_535), min_size=1, max_size=50))
def test_the_length_of_a_frame_tells_how_many_reports_it_holds_and_nothing_else_PRV_17(
    codes: list[int],
) -> None:
    reports = [Report(1, 1000 + at, 1, code) for at, code in enumerate(codes)]
    (batch,) = pack(reports, {1: 1})
    assert len(batch.payload) == V1_HEAD_BYTES + PAIR_BYTES * len(codes)


def test_packing_again_gives_the_same_bytes_PRV_02() -> None:
    reports = reports_of([3, 5, 8])
    assert pack(reports, {1: 4}) == pack(list(reports), {1: 4})
