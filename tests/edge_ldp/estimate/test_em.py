from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edge_ldp import Hybrid, Mechanism, Piecewise, SquareWave, StochasticRounding
from edge_ldp.device.errors import ParameterError
from edge_ldp.errors import CountsError
from edge_ldp.estimate import Density, em, ems
from edge_ldp.estimate.em import Problem, leap, smooth
from edge_ldp.estimate.operator import Transformed, model_of, operator_of
from edge_ldp.gateway.ems import BLURRED, CAPPED, ONE_CODE
from edge_ldp.mechanisms import GeneralWave, Tuned
from edge_ldp.mechanisms.tuned import Response
from edge_ldp.sums import homes_law
from tests.edge_ldp.estimate.dense import exact_matrix, iterate, smoothing_matrix, wave_matrix

SMALL = [
    SquareWave(epsilon=1, low=0, high=31, size=16),
    StochasticRounding(epsilon=1, low=0, high=9),
    Piecewise(epsilon=1, low=0, high=30, size=16),
    Hybrid(epsilon=1, low=0, high=30, size=16),
    GeneralWave(epsilon=1, low=0, high=31, size=16, top="0.4"),
    Tuned.of(Response(((3, 2, 1), (2, 2, 2), (1, 2, 3)), (-3, 0, 3), 1), low=-5, high=9),
]
WAVE = SquareWave(epsilon=1, low=0, high=43_470, size=1024)
Estimator = Callable[..., Density]
ESTIMATORS = ["EM", "EMS", "accelerated EMS"]


