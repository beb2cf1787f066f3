"""Weights are unbiased: checked in fractions over every code; variances, ill-posed designs."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from edge_ldp import GeneralWave, Mechanism, SquareWave
from edge_ldp.device.channel import Wave
from edge_ldp.device.errors import ParameterError
from edge_ldp.sums import SurveyDesign, below, design_of, estimate, excess
from edge_ldp.sums.functionals import EXACT, _buckets, _inputs, _law, _sent, largest_variance
from tests.edge_ldp.sums.laws import average_weight, over_cells

WIDE = SquareWave(epsilon=1, low=-5, high=34, size=10)
SURVEYS: dict[str, Mechanism] = {
    "one": SquareWave(epsilon=1, low=-5, high=34, size=8),
    "a little": SquareWave(epsilon="0.2", low=0, high=39, size=10),
    "much": SquareWave(epsilon=4, low=0, high=39, size=40),
    "triangle": GeneralWave(epsilon=1, low=0, high=29, size=6),
    "trapezoid": GeneralWave(epsilon=2, low=-30, high=-1, size=12, top="0.5"),
}


def reached(design: SurveyDesign) -> range:
    return range(int(design.edges[0]), int(design.edges[-1]))


@pytest.mark.parametrize("name", SURVEYS)
@pytest.mark.parametrize("theta", [-31, -5, 0, 6, 13, 28, 34])
def test_the_excess_expected_over_every_code_is_the_excess(name: str, theta: int) -> None:
    design = design_of(SURVEYS[name])
    h = excess(design.edges, theta)
    exact = over_cells(design, lambda v: Fraction(max(0, v - theta)), reached(design))
    scale = max(Fraction(1), *(wanted for wanted, _ in exact))
    for given, (wanted, cell) in zip(h, exact, strict=True):
        assert given == pytest.approx(float(wanted), abs=1e-12 * float(scale))
        assert abs(average_weight(design, h, cell) - wanted) <= Fraction(EXACT) * scale


@pytest.mark.parametrize("name", SURVEYS)
@pytest.mark.parametrize("point", [-31, -5, 0, 6, 13, 28, 34])
def test_the_share_below_a_point_expected_over_every_code_is_that_share(
    name: str, point: int
) -> None:
    design = design_of(SURVEYS[name])
    h = below(design.edges, point)
    exact = over_cells(design, lambda v: Fraction(int(v <= point)), reached(design))
    for given, (wanted, cell) in zip(h, exact, strict=True):
        assert given == pytest.approx(float(wanted), abs=1e-12)
        assert abs(average_weight(design, h, cell) - wanted) <= Fraction(EXACT)


def test_a_survey_of_a_bucket_a_value_is_unbiased_for_each_value() -> None:
    design = design_of(SquareWave(epsilon=1, low=-3, high=8, size=12))
    h = excess(design.edges, 2)
    for value in range(-3, 9):
        exact = average_weight(design, h, [value])
        assert float(exact) == pytest.approx(max(0, value - 2), abs=1e-9)


def test_of_all_unbiased_weights_they_vary_least_where_values_are_even() -> None:
    design = design_of(SquareWave(epsilon=1, low=0, high=999, size=32))
    law, h = design.law, excess(design.edges, 300)
    weights = design.weights(h)
    even = law.mean(axis=1)
    rng = np.random.default_rng(0)
    *_, apart = np.linalg.svd(law.T)
    for free in apart[law.shape[1] :]:  # what may be added to weights and leaves them unbiased
        assert np.abs(law.T @ free).max() < 1e-12
        other = weights + rng.normal() * free * np.abs(weights).max() / 100
        assert even @ other**2 > even @ weights**2


def test_values_outside_a_survey_count_as_its_ends() -> None:
    design = design_of(WIDE)
    assert (design.edges[0], design.edges[-1]) == (-5, 35)
    assert float(average_weight(design, excess(design.edges, 3), [99])) == pytest.approx(
        excess(design.edges, 3)[-1], abs=1e-6
    )


@pytest.mark.parametrize("name", SURVEYS)
def test_no_density_has_a_variance_above_the_bound(name: str) -> None:
    design = design_of(SURVEYS[name])
    h = excess(design.edges, 10)
    rng = np.random.default_rng(1)
    cells = len(design.edges) - 1
    densities = [rng.dirichlet(np.full(cells, 0.2)) for _ in range(50)]
    densities += [np.eye(cells)[[0, -1]].mean(axis=0), *np.eye(cells)]
    weights, codes = design.weights(h), design.law @ np.array(densities).T
    variances = (weights**2) @ codes - (weights @ codes) ** 2
    assert variances.max() <= largest_variance(weights, design.law) * (1 + 1e-9)


def test_an_estimate_is_the_mean_weight_and_its_error_never_that_of_equal_reports() -> None:
    design = design_of(WIDE)
    weights, law = design.weights(excess(design.edges, 3)), design.law
    counts = np.arange(WIDE.code_count)
    found = estimate(weights, law, counts)
    drawn = np.repeat(weights, counts)
    assert found.n == len(drawn)
    assert found.value == pytest.approx(drawn.mean())
    most = largest_variance(weights, law)
    assert found.se == pytest.approx(((drawn.var() * len(drawn) + most) / len(drawn) ** 2) ** 0.5)
    alone = np.eye(WIDE.code_count)[4]
    assert estimate(weights, law, alone).se == pytest.approx(most**0.5)
    assert estimate(weights, law, 100 * alone).se == pytest.approx(most**0.5 / 100)


@pytest.mark.parametrize("counts", [[0] * 7, [1] * 7, [-1] * 18, [float("nan")] * 18, [[1] * 18]])
def test_what_are_no_counts_of_a_survey_is_refused(counts: list[float]) -> None:
    design = design_of(WIDE)
    weights = design.weights(excess(design.edges, 3))
    with pytest.raises(ParameterError, match="counts"):
        estimate(weights, design.law, counts)


def test_excess_and_share_below_agree_with_brute_force_on_uneven_cells() -> None:
    edges = np.array([-7, -6, -2, 0, 5, 6, 20])
    cells = [np.arange(a, b) for a, b in pairwise(edges)]
    for at in range(-9, 23):
        wanted = [np.maximum(cell - at, 0).mean() for cell in cells]
        np.testing.assert_allclose(excess(edges, at), wanted, rtol=0, atol=1e-12)
        np.testing.assert_allclose(below(edges, at), [(cell <= at).mean() for cell in cells])


def test_values_that_cannot_be_told_apart_share_wider_cells() -> None:
    size = 256
    mechanism = GeneralWave(epsilon="0.001", low=0, high=43_469, size=size)
    design = design_of(mechanism)
    assert design.widened
    assert len(design.edges) - 1 < size
    h = excess(design.edges, 10_000)
    assert design.error(h) < EXACT
    assert np.isfinite(design.weights(h)).all()


def test_a_square_wave_tells_its_buckets_apart_under_hardly_any_epsilon() -> None:
    design = design_of(SquareWave(epsilon="0.001", low=0, high=43_469, size=1024))
    assert not design.widened
    assert design.error(excess(design.edges, 10_000)) < EXACT / 1000


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.001", "1"])
def test_the_finest_survey_has_cells_of_several_buckets(epsilon: str) -> None:
    design = design_of(SquareWave(epsilon=epsilon, low=0, high=43_469, size=16_384))
    assert design.widened
    assert len(design.edges) - 1 <= 1024
    assert design.error(excess(design.edges, 10_000)) < EXACT


@pytest.mark.parametrize(("epsilon", "size"), [(1, 1024), ("0.5", 100), (4, 128), (2, 64), (8, 2)])
def test_the_law_of_cells_that_are_buckets_is_that_of_any_cells_to_the_bit(
    epsilon: int | str, size: int
) -> None:
    survey = SquareWave(epsilon=epsilon, low=-7, high=43_470, size=size)
    ((coin, _, wave),) = survey.branches
    assert isinstance(wave, Wave)
    through = float(coin) * _sent(wave, _inputs(survey, _buckets(survey)))
    found = _law(survey, _buckets(survey))
    assert found.flags.c_contiguous
    assert np.array_equal(found.view(np.int64), through.view(np.int64))
