"""Closed-form weights are those of Gauss and Markov: solved in fractions for every small wave."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from edge_ldp import SquareWave
from edge_ldp.device.channel import Wave, wave
from edge_ldp.sums.functionals import _banded, _inverting, chained

Rows = list[list[Fraction]]
ODDS = ((3, 2), (65_536 * 3, 65_536), (70_000, 65_536))


def law_of(small: Wave) -> Rows:
    """Return P(code | input), codes × inputs."""
    return [
        [Fraction(small.weight(i, j), small.total) for i in range(small.d)]
        for j in range(small.code_count)
    ]


def solved(square: Rows, right: list[Fraction]) -> list[Fraction]:
    """Return x of square·x = right."""
    rows = [[*row, value] for row, value in zip(square, right, strict=True)]
    for at in range(len(rows)):
        pivot = next(k for k in range(at, len(rows)) if rows[k][at])
        rows[at], rows[pivot] = rows[pivot], rows[at]
        rows[at] = [value / rows[at][at] for value in rows[at]]
        for k in range(len(rows)):
            if k != at:
                rows[k] = [a - rows[k][at] * b for a, b in zip(rows[k], rows[at], strict=True)]
    return [row[-1] for row in rows]


def least(law: Rows, h: list[Fraction]) -> list[Fraction]:
    """Return D·L·(Lᵀ·D·L)⁻¹·h, D = 1 / P(code | even inputs)."""
    size = len(h)
    scaled = [[p * size / sum(row, Fraction(0)) for p in row] for row in law]
    fisher = [
        [
            sum((a[i] * b[k] for a, b in zip(law, scaled, strict=True)), Fraction(0))
            for k in range(size)
        ]
        for i in range(size)
    ]
    found = solved(fisher, h)
    return [sum((a * b for a, b in zip(row, found, strict=True)), Fraction(0)) for row in scaled]


@pytest.mark.parametrize(("size", "c"), list(product(range(2, 7), range(5))))
def test_for_every_function_they_are_the_least_unbiased_ones(size: int, c: int) -> None:
    for r_num, r_den in ODDS:
        small = wave(size, c, r_num, r_den)
        law = law_of(small)
        functions = [[Fraction(int(i == k)) for i in range(size)] for k in range(size)]
        functions.append([Fraction(i * i, 3) for i in range(size)])
        found = chained(small, np.array(law, np.float64), np.array(functions, np.float64).T)
        assert found.shape == (small.code_count, size + 1)
        for column, h in zip(found.T, functions, strict=True):
            wanted = np.array(least(law, h), np.float64)
            room = 64 * np.finfo(float).eps * np.abs(wanted).max()
            np.testing.assert_allclose(column, wanted, rtol=0, atol=room)


@pytest.mark.parametrize(("epsilon", "size"), [("0.3", 100), (1, 256), (4, 128), (8, 64)])
def test_they_are_those_of_the_inverse_to_what_that_is_good_for(
    epsilon: int | str, size: int
) -> None:
    survey = SquareWave(epsilon=epsilon, low=0, high=43_470, size=size)
    ((_, _, wave),) = survey.branches
    assert isinstance(wave, Wave)
    law, h = _banded(wave), 1 - np.tri(size, size + 1)
    found, other = chained(wave, law, h), _inverting(law)(h)
    np.testing.assert_allclose(found, other, rtol=0, atol=1e-10 * np.abs(other).max())
    assert np.abs(law.T @ found - h).max() < 1e-12
