"""Frames: one encoding for each batch, and nothing else is accepted (REP_01, REP_06, REP_12)."""

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.device import frame
from edge_ldp.device.errors import ParameterError, WireError
from edge_ldp.vectorized import decode_frames, encode_frame
from tests.edge_ldp.golden import tables

GOLDEN = {version: tables("frame", version) for version in (1, 2)}
VALID = [
    pytest.param(row, id=f"v{version}: {row['name']}")
    for version, found in GOLDEN.items()
    for row in found["valid"]["frames"]
]
MALFORMED = [
    pytest.param(row, id=f"v{version}: {row['covers']}: {row['name']}")
    for version, found in GOLDEN.items()
    for row in found["malformed"]["frames"]
]
U32 = (1 << 32) - 1


Drawn = tuple[int, int, int, list[int], list[int], int, int]


@st.composite
def batches(draw: st.DrawFn) -> Drawn:
    first = draw(st.integers(0, U32))
    offsets = (
        draw(st.sets(st.integers(1, min(65_535, U32 - first)), max_size=60))
        if (first < U32)
        else set()
    )
    slots = [first, *sorted(first + offset for offset in offsets)]
    codes = draw(st.lists(st.integers(0, 65_535), min_size=len(slots), max_size=len(slots)))
    stream, batch, epoch = (draw(st.integers(0, top)) for top in (255, U32, U32))
    series = draw(st.just(0) | st.integers(1, U32))
    tag = draw(st.integers(0, U32)) if series else 0
    return stream, batch, epoch, slots, codes, series, tag


@given(batches())
def test_decoding_gives_back_what_was_encoded(batch: Drawn) -> None:
    stream, number, epoch, slots, codes, *more = batch
    payload = frame.encode(*batch)
    head = (stream, number, epoch)
    assert frame.decode(payload) == frame.Frame(*head, tuple(slots), tuple(codes), *more)
    assert frame.decode_header(payload) == frame.Header(*head, slots[0], len(slots), *more)
    size = frame.HEAD_BYTES if more[0] else frame.V1_HEAD_BYTES
    assert len(payload) == size + frame.PAIR_BYTES * len(slots)


@given(batches())
def test_arrays_give_the_same_bytes_and_the_same_fields(batch: Drawn) -> None:
    stream, number, epoch, slots, codes, *more = batch
    payload = frame.encode(*batch)
    assert encode_frame(stream, number, epoch, np.array(slots), np.array(codes), *more) == payload
    (found,) = decode_frames([payload])
    assert found is not None
    assert found[0] == frame.decode_header(payload)
    assert (found[1].tolist(), found[2].tolist()) == (slots, codes)


@st.composite
def nearly_frames(draw: st.DrawFn) -> bytes:
    """Return bytes like a frame's, with fields that may be wrong."""
    pairs = draw(st.lists(st.tuples(*[st.integers(0, 5) | st.integers(0, 65_535)] * 2), max_size=8))
    count = draw(st.just(len(pairs)) | st.integers(0, 65_535))
    started = st.sampled_from([b"LD\x01\x00", b"LD\x02\x00"])
    start = draw(started | st.binary(min_size=4, max_size=4))
    first = draw(st.integers(0, U32) | st.integers(U32 - 5, U32))
    rest = struct.pack("<BIIIH", 1, 2, 3, first, count)
    if start[2:3] == b"\x02":
        series = draw(st.integers(0, 2))
        rest = struct.pack("<BIIIIIH", 1, series, 2, 3, 4, first, count)
    tail = draw(st.just(b"") | st.binary(max_size=5))
    return start + rest + b"".join(struct.pack("<HH", *pair) for pair in pairs) + tail


@given(nearly_frames() | st.binary(max_size=64) | batches().map(lambda b: frame.encode(*b)))
def test_any_bytes_are_refused_or_are_the_one_encoding_of_their_batch(payload: bytes) -> None:
    try:
        found = frame.decode(payload)
    except WireError:
        assert decode_frames([payload]) == [None]
    else:
        assert frame.encode(*found) == payload


@given(
    st.lists(
        nearly_frames() | st.binary(max_size=64) | batches().map(lambda b: frame.encode(*b)),
        max_size=9,
    )
)
def test_many_payloads_at_once_are_decoded_as_each_alone(payloads: list[bytes]) -> None:
    for payload, found in zip(payloads, decode_frames(payloads), strict=True):
        try:
            alone = frame.decode(payload)
        except WireError:
            assert found is None
            continue
        assert found is not None
        head, slots, codes = found
        assert head == frame.decode_header(payload)
        assert (tuple(slots.tolist()), tuple(codes.tolist())) == (alone.slots, alone.codes)


