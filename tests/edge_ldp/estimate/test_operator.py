from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp import Hybrid, Mechanism, Piecewise, SquareWave, StochasticRounding
from edge_ldp.device.channel import wave
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.randomizer import BUCKETS
from edge_ldp.device.table import table
from edge_ldp.estimate.operator import Convolved, Transformed, branch_of, operator_of
from edge_ldp.mechanisms import GeneralWave, Tuned
from edge_ldp.mechanisms.tuned import Response
from edge_ldp.mechanisms.waved import Waved
from tests.edge_ldp.estimate.dense import exact_matrix, wave_matrix

MECHANISMS = [
    SquareWave(epsilon=1, low=0, high=63, size=64),
    SquareWave(epsilon=1, low=-7, high=12, size=16),  # buckets of one and of two integers
    SquareWave(epsilon="0.1", low=0, high=1, size=2),
    SquareWave(epsilon=5, low=0, high=99, size=50),
    StochasticRounding(epsilon=1, low=-3, high=9),
    Piecewise(epsilon=2, low=0, high=60, size=31),
    Hybrid(epsilon=1, low=-10, high=20, size=16),
    Hybrid(epsilon="0.5", low=0, high=30, size=16),  # coin 0: SR alone
    Hybrid(epsilon=3, low=0, high=7, size=2),
    GeneralWave(epsilon=1, low=0, high=63, size=32, top="0.4"),
    GeneralWave(epsilon="0.3", low=-3, high=12, size=9),
    Tuned.of(Response(((3, 2, 1), (1, 2, 3)), (-3, 0, 3), 1), low=-5, high=9),
]


def points(mechanism: Mechanism) -> st.SearchStrategy[np.ndarray]:
    return st.integers(0, 2**32).map(lambda s: np.random.default_rng(s).random(mechanism.size))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_apply_and_adjoint_are_the_exact_matrix_and_its_transpose(mechanism: Mechanism) -> None:
    matrix = exact_matrix(mechanism)
    operator = operator_of(mechanism)
    assert matrix.shape == (operator.codes, operator.inputs)
    rng = np.random.default_rng(0)
    for x, y in zip(rng.random((5, operator.inputs)), rng.random((5, operator.codes)), strict=True):
        np.testing.assert_allclose(operator.apply(x), matrix @ x, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(operator.adjoint(y), matrix.T @ y, rtol=1e-13, atol=1e-15)
    np.testing.assert_array_equal(operator.possible, matrix.any(axis=1))


def test_at_the_size_in_use_the_operator_is_the_kernels_weights() -> None:
    mechanism = SquareWave(epsilon=1, low=0, high=43_470, size=1024)
    operator = operator_of(mechanism)
    matrix = wave_matrix(mechanism.waves[0])
    rng = np.random.default_rng(1)
    x, y = rng.dirichlet(np.full(1024, 0.1)), rng.random(operator.codes)
    np.testing.assert_allclose(operator.apply(x), matrix @ x, rtol=1e-12)
    np.testing.assert_allclose(operator.adjoint(y), matrix.T @ y, rtol=1e-12)


def test_a_long_profile_goes_by_transforms_and_a_short_one_does_not() -> None:
    long = GeneralWave(epsilon=1, low=0, high=10**6, size=600, top="0.2")
    operator = operator_of(long)
    assert isinstance(operator.branches[0], Transformed)
    assert isinstance(operator_of(MECHANISMS[9]).branches[0], Convolved)
    shape = long.shape
    matrix = np.full((shape.code_count, shape.d), float(shape.r_den))
    for i in range(shape.d):
        matrix[i : i + 2 * shape.c + 1, i] = shape.weights
    matrix /= shape.total
    rng = np.random.default_rng(3)
    x, y = rng.dirichlet(np.full(shape.d, 0.05)), rng.random(shape.code_count)
    np.testing.assert_allclose(operator.apply(x), matrix @ x, rtol=1e-12)
    np.testing.assert_allclose(operator.adjoint(y), matrix.T @ y, rtol=1e-12)
    assert operator.apply(x).min() > 0


@given(st.sampled_from(MECHANISMS), st.integers(0, 2**32))
def test_adjoint_identity_and_total(mechanism: Mechanism, seed: int) -> None:
    operator = operator_of(mechanism)
    rng = np.random.default_rng(seed)
    x, y = rng.random(operator.inputs), rng.normal(size=operator.codes)
    assert operator.apply(x) @ y == pytest.approx(x @ operator.adjoint(y), rel=1e-10, abs=1e-10)
    assert operator.apply(x).sum() == pytest.approx(x.sum(), rel=1e-12)
    np.testing.assert_allclose(operator.adjoint(np.ones(operator.codes)), 1, rtol=1e-12)


def test_of_a_mixture_with_coin_0_only_the_second_branch_is_possible() -> None:
    mechanism = Hybrid(epsilon="0.5", low=0, high=30, size=16)
    operator = operator_of(mechanism)
    assert operator.possible.sum() == 2
    assert not operator.apply(np.full(16, 1 / 16))[:-2].any()


def test_a_coarse_branch_of_any_size_sees_the_lattice_rounded_once_more() -> None:
    waves = (wave(7, 1, 5, 2), wave(4, 2, 3, 1))
    made = Hybrid.__new__(Hybrid)
    Waved.__init__(made, 0, 6, (1, 3), *waves)
    operator = operator_of(made)  # 6 = 2·3: the coarse points are among the fine ones
    matrix = exact_matrix(made)
    for i in range(7):
        np.testing.assert_allclose(operator.apply(np.eye(7)[i]), matrix[:, i], atol=1e-15)
        np.testing.assert_allclose(operator.adjoint(matrix[:, i]), matrix.T @ matrix[:, i])


class TwoWaves(Waved):
    """A mixture of square waves, as no plan can ask for yet."""

    name = "two-waves"
    encoder = BUCKETS
    branch_count = 2


def test_buckets_of_two_sizes_are_refused() -> None:
    coarse, fine = wave(4, 1, 3, 1), wave(8, 1, 3, 1)
    with pytest.raises(ParameterError, match="one size"):
        operator_of(TwoWaves(0, 7, (1, 2), coarse, fine))
    same = TwoWaves(0, 7, (1, 2), fine, fine)
    x = np.random.default_rng(2).random(8)
    np.testing.assert_allclose(operator_of(same).apply(x), exact_matrix(same) @ x)


def test_channels_that_fit_no_lattice_or_are_none_are_refused() -> None:
    three = table([[2, 1], [1, 2], [1, 2]])
    with pytest.raises(ParameterError, match="different sizes"):
        branch_of(Fraction(1), three, 5)
    with pytest.raises(ParameterError, match="waves, profiles or tables"):
        branch_of(Fraction(1), SimpleNamespace(d=3), 3)
