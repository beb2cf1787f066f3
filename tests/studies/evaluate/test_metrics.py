import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.estimate.density import Density, density
from studies.evaluate import (
    Masses,
    ks,
    mean_error,
    quantile_error,
    query_pairs,
    range_error,
    variance_error,
    w1,
)
from studies.evaluate.metrics import errors_between

CELLS = st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any)


def made(masses: list[int], edges: list[float] | None = None) -> Density:
    x = np.array(masses, float)
    return density(x / x.sum(), np.arange(len(x) + 1) * 5 if edges is None else edges)


@given(CELLS, CELLS)
def test_on_one_grid_w1_and_ks_are_those_of_the_cells_as_atoms(
    one: list[int], two: list[int]
) -> None:
    x, y = made(one), made(two)
    atoms = scipy.stats.wasserstein_distance(range(4), range(4), x.probabilities, y.probabilities)
    assert w1(x, y) == pytest.approx(atoms / 4)
    assert ks(x, y) == pytest.approx(np.abs(np.cumsum(x.probabilities - y.probabilities)).max())


@given(CELLS)
def test_a_density_is_no_distance_from_itself_on_any_grid(masses: list[int]) -> None:
    x = made(masses)
    finer = made(np.repeat(masses, 5).tolist(), list(range(21)))
    for metric in (w1, ks, mean_error, variance_error, quantile_error):
        assert metric(x, x) == metric(finer, finer) == 0
    for metric in (w1, ks, mean_error, variance_error):
        assert metric(x, finer) == pytest.approx(0, abs=1e-12)
        assert metric(finer, x) == pytest.approx(0, abs=1e-12)
    for alpha in (0.1, 0.4, 1):
        assert range_error(x, finer, alpha) == pytest.approx(0, abs=1e-12)


def test_they_are_what_they_are_by_hand() -> None:
    x, y = made([1, 0, 0, 0]), made([0, 0, 0, 1])  # mass moved by three quarters of the range
    assert w1(x, y) == pytest.approx(0.75)
    assert ks(x, y) == pytest.approx(1)
    assert mean_error(x, y) == pytest.approx(0.75)
    assert variance_error(x, y) == pytest.approx(0)
    assert variance_error(made([1, 0, 0, 1]), made([0, 1, 1, 0])) == pytest.approx(
        (2 * 7.5**2 - 2 * 2.5**2) / 2 / 400
    )
    assert quantile_error(x, y) == pytest.approx(0.75)
    # [i, i + ½): the mass of the first quarter is left behind linearly, then that of the last comes
    assert range_error(x, y, 0.5) == pytest.approx(0.5, abs=1e-3)


def test_the_quantile_is_the_last_edge_with_no_more_below() -> None:
    """0.1 … 0.9 of ten even cells are edges 1 … 9; rounding of the sums must not lose one."""
    even = made([1] * 10, list(range(11)))
    first = made([1] + [0] * 9, list(range(11)))
    assert quantile_error(even, first) == pytest.approx(np.arange(1, 10).mean() / 10)


def test_frequencies_below_0_may_be_asked_for_ranges() -> None:
    x = made([1, 1, 1, 1])
    noisy = Masses(x.edges, np.array([0.5, -0.25, 0.5, 0.25]))
    at = np.cumsum([0.25, -0.5, 0.25, 0])
    assert w1(x, noisy) == pytest.approx(np.abs(at).mean())
    assert ks(x, noisy) == pytest.approx(0.25)
    assert range_error(x, noisy, 1) == pytest.approx(0)


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=20), st.integers(0, 2**32))
def test_errors_of_sums_are_those_of_the_slices(stream: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = np.array(stream) + rng.normal(size=len(stream))
    pairs = query_pairs(len(stream), rng=rng, count=30)
    errors = np.array([found[i:j].sum() - sum(stream[i:j]) for i, j in pairs])
    widths = np.array([j - i for i, j in pairs])
    sums = [np.array([values[i:j].sum() for i, j in pairs]) for values in (np.array(stream), found)]
    result = errors_between(sums[0], sums[1], widths)
    assert result.mse == pytest.approx((errors**2).mean())
    assert result.mae == pytest.approx(np.abs(errors).mean())
    assert result.mmse == pytest.approx(((errors / widths) ** 2).mean())
    assert result.mmae == pytest.approx(np.abs(errors / widths).mean())
    assert errors_between(sums[0], sums[0], widths).mse == 0


def test_queries_are_uniform_pairs() -> None:
    """Of length 3 there are six; 6,000 draws, each count within 5 standard errors of 1,000."""
    pairs = query_pairs(3, rng=np.random.default_rng(0), count=6000)
    seen, counts = np.unique(pairs, axis=0, return_counts=True)
    assert seen.tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    assert np.abs(counts - 1000).max() < 5 * 29
