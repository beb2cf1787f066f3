"""General waves: the shapes that the paper compares, and how they stand to the square wave."""

from fractions import Fraction
from typing import Any

import pytest

from edge_ldp import GeneralWave, ParameterError, SquareWave, from_plan
from edge_ldp.mechanisms.waved import trapezoid
from edge_ldp.ratio import Ratio, floor_ratio

TOPS = ["0", "0.2", "0.4", "0.6", "0.8", "1"]  # [SW] §6.4; 0 is the triangle, 1 the square


@pytest.mark.parametrize("top", TOPS)
@pytest.mark.parametrize("c", [0, 1, 2, 9, 262])
def test_a_trapezoid_is_symmetric_falls_and_keeps_between_its_two_odds(top: str, c: int) -> None:
    ratio = floor_ratio(1)
    weights = trapezoid(ratio, c, Fraction(top))
    assert len(weights) == 2 * c + 1
    assert weights == weights[::-1]
    falling = weights[c:]
    assert falling == sorted(falling, reverse=True)
    assert falling[0] == ratio.num
    assert falling[-1] >= ratio.den


def test_the_upper_side_is_as_long_as_the_ratio_says() -> None:
    weights = trapezoid(Ratio(1000, 1), 100, Fraction(2, 5))
    assert sum(weight == 1000 for weight in weights) == 81  # 0.4 · 201, whole codes
    triangle = trapezoid(Ratio(1000, 1), 2, Fraction(0))
    assert triangle == [1 + 999 * k // 5 for k in (1, 3, 5, 3, 1)]


def test_a_trapezoid_with_equal_sides_is_the_square_wave() -> None:
    square = SquareWave(epsilon=1, low=0, high=999, size=64)
    general = GeneralWave(epsilon=1, low=0, high=999, size=64, top=1)
    for value in (0, 500, 999):
        assert general.probabilities(value) == square.probabilities(value)
    assert general.max_ratio == square.max_ratio
    assert general.worst_variance == square.worst_variance


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "4", "8"])
@pytest.mark.parametrize("top", TOPS)
def test_no_shape_exceeds_the_nominal_epsilon(epsilon: str, top: str) -> None:
    m = GeneralWave(epsilon=epsilon, low=0, high=999, size=64, top=top)
    ratio = floor_ratio(epsilon)
    assert m.max_ratio == Fraction(ratio.num, ratio.den)


def test_sharper_shapes_vary_less_for_their_width_the_flatter_they_are() -> None:
    spread = [
        GeneralWave(epsilon=1, low=0, high=999, size=128, top=top).unit_variance for top in TOPS
    ]
    assert spread == sorted(spread, reverse=True)


def test_the_half_width_can_be_chosen() -> None:
    assert GeneralWave(epsilon=1, low=0, high=999, size=100, b="0.25").shape.c == 25
    assert GeneralWave(epsilon=1, low=0, high=999, size=100, b=0.1).shape.c == 10
    assert GeneralWave(epsilon=1, low=0, high=999, size=100, b=0).code_count == 100


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        (None, "profile"),
        ([], "profile"),
        ({"r_den": 1, "weights": [3]}, "d"),
        ({"d": 4, "weights": [3]}, "r_den"),
        ({"d": 4, "r_den": 1}, "weights"),
        ({"d": 4, "r_den": 1, "weights": [2, 3, 4]}, "weights"),  # lopsided: decoding is biased
        ({"d": 4, "r_den": 1, "weights": [2, 3.0, 2]}, "weights"),
    ],
    ids=str,
)
def test_a_plans_profile_is_checked_field_by_field(shape: Any, name: str) -> None:
    table = {"mechanism": "general-wave", "low": 0, "high": 9, "profile": shape}
    with pytest.raises(ParameterError) as refused:
        from_plan(table)
    assert refused.value.name == name
