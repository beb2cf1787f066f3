"""The integer kernel by itself: weights, sampling, decoding, and the parameters it refuses."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.device.channel import Wave, wave
from edge_ldp.device.errors import ParameterError
from tests.edge_ldp.laws import scripted
from tests.tables import each


@st.composite
def waves(draw: st.DrawFn) -> Wave:
    d = draw(st.integers(2, 2000))
    c = draw(st.integers(0, 2000))
    r_den = draw(st.integers(1, 1 << 16))
    return wave(d, c, r_den + draw(st.integers(1, 1 << 40)), r_den)


@given(waves(), st.data())
def test_the_first_and_last_word_of_each_kind_give_the_right_codes(
    w: Wave, data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, w.d - 1))
    near = w.near_total
    assert w.sample(index, scripted(0)) == index
    assert w.sample(index, scripted(near - 1)) == index + 2 * w.c
    far = [code for code in (0, w.code_count - 1) if w.weight(index, code) == w.r_den]
    ends = [w.sample(index, scripted(near)), w.sample(index, scripted(w.total - 1))]
    assert set(far) <= set(ends)
    assert all(w.weight(index, code) == w.r_den for code in ends)


@pytest.mark.parametrize(
    ("name", "given_wave"),
    each(
        ("d", (1, 0, 2, 1), (-4, 0, 2, 1), (65_537, 0, 2, 1), (2.0, 0, 2, 1)),
        ("c", (2, -1, 2, 1), (4, 32_767, 2, 1), (65_536, 1, 2, 1), (2, False, 2, 1)),
        ("r_den", (2, 0, 2, 0), (2, 0, 2, -1), (2, 0, -2, -3), (2, 0, 2, None)),
        ("r_num", (2, 0, 1, 1), (2, 0, 1, 2), (2, 0, (1 << 64) - 1, 1), (2, 1, 1 << 63, 1)),
        ("r_num", (2, 0, "2", 1)),
    ),
)
def test_integers_that_make_no_wave_are_refused_by_name(
    given_wave: tuple[Any, Any, Any, Any], name: str
) -> None:
    with pytest.raises(ParameterError) as refused:
        wave(*given_wave)
    assert refused.value.name == name


def test_the_largest_waves_are_allowed() -> None:
    assert wave(65_536, 0, 2, 1).code_count == 65_536
    assert wave(2, 32_767, 2, 1).code_count == 65_536
    assert wave(2, 0, (1 << 64) - 2, 1).total == (1 << 64) - 1


def test_waves_are_immutable_values() -> None:
    w = wave(2, 0, 3, 1)
    assert w == Wave(2, 0, 3, 1, 2, 3, 4)
    with pytest.raises(AttributeError):
        w.d = 4
    with pytest.raises(AttributeError):
        w.extra = 4  # type: ignore[attr-defined]
