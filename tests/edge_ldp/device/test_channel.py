"""The integer kernel by itself: weights, sampling, decoding, and the parameters it refuses."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.device.channel import Wave, wave
from edge_ldp.device.errors import ParameterError
from edge_ldp.mechanisms.decoders import affine
from tests.edge_ldp.laws import exact_law, scripted
from tests.tables import each

SMALL = [
    wave(d, c, r_num, r_den)
    for d in (2, 3, 5)
    for c in (0, 1, 3)
    for r_num, r_den in ((2, 1), (7, 3))
]


@st.composite
def waves(draw: st.DrawFn) -> Wave:
    d = draw(st.integers(2, 2000))
    c = draw(st.integers(0, 2000))
    r_den = draw(st.integers(1, 1 << 16))
    return wave(d, c, r_den + draw(st.integers(1, 1 << 40)), r_den)


@pytest.mark.parametrize("w", SMALL, ids=str)
def test_sampling_follows_the_weights(w: Wave) -> None:
    for index in range(w.d):
        law = exact_law(lambda draw: w.sample(index, draw))  # noqa: B023
        weights = [w.weight(index, code) for code in range(w.code_count)]
        assert sum(weights) == w.total
        assert law == {code: Fraction(x, w.total) for code, x in enumerate(weights)}


@pytest.mark.parametrize("w", SMALL, ids=str)
def test_the_largest_ratio_of_weights_is_the_waves(w: Wave) -> None:
    columns = [[w.weight(i, code) for i in range(w.d)] for code in range(w.code_count)]
    assert max(Fraction(max(col), min(col)) for col in columns) == Fraction(w.r_num, w.r_den)


@pytest.mark.parametrize("w", SMALL, ids=str)
def test_decoding_is_unbiased_exactly(w: Wave) -> None:
    decoder = affine(w)
    for index in range(w.d):
        weighed = [(w.weight(index, code), decoder.index(code)) for code in range(w.code_count)]
        mean = sum(weight * y for weight, y in weighed) / w.total
        square = sum(weight * y * y for weight, y in weighed) / w.total
        assert decoder.moments(index) == (mean, square)
        assert mean == index


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