def test_a_frame_of_more_reports_than_allowed_is_none_among_many() -> None:
    pairs = b"".join(struct.pack("<HH", at, 0) for at in range(frame.MAX_REPORTS + 1))
    long = struct.pack("<2sBBBIIIH", b"LD", 1, 0, 1, 2, 3, 4, frame.MAX_REPORTS + 1) + pairs
    assert [one is None for one in decode_frames([long, long[:-4]])] == [True, True]
    right = frame.encode(1, 2, 3, range(4, 4 + frame.MAX_REPORTS), [0] * frame.MAX_REPORTS)
    assert [one is None for one in decode_frames([long, right])] == [True, False]


@pytest.mark.parametrize("row", VALID)
def test_golden_frames_are_read_and_written_bit_for_bit(row: dict[str, Any]) -> None:
    payload = bytes.fromhex(row["hex"])
    head = (row["stream"], row["batch"], row["epoch"])
    more = (row.get("series", 0), row.get("tag", 0))
    assert frame.encode(*head, row["slots"], row["codes"], *more) == payload
    assert encode_frame(*head, np.array(row["slots"]), np.array(row["codes"]), *more) == payload
    assert frame.decode(payload) == (*head, tuple(row["slots"]), tuple(row["codes"]), *more)
    (found,) = decode_frames([payload])
    assert found is not None
    assert found[0][:3] == head
    assert (found[1].tolist(), found[2].tolist()) == (row["slots"], row["codes"])


@pytest.mark.parametrize("row", MALFORMED)
def test_malformed_frames_are_refused_with_their_reason(row: dict[str, Any]) -> None:
    payload = bytes.fromhex(row["hex"])
    with pytest.raises(WireError) as refused:
        frame.decode(payload)
    assert (refused.value.reason, refused.value.offset) == (row["reason"], row["offset"])
    assert decode_frames([payload]) == [None]


def test_every_reason_has_a_malformed_vector() -> None:
    reasons = {row["reason"] for found in GOLDEN.values() for row in found["malformed"]["frames"]}
    assert reasons == {"short", "magic", "version", "flags", "series", "count", "length", "order"}


def test_the_largest_frame_is_read_and_no_larger_one_is_written() -> None:
    slots, codes = list(range(1024)), [65_535] * 1024
    payload = frame.encode(1, 1, 1, slots, codes, 1)
    assert len(payload) == frame.MAX_BYTES
    assert frame.decode(payload).slots == tuple(slots)
    with pytest.raises(ParameterError):
        frame.encode(1, 1, 1, [*slots, 1024], [*codes, 0])
    with pytest.raises(ParameterError):
        encode_frame(1, 1, 1, np.arange(1025), np.zeros(1025, np.int64))


@pytest.mark.parametrize(
    ("stream", "batch", "epoch", "slots", "codes"),
    [
        (-1, 1, 1, [1], [1]),
        (256, 1, 1, [1], [1]),
        (1, -1, 1, [1], [1]),
        (1, 1 << 32, 1, [1], [1]),
        (1, 1, -1, [1], [1]),
        (1, 1, 1 << 32, [1], [1]),
        (1, 1, 1, [], []),
        (1, 1, 1, [1, 2], [1]),
        (1, 1, 1, [-1], [1]),
        (1, 1, 1, [1 << 32], [1]),
        (1, 1, 1, [U32, 1 << 32], [1, 1]),
        (1, 1, 1, [1 << 53], [1]),
        (1, 1, 1, [5, 5], [1, 1]),
        (1, 1, 1, [5, 4], [1, 1]),
        (1, 1, 1, [0, 65_536], [1, 1]),
        (1, 1, 1, [1], [-1]),
        (1, 1, 1, [1, 2], [1, 65_536]),
        (1, 1, 1, [1], [65_536]),
    ],
)
def test_what_a_frame_cannot_carry_is_not_written(  # as v1; series and tag below
    stream: int, batch: int, epoch: int, slots: list[int], codes: list[int]
) -> None:
    with pytest.raises(ParameterError):
        frame.encode(stream, batch, epoch, slots, codes)
    with pytest.raises(ParameterError):
        encode_frame(stream, batch, epoch, np.array(slots, int), np.array(codes, int))


@pytest.mark.parametrize(("series", "tag"), [(-1, 0), (1 << 32, 0), (1, -1), (1, 1 << 32), (0, 1)])
def test_a_series_or_tag_that_a_frame_cannot_carry_is_not_written(series: int, tag: int) -> None:
    with pytest.raises(ParameterError):
        frame.encode(1, 1, 1, [1], [1], series, tag)
    with pytest.raises(ParameterError):
        encode_frame(1, 1, 1, np.array([1]), np.array([1]), series, tag)


@given(batches(), st.data())
def test_the_length_of_a_frame_tells_the_number_of_reports_and_nothing_else(
    batch: Drawn, data: st.DataObject
) -> None:
    """PRV_17."""
    stream, number, epoch, slots, codes, *more = batch
    others = data.draw(st.lists(st.integers(0, 65_535), min_size=len(codes), max_size=len(codes)))
    assert len(frame.encode(stream, number, epoch, slots, others, *more)) == len(
        frame.encode(stream, number, epoch, slots, codes, *more)
    )
