"""Several batches in one message: the same frames come out, and nothing else passes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.device.errors import WireError
from edge_ldp.device.frame import decode, encode
from edge_ldp.device.sums_frame import encode_sums
from edge_ldp.protocol.frames import MAX_BYTES, MAX_FRAMES, split_frames
from tests.edge_ldp.device.test_sums import FRAME as SUMS


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    """Draw a frame of either version, or a period's sums."""
    if draw(st.booleans()):
        cells = draw(st.sampled_from([1, 24]))
        name = draw(st.sampled_from(["p", "energy_import"]))
        return encode_sums(
            SUMS._replace(cells=cells, block=1, n=(2,) * cells, y=(-1,) * cells, name=name)
        )
    count = draw(st.integers(1, 9))
    slots = range(1000, 1000 + count)
    series = draw(st.sampled_from([0, 7]))
    number = draw(st.integers(1, 99))
    return encode(1, number, 1, slots, [draw(st.integers(0, 65_535))] * count, series)


@given(st.lists(frames(), min_size=1, max_size=MAX_FRAMES))
def test_what_was_put_together_comes_apart_bit_for_bit_PRV_02(made: list[bytes]) -> None:
    assert split_frames(b"".join(made)) == made


@given(st.lists(frames(), min_size=1, max_size=3), st.data())
def test_a_message_that_is_cut_is_no_frames(made: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(made)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    ends = {sum(map(len, made[:n])) for n in range(1, len(made))}
    if len(cut) in ends:
        assert split_frames(cut) == made[: len(split_frames(cut))]
    else:
        with pytest.raises(WireError):
            split_frames(cut)


@given(st.binary(max_size=200))
def test_any_bytes_come_apart_without_a_rest_or_raise_our_error(payload: bytes) -> None:
    try:
        assert b"".join(split_frames(payload)) == payload
    except WireError:
        return


def test_a_message_holds_no_more_than_its_bounds_NET_15() -> None:
    one = encode(1, 1, 1, [1], [0], 7)
    assert len(split_frames(one * MAX_FRAMES)) == MAX_FRAMES
    with pytest.raises(WireError, match="count"):
        split_frames(one * (MAX_FRAMES + 1))
    long = encode(1, 1, 1, range(1024), [0] * 1024, 7)
    with pytest.raises(WireError, match="size"):
        split_frames(long * (MAX_BYTES // len(long) + 1))
    assert decode(split_frames(long * (MAX_BYTES // len(long)))[-1]).batch == 1