def reports(mechanism: Mechanism, n: int, seed: int) -> NDArray[np.float64]:
    """Counts of n reports from a density with a peak, a tail and empty cells."""
    x = np.exp(-np.arange(mechanism.size) / (mechanism.size / 12))
    x[mechanism.size // 2 :] = 0
    law = operator_of(mechanism).apply(x / x.sum())
    return np.random.default_rng(seed).multinomial(n, law).astype(np.float64)


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
@pytest.mark.parametrize("iterations", [1, 2, 50, 400])
def test_small_ones_are_the_dense_iterations(mechanism: Mechanism, iterations: int) -> None:
    counts = reports(mechanism, 5000, iterations)
    matrix = exact_matrix(mechanism)
    rows = smoothing_matrix(mechanism.size)
    plain = em(mechanism, counts, tolerance=0, max_iterations=iterations)
    oracle = iterate(matrix, counts, iterations)
    np.testing.assert_allclose(plain.probabilities, oracle, atol=1e-9)
    smoothed = ems(mechanism, counts, tolerance=0, max_iterations=iterations)
    oracle = iterate(matrix, counts, iterations, rows)
    np.testing.assert_allclose(smoothed.probabilities, oracle, atol=1e-9)
    assert smoothed.iterations == iterations
    assert smoothed.log_likelihood == pytest.approx(counts @ np.log(matrix @ oracle), rel=1e-12)


def test_at_the_size_in_use_they_are_the_dense_iterations() -> None:
    matrix = wave_matrix(WAVE.waves[0])
    counts = reports(WAVE, 100_000, 0)
    for estimator, rows in ((em, None), (ems, smoothing_matrix(1024))):
        fast = estimator(WAVE, counts, tolerance=0, max_iterations=60)
        dense = iterate(matrix, counts, 60, rows)
        np.testing.assert_allclose(fast.probabilities, dense, rtol=1e-9, atol=1e-9)


def test_a_long_profile_gives_the_dense_iterations_too() -> None:
    wave = GeneralWave(epsilon=1, low=0, high=10**6, size=600, top="0.2")
    assert isinstance(operator_of(wave).branches[0], Transformed)
    counts = reports(wave, 20_000, 0)
    matrix = np.full((wave.code_count, 600), float(wave.shape.r_den))
    for i in range(600):
        matrix[i : i + 2 * wave.shape.c + 1, i] = wave.shape.weights
    dense = iterate(matrix / wave.shape.total, counts, 60, smoothing_matrix(600))
    found = ems(wave, counts, tolerance=0, max_iterations=60)
    np.testing.assert_allclose(found.probabilities, dense, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("size", [2, 3, 9])
def test_the_kernel_is_its_matrix(size: int) -> None:
    x = np.random.default_rng(size).random(size)
    np.testing.assert_allclose(smooth(x), smoothing_matrix(size) @ x, rtol=1e-15)


@given(st.integers(0, 2**32), st.integers(1, 400))
def test_em_never_lowers_the_likelihood(seed: int, n: int) -> None:
    counts = reports(SMALL[3], n, seed)
    steps = [em(SMALL[3], counts, tolerance=0, max_iterations=k) for k in (1, 2, 4, 8, 16)]
    likelihoods = [step.log_likelihood for step in steps]
    assert np.diff(likelihoods).min() > -1e-9 * abs(likelihoods[0])


def test_they_stop_at_the_first_change_below_tau() -> None:
    wave = SMALL[0]
    counts = reports(wave, 5000, 3)
    for estimator, tau in ((em, 1e-3 * float(wave.max_ratio)), (ems, 1e-3)):
        done = estimator(wave, counts)
        last, before, earlier = (
            estimator(wave, counts, tolerance=0, max_iterations=done.iterations - k).log_likelihood
            for k in range(3)
        )
        assert done.log_likelihood == last
        assert abs(last - before) < tau <= abs(before - earlier)


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_accelerated_ems_is_where_the_plain_one_ends(mechanism: Mechanism) -> None:
    counts = reports(mechanism, 20_000, 7)
    fast = ems(mechanism, counts, accelerate=True, tolerance=1e-10)
    slow = ems(mechanism, counts, tolerance=0)
    np.testing.assert_allclose(fast.probabilities, slow.probabilities, atol=1e-7)
    assert fast.log_likelihood == pytest.approx(slow.log_likelihood, abs=1e-4)


def test_accelerated_ems_is_a_fixed_point_at_the_size_in_use() -> None:
    counts = reports(WAVE, 150_000, 7)
    matrix, rows = wave_matrix(WAVE.waves[0]), smoothing_matrix(1024)
    fast = ems(WAVE, counts, accelerate=True, tolerance=1e-8)
    assert fast.iterations < 5000
    assert fast.n == 150_000
    assert fast.mean() == pytest.approx(43_470 / 12, rel=0.05)
    after = rows @ (fast.probabilities * (matrix.T @ (counts / (matrix @ fast.probabilities))))
    assert np.abs(after / after.sum() - fast.probabilities).sum() < 2e-8
    slow = ems(WAVE, counts, tolerance=0)
    assert np.abs(fast.probabilities - slow.probabilities).sum() < 2e-3


def test_leaps_that_stop_early_stop_by_the_plain_rule_and_near_its_end() -> None:
    counts = reports(WAVE, 150_000, 7)
    done = ems(WAVE, counts, accelerate=True, early=True)
    plain, fixed = ems(WAVE, counts), ems(WAVE, counts, accelerate=True)
    assert done.iterations < plain.iterations / 5
    assert fixed.iterations < plain.iterations / 2
    matrix, rows = wave_matrix(WAVE.waves[0]), smoothing_matrix(1024)
    x = done.probabilities
    after = rows @ (x * (matrix.T @ (counts / (matrix @ x))))
    change = counts @ np.log(matrix @ (after / after.sum()) / (matrix @ x))
    assert abs(change) < 1e-3  # the next change of the likelihood is no larger either
    apart = [np.abs(np.cumsum(x - y.probabilities)).mean() for y in (plain, fixed)]
    assert max(apart) < 1e-3


def test_acceleration_ends_at_the_cap() -> None:
    done = ems(WAVE, reports(WAVE, 1000, 9), accelerate=True, max_iterations=6)
    assert 6 <= done.iterations <= 7
    assert done.probabilities.sum() == pytest.approx(1)
    assert done.warnings == (CAPPED,)


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("most", [6, 7, 10_000])
def test_every_step_counts_as_an_iteration_and_only_the_cap_warns(
    most: int, *, early: bool
) -> None:
    model, counts = model_of(WAVE), reports(WAVE, 150_000, 7)
    steps = []

    class Counted(Problem):
        def step(self, x: NDArray[np.float64], pull: NDArray[np.float64]) -> NDArray[np.float64]:
            steps.append(1)
            return super().step(x, pull)

    problem = Counted(model, model.operator.unscaled(), counts, float(counts.sum()), 0.5)
    done = leap(problem, 1e-3, most, early=early)
    assert done.iterations == len(steps)
    assert done.warnings == (() if most == 10_000 else (CAPPED,))


CASES: dict[str, Callable[[int], Any]] = {
    "one report": lambda k: np.bincount([k // 3], minlength=k),
    "all in the first code": lambda k: np.bincount([0] * 500, minlength=k),
    "all in the last code": lambda k: np.bincount([k - 1] * 500, minlength=k),
    "all the same": lambda k: np.full(k, 7),
    "first and last": lambda k: np.bincount([0, k - 1], minlength=k),
    "n of a billion in one code": lambda k: np.bincount([k // 2], minlength=k) * 10**9,
    "n of a billion everywhere": lambda k: np.full(k, 10**9 // k),
    "fewer reports than cells": lambda k: np.bincount([0, k // 2, k // 2], minlength=k),
}


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("estimator", [em, ems, partial(ems, accelerate=True)], ids=ESTIMATORS)
@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_AGG_11_every_table_gives_a_density_inside_the_cap(
    mechanism: Mechanism, case: str, estimator: Estimator
) -> None:
    counts = CASES[case](mechanism.code_count)
    one = estimator(mechanism, counts, max_iterations=3000)
    two = estimator(mechanism, counts, max_iterations=3000)
    assert np.isfinite(one.probabilities).all()
    assert one.probabilities.min() >= 0
    assert one.probabilities.sum() == pytest.approx(1, abs=1e-12)
    assert np.isfinite([one.mean(), one.variance(), one.log_likelihood]).all()
    assert one.iterations <= 3000
    assert one.n == counts.sum()
    np.testing.assert_array_equal(one.probabilities, two.probabilities)


@pytest.mark.parametrize("estimator", [em, ems])
def test_AGG_12_codes_that_no_device_can_send_are_refused(estimator: Estimator) -> None:
    mechanism = Hybrid(epsilon="0.5", low=0, high=30, size=16)  # coin 0: PM's codes never come
    counts = np.zeros(mechanism.code_count)
    counts[-2:] = 10, 20
    assert estimator(mechanism, counts).n == 30
    counts[0] = 1
    with pytest.raises(CountsError, match="probability 0"):
        estimator(mechanism, counts)


@pytest.mark.parametrize("strength", [0.0, 0.003, 0.3, 0.5, 1.0, 3.2])
@pytest.mark.parametrize("size", [2, 3, 9, 28, 29, 100])
def test_a_strength_is_passes_of_a_narrower_kernel(size: int, strength: float) -> None:
    x = np.random.default_rng(size).random(size)
    passes = max(1, int(np.ceil(2 * strength)))
    once = smoothing_matrix(size, strength / passes)
    expected = np.linalg.matrix_power(once, passes) @ x
    np.testing.assert_allclose(smooth(x, strength), expected, rtol=1e-14)


def test_strength_0_is_em_and_a_half_is_ems() -> None:
    counts = reports(SMALL[0], 5000, 1)
    none, plain = ems(SMALL[0], counts, strength=0), em(SMALL[0], counts, tolerance=1e-3)
    np.testing.assert_array_equal(none.probabilities, plain.probabilities)
    half, usual = ems(SMALL[0], counts, strength=0.5), ems(SMALL[0], counts)
    np.testing.assert_array_equal(half.probabilities, usual.probabilities)
    for strength in (-0.1, 101, float("nan")):
        with pytest.raises(ParameterError, match="strength"):
            ems(SMALL[0], counts, strength=strength)


def test_what_a_reader_should_know_is_told() -> None:
    wave = SMALL[0]
    assert em(wave, reports(wave, 5000, 1)).warnings == ()
    one = [0.0] * wave.code_count
    one[3] = 1
    for estimator in (em, ems, partial(ems, accelerate=True)):
        for count in (1.0, 1e6):
            found = estimator(wave, [count * n for n in one])
            assert ONE_CODE in found.warnings
            assert np.isfinite(found.probabilities).all()
            assert found.n == count
        assert CAPPED in estimator(wave, reports(wave, 5000, 1), max_iterations=2).warnings


def test_counts_that_floats_no_longer_count_are_refused() -> None:
    wave = SMALL[0]
    half = [2.0**52] * 2 + [0.0] * (wave.code_count - 2)
    assert em(wave, half, max_iterations=2).n == 2**53
    with pytest.raises(CountsError, match="2\\*\\*53"):
        em(wave, [2**53, *half[1:]])


def of_meters(size: int) -> Density:
    """Return the EMS density of values spread as homes' in a range of 43.5 kW, without noise."""
    wave, law = SquareWave(epsilon=1, low=0, high=43_470, size=size), homes_law(0, 43_470)
    pairs = zip(law.shares, law.values, strict=True)
    sent = sum(share * np.array(wave.probabilities(int(v)), np.float64) for share, v in pairs)
    return ems(wave, 1e6 * np.asarray(sent))


@pytest.mark.parametrize("size", [32, 64, 256, 1024])
def test_smoothing_that_is_wide_beside_the_density_is_told(size: int) -> None:
    """And where it is not told the mean is within a tenth: the criterion was measured."""
    found = of_meters(size)
    error = found.mean() / homes_law(0, 43_470).mean - 1
    assert (BLURRED in found.warnings) == (size < 512)
    assert (error > 0.1) == (size < 512)


def test_a_density_over_many_cells_and_no_smoothing_carry_no_such_warning() -> None:
    wide = SquareWave(epsilon=1, low=0, high=999, size=64)
    counts = np.full(wide.code_count, 1000)
    assert ems(wide, counts).warnings == ()
    assert ems(wide, np.eye(wide.code_count)[5:7].sum(axis=0), strength=0).warnings == ()
