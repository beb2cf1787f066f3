"""The exact samplers have exactly their laws: bounds from every path, no tolerance."""

from collections.abc import Callable
from fractions import Fraction
from itertools import count

import pytest

from edge_ldp import ParameterError
from edge_ldp.continual.exact import (
    bernoulli_exp,
    discrete_laplace,
    geometric,
    uniform,
)
from edge_ldp.entropy import Uniform
from edge_ldp.ratio import exp_fraction
from tests.edge_ldp.continual.paths import bounded_law
from tests.edge_ldp.laws import exact_law, scripted

F = Fraction
LEAST = F(1, 20_000)


def holds(run: Callable[[Uniform], int], chances: dict[int, Fraction], *, loose: Fraction) -> None:
    law, cut = bounded_law(run, LEAST)
    assert cut < loose
    for result, chance in chances.items():
        assert law.get(result, 0) <= chance <= law.get(result, 0) + cut


def e(x: Fraction | int) -> Fraction:
    return exp_fraction(-F(x))


@pytest.mark.parametrize("x", [F(0), F(1, 3), F(1, 2), F(1), F(3, 2), F(2)])
def test_a_flip_succeeds_with_e_to_the_minus_x(x: Fraction) -> None:
    holds(lambda draw: bernoulli_exp(x, draw), {1: e(x), 0: 1 - e(x)}, loose=F(1, 20))


@pytest.mark.parametrize("scale", [F(1), F(2), F(1, 2), F(3, 2), F(2, 3)])
def test_a_geometric_number_is_the_floor_of_an_exponential(scale: Fraction) -> None:
    q = e(1 / scale)
    holds(lambda draw: geometric(scale, draw), {k: (1 - q) * q**k for k in range(5)}, loose=F(1, 5))


@pytest.mark.parametrize("scale", [F(1), F(1, 2), F(2)])
def test_discrete_laplace_noise_has_its_law(scale: Fraction) -> None:
    q = e(1 / scale)
    chances = {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-3, 4)}
    holds(lambda draw: discrete_laplace(scale, draw), chances, loose=F(2, 5))


def test_a_coin_of_any_integers_is_exact() -> None:
    assert exact_law(lambda draw: uniform(7, draw) < 3) == {1: F(3, 7), 0: F(4, 7)}
    wide = 3 << 65
    assert uniform(wide, scripted(0, 0)) == 0  # two words: 67 of 128 bits
    assert uniform(wide, scripted((1 << 64) - 1, 0, 1 << 60, 0)) == 1 << 63  # first: too large


def test_a_scale_far_beyond_a_word_works() -> None:
    words = iter(count())
    found = geometric(F(10**40), lambda n: (next(words) * 0x9E3779B97F4A7C15) % n)
    assert 0 <= found < 10**42


def test_what_has_no_law_is_refused() -> None:
    with pytest.raises(ParameterError):
        bernoulli_exp(F(-1), scripted())
    with pytest.raises(ParameterError):
        geometric(F(0), scripted())
