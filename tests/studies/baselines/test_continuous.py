from itertools import pairwise
from math import exp, inf, nan

import numpy as np
import pytest
import scipy

from edge_ldp.device.errors import ParameterError
from edge_ldp.errors import CountsError
from edge_ldp.estimate import em, ems
from edge_ldp.estimate.operator import Operator
from studies.baselines.continuous import ContinuousWave, continuous_wave
from tests.edge_ldp.estimate.dense import iterate, smoothing_matrix


def overlap(wave: ContinuousWave, start: float, end: float, v: float) -> float:
    """Probability of a report in [start, end] under the value v."""
    near = max(0.0, min(end, v + wave.b) - max(start, v - wave.b))
    return wave.q * (end - start) + (wave.p - wave.q) * near


def matrix_of(operator: Operator) -> np.ndarray:
    return np.array([operator.apply(row) for row in np.eye(operator.inputs)]).T


@pytest.mark.parametrize("epsilon", [0.3, 1, 3])
@pytest.mark.parametrize(("size", "bins"), [(4, 4), (5, 3), (3, 11), (8, 8)])
def test_the_operator_is_the_integral_over_bucket_and_bin(
    epsilon: float, size: int, bins: int
) -> None:
    wave = continuous_wave(epsilon)
    operator = wave.model(size, bins).operator
    edges = np.linspace(-wave.b, 1 + wave.b, bins + 1)
    exact = np.zeros((bins, size))
    for j, (start, end) in enumerate(pairwise(edges)):
        kinks = [start - wave.b, start + wave.b, end - wave.b, end + wave.b]
        for i in range(size):
            inside = [k for k in kinks if i / size < k < (i + 1) / size]
            value, _ = scipy.integrate.quad(
                lambda v, s=start, e=end: overlap(wave, s, e, v),
                i / size,
                (i + 1) / size,
                points=inside or None,
                epsabs=1e-13,
            )
            exact[j, i] = value * size
    np.testing.assert_allclose(matrix_of(operator), exact, atol=1e-12)
    np.testing.assert_allclose(exact.sum(0), 1, atol=1e-12)
    adjoint = np.array([operator.adjoint(row) for row in np.eye(bins)])
    np.testing.assert_allclose(adjoint, exact, atol=1e-12)


def test_at_the_size_in_use_adjoint_and_apply_fit() -> None:
    operator = continuous_wave(1).model(1024).operator
    rng = np.random.default_rng(0)
    x, y = rng.dirichlet(np.full(1024, 0.1)), rng.random(1024)
    assert operator.apply(x).sum() == pytest.approx(1, abs=1e-12)
    assert operator.apply(x).min() > 0
    assert operator.apply(x) @ y == pytest.approx(x @ operator.adjoint(y), rel=1e-12)
    np.testing.assert_allclose(operator.adjoint(np.ones(1024)), 1, rtol=1e-11)


def test_em_and_ems_are_the_dense_iterations() -> None:
    model = continuous_wave(1).model(16, 24)
    counts = np.random.default_rng(1).integers(1, 100, 24).astype(float)
    matrix = matrix_of(model.operator)
    plain = em(model, counts, tolerance=0, max_iterations=50)
    np.testing.assert_allclose(plain.probabilities, iterate(matrix, counts, 50), atol=1e-10)
    smoothed = ems(model, counts, tolerance=0, max_iterations=50)
    dense = iterate(matrix, counts, 50, smoothing_matrix(16))
    np.testing.assert_allclose(smoothed.probabilities, dense, atol=1e-10)
    assert smoothed.edges.tolist() == list(range(17))


def test_its_parameters_are_the_papers() -> None:
    for epsilon in (0.5, 1.0, 4.0):
        wave = continuous_wave(epsilon)
        e = exp(epsilon)
        assert wave.b == pytest.approx((epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon)))
        assert wave.p / wave.q == pytest.approx(e)
        assert 2 * wave.b * wave.p + wave.q == pytest.approx(1)
    for epsilon in (1e-9, 1e-3, 0.0499999):  # b falls from 1/2, and the series joins the formula
        assert continuous_wave(epsilon).b == pytest.approx(0.5 - epsilon / 3, abs=epsilon**2)
    assert continuous_wave(0.05).b == pytest.approx(continuous_wave(0.0499999).b, abs=1e-6)


def test_reports_follow_the_density() -> None:
    """Every uniform number on a fine grid: the law to the grid's width, no chance in it."""
    wave = continuous_wave(1)
    uniform = (np.arange(200_000) + 0.5) / 200_000
    bins = 40
    edges = np.linspace(-wave.b, 1 + wave.b, bins + 1)
    for v in (0.0, 0.3, 1.0):
        counts = wave.count(wave.perturb(np.full(200_000, v), uniform), bins)
        law = [overlap(wave, start, end, v) for start, end in pairwise(edges)]
        np.testing.assert_allclose(counts / 200_000, law, atol=3e-5)


def test_what_does_not_fit_is_refused() -> None:
    wave = continuous_wave(1)
    for reports in ([2.0], [nan], [-1.0]):
        with pytest.raises(CountsError, match="range"):
            wave.count(reports, 4)
    for epsilon in (0.0, -1.0, nan, inf, 1000.0):
        with pytest.raises(ParameterError, match="epsilon"):
            continuous_wave(epsilon)
    for size, bins in ((1, 4), (4, 1)):
        with pytest.raises(ParameterError, match="size"):
            wave.model(size, bins)
