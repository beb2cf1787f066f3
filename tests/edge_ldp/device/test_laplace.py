"""The portable noise has exactly its law: bounds from every path, no tolerance."""

from fractions import Fraction
from itertools import product

import pytest

from edge_ldp import ParameterError
from edge_ldp.continual import exact
from edge_ldp.device.laplace import (
    MAX_SCALE,
    block_laplace,
    integer_geometric,
    integer_laplace,
    unit_exp,
)
from edge_ldp.entropy import Uniform
from edge_ldp.ratio import exp_fraction
from tests.edge_ldp.continual.paths import bounded_law, noise_from

F = Fraction


def q(scale: int) -> Fraction:
    return exp_fraction(-F(1, scale))


@pytest.mark.parametrize("scale", [1, 2, 3])
def test_a_number_has_the_discrete_laplace_law(scale: int) -> None:
    law, cut = bounded_law(lambda draw: integer_laplace(scale, draw), F(1, 20_000))
    assert cut < F(2, 5)
    for k in range(-3, 4):
        chance = (1 - q(scale)) / (1 + q(scale)) * q(scale) ** abs(k)
        assert law.get(k, 0) <= chance <= law.get(k, 0) + cut


@pytest.mark.parametrize(("scale", "cells"), [(1, 2), (1, 3)])
def test_a_blocks_noise_has_its_law_and_so_its_promise(scale: int, cells: int) -> None:
    """Pr[z] ∝ q^max|z_j|: what lies as far out weighs the same, one further out q times that."""

    def number(draw: Uniform) -> int:
        return sum((z + 50) * 101**at for at, z in enumerate(block_laplace(scale, cells, draw)))

    law, cut = bounded_law(number, F(1, 3_000))
    shells = [(2 * r + 1) ** cells - (2 * r - 1) ** cells if r else 1 for r in range(400 * scale)]
    whole = sum(many * q(scale) ** r for r, many in enumerate(shells))
    for z in product((-1, 0, 1), repeat=cells):
        chance = q(scale) ** max(map(abs, z)) / whole
        found = law.get(sum((one + 50) * 101**at for at, one in enumerate(z)), F(0))
        assert found <= chance <= found + cut


def test_the_same_words_give_the_curators_numbers() -> None:
    """One law, one order of draws: rationals there, integers of 64 bits here."""

    there, here = noise_from(1), noise_from(1)
    for scale in (1, 7, 1000, 527_074):
        assert integer_laplace(scale, here) == exact.discrete_laplace(F(scale), there)


def test_a_flip_of_one_needs_one_draw_and_never_fails_for_nothing() -> None:
    assert unit_exp(0, 5, lambda _: 0)
    assert bounded_law(lambda draw: unit_exp(0, 5, draw), F(1, 100)) == ({1: F(1)}, F(0))


@pytest.mark.parametrize("scale", [0, -1, 1.5, True, MAX_SCALE])
def test_a_scale_that_is_none_is_refused(scale: int) -> None:
    with pytest.raises(ParameterError, match="scale"):
        integer_geometric(scale, lambda _: 0)


@pytest.mark.parametrize("cells", [0, 97, 2.0])
def test_a_block_that_is_none_is_refused(cells: int) -> None:
    with pytest.raises(ParameterError, match="cells"):
        block_laplace(1, cells, lambda _: 0)


def test_no_draw_is_from_more_than_64_bits() -> None:
    asked: list[int] = []
    noise = noise_from(3)

    def draw(n: int) -> int:
        asked.append(n)
        return noise(n)

    for _ in range(50):
        block_laplace(MAX_SCALE - 1, 4, draw)
    assert MAX_SCALE < max(asked) <= 1 << 64


def test_a_block_is_of_1_to_96_cells() -> None:
    assert [len(block_laplace(1000, n, noise_from(3))) for n in (1, 96)] == [1, 96]
    for n in (0, 97, True):
        with pytest.raises(ParameterError, match="cells"):
            block_laplace(1000, n, noise_from(3))
