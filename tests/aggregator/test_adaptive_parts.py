"""The parts, each against a direct calculation."""

from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import approx_fprime

from aggregator.adaptive.design import next_survey
from aggregator.adaptive.fit import Target, fit
from aggregator.adaptive.likelihood import reports_of, rows_of
from aggregator.adaptive.posterior import Posterior, infer
from aggregator.adaptive.regret import Aim, costs_on
from aggregator.adaptive.shape import BENDS, BULKS, UNTILS, Prior, Shape, hypotheses
from aggregator.errors import ArgumentError
from aggregator.estimate.density import density
from aggregator.estimate.joint import Evidence, cells, view_of
from aggregator.threshold import Cost
from edge_ldp import Hybrid, SquareWave

Floats = NDArray[np.float64]
EDGES = cells(0, 499)
PRIOR = Prior(EDGES, 30.0, {0.5: 20.0, 0.97: 100.0})
AIM = Aim(4.289, 2**20)


def exponential(mean: float = 30) -> Floats:
    x = -np.diff(np.exp(-EDGES / mean))
    return np.asarray(x / x.sum())


def expected(wave: SquareWave, n: float = 65_536) -> Evidence:
    return Evidence(wave, n * view_of(wave, EDGES).apply(exponential()))


def wave(low: int, high: int, epsilon: float = 1) -> SquareWave:
    return SquareWave(epsilon=epsilon, low=low, high=high, size=min(64, high - low + 1))


@pytest.mark.parametrize("low", [0, -300])
@pytest.mark.parametrize("inclusion", [1.0, 0.3])
def test_costs_are_those_of_the_threshold_module(low: int, inclusion: float) -> None:
    edges = cells(low, low + 499)
    masses = np.random.default_rng(0).dirichlet(np.ones(len(edges) - 1))
    costs = costs_on(edges, Aim(4.289, 2**20, inclusion))
    oracle = Cost(4.289, 2**20, low, inclusion).at(density(masses, edges), costs.thetas)
    np.testing.assert_allclose(costs.of(masses), oracle, rtol=1e-9)
    assert costs.thetas[0] == low + 1
    assert costs.thetas[-1] == low + 499
    two = np.stack([masses, exponential()], axis=1)
    np.testing.assert_allclose(costs.of(two)[:, 0], costs.of(masses), rtol=1e-12)
    assert costs.best(two)[0] == costs.thetas[oracle.argmin()]


def test_theta_is_the_best_one_where_there_is_no_doubt() -> None:
    costs = costs_on(EDGES, AIM)
    sure = np.repeat(exponential()[:, None], 5, axis=1)
    assert costs.choose(sure) == (int(costs.best(exponential())), 0.0)


def test_in_doubt_theta_lies_between_and_regrets_it() -> None:
    costs = costs_on(EDGES, AIM)
    torn = np.stack([exponential(m) for m in (20, 25, 30, 35, 40)], axis=1)
    theta, regret = costs.choose(torn)
    assert costs.best(torn).min() < theta < costs.best(torn).max()
    assert 0 < regret < 1


def test_of_two_readings_theta_lies_between_not_at_one() -> None:
    costs = costs_on(EDGES, AIM)
    torn = np.repeat(np.stack([exponential(20), exponential(40)], axis=1), [11, 10], axis=1)
    low, high = costs.best(torn)[[0, -1]].tolist()
    at_one, expected = costs.choose(torn)
    between, least = costs.choose(torn, between=True)
    assert min(at_one - low, high - at_one) < (high - low) / 10
    assert (high - low) / 10 < between - low < 9 * (high - low) / 10
    assert least < expected


@pytest.mark.parametrize("field", ["unit_variance", "horizon", "inclusion"])
def test_an_aim_without_sense_is_refused(field: str) -> None:
    sense = {"unit_variance": 4.0, "horizon": 100.0, "inclusion": 1.0}
    for value in (0.0, float("nan"), -1.0):
        with pytest.raises(ArgumentError) as caught:
            Aim(**(sense | {field: value}))  # type: ignore[arg-type] # floats on purpose
        assert caught.value.name == field


@pytest.mark.parametrize("bend", BENDS)
def test_every_prior_is_a_proper_gaussian(bend: float) -> None:
    for shape in hypotheses(bend):
        mean, precision, determinant = PRIOR.of(shape)
        np.testing.assert_allclose(precision, precision.T, atol=1e-6 * precision.max())
        sign, oracle = np.linalg.slogdet(precision)
        assert sign == 1
        assert determinant == pytest.approx(oracle, rel=1e-6, abs=0.2)
        assert np.isfinite(mean).all()


def test_a_nugget_adds_independent_noise_to_the_rough_cells() -> None:
    plain = PRIOR.of(Shape(0.5, 0.97, 3.0, 1.0, 0.0))
    rough = PRIOR.of(Shape(0.5, 0.97, 3.0, 1.0, 2.0))
    below = (EDGES[:-1] + EDGES[1:] - 1) / 2 <= 100
    covariance = np.linalg.inv(plain.precision) + np.diag(4.0 * below)
    np.testing.assert_allclose(rough.precision @ covariance, np.eye(len(below)), atol=1e-5)
    np.testing.assert_allclose(rough.mean, plain.mean - 2.0 * below)


def test_a_straight_line_in_the_bent_coordinate_bends_at_no_cost() -> None:
    """The prior's own mean moved along z costs the same however stiff the shape is."""
    away = (EDGES[:-1] + EDGES[1:] - 1) / 2
    z = ((1 + away / 30) ** 0.5 - 1) / 0.5
    prices = []
    for bulk, tail in ((3.0, 0.3), (50.0, 10.0)):
        mean, precision, _ = PRIOR.of(Shape(0.5, 0.5, bulk, tail, 0.0))
        assert mean == pytest.approx(-2.5 * z)
        prices.append(z @ precision @ z)
    assert prices[0] == pytest.approx(prices[1], rel=1e-6)


def test_the_shapes_are_all_combinations_but_tails_looser_than_the_bulk() -> None:
    shapes = hypotheses(1.0)
    assert len(shapes) == len(set(shapes)) == len(UNTILS) * (4 * len(BULKS) - 2)
    assert all(shape.tail <= shape.bulk for shape in shapes)


def test_grouped_rows_are_sums_of_the_views_and_never_mix_branches() -> None:
    for mechanism in (wave(0, 499), Hybrid(epsilon=1, low=0, high=200)):
        view = view_of(mechanism, EDGES)
        full = np.stack([view.apply(x) for x in np.eye(len(EDGES) - 1)], axis=1)
        rows = rows_of(mechanism, EDGES, 16)
        np.testing.assert_allclose(rows.matrix, np.add.reduceat(full, rows.starts), atol=1e-14)
        np.testing.assert_allclose(rows.matrix.sum(axis=0), 1)
        assert set(view.operator.cuts[:-1]) <= set(rows.starts.tolist())
        counts = np.arange(mechanism.code_count, dtype=float)
        assert rows.add_up(counts).sum() == counts.sum()


def test_the_gradient_is_the_derivative_of_the_log_posterior() -> None:
    reports = reports_of([expected(wave(0, 499)), expected(wave(16, 64))], EDGES)
    shape = Shape(0.5, 0.5, 3.0, 1.0, 0.0)
    target = Target(reports, PRIOR, shape)
    psi = np.log(exponential()) - PRIOR.log_width

    def value(at: Floats) -> float:
        return float(target.value(at, target.masses(at)))

    gradient, _ = target.slope(psi + 0.1, target.masses(psi + 0.1))
    numeric = approx_fprime(psi + 0.1, value, 1e-6)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-3, atol=0.5)


def test_of_tails_that_fit_alike_the_stiffer_is_likelier_in_proportion() -> None:
    """Evidence is Laplace's, at the fit: value + half the log-determinants, and the weight."""
    reports = reports_of([expected(wave(0, 499))], EDGES)
    stiff = Shape(0.5, 0.5, 3.0, 0.3, 0.0)
    for shape in (stiff, stiff._replace(tail=3.0)):
        target = Target(reports, PRIOR, shape)
        found = fit(target, np.log(exponential()) - PRIOR.log_width)
        value = float(target.value(found.psi, target.masses(found.psi)))
        laplace = value + PRIOR.of(shape).log_determinant / 2 - np.log(np.diag(found.lower)).sum()
        assert found.evidence - laplace == pytest.approx(-np.log(shape.tail), abs=1e-6)


def test_the_posterior_holds_densities_that_fit_the_reports() -> None:
    evidence = [expected(wave(0, 499)), expected(wave(0, 128))]
    found = infer(evidence, EDGES, rng=np.random.default_rng(0))
    np.testing.assert_allclose(found.samples.sum(axis=0), 1)
    assert found.samples.min() >= 0
    law = rows_of(wave(0, 128), EDGES, 16).matrix
    np.testing.assert_allclose(law @ found.mean, law @ exponential(), atol=4e-3)
    best = costs_on(EDGES, AIM).best(found.samples)
    low, high = np.quantile(best, [0.01, 0.99])
    assert low <= costs_on(EDGES, AIM).best(exponential()) <= high


def test_more_reports_leave_less_doubt() -> None:
    costs, spread = costs_on(EDGES, AIM), []
    for n in (1e4, 1e6):
        found = infer([expected(wave(0, 128), n)], EDGES, rng=np.random.default_rng(0))
        spread.append(float(np.log(costs.best(found.samples)).std()))
    assert spread[1] < spread[0] / 2


def test_the_next_survey_looks_where_theta_may_be() -> None:
    costs = costs_on(EDGES, AIM)
    found = infer([expected(wave(0, 499))], EDGES, rng=np.random.default_rng(0))
    design = next_survey(found, costs, partial(wave, epsilon=1), 65_536)
    low, high = np.quantile(costs.best(found.samples), [0.1, 0.9])
    assert design.low < high
    assert design.high >= low
    assert 0 < design.left < 1
    assert next_survey(found, costs, wave, 10**8).left < design.left


def test_where_nothing_is_in_doubt_the_whole_range_will_do() -> None:
    sure = np.repeat(exponential()[:, None], 8, axis=1)
    known = Posterior(EDGES, sure, exponential(), hypotheses(0.5)[0])
    design = next_survey(known, costs_on(EDGES, AIM), wave, 1000)
    assert (design.low, design.high, design.left) == (0, 499, 1.0)


def test_thresholds_lie_nearer_where_the_cells_are_narrow() -> None:
    """A narrow hump far from low: thresholds 2 % of their distance apart would step over it."""
    thetas = costs_on(np.array([0, 800, 1600, 1608, 1616, 2001]), AIM).thetas
    assert np.diff(thetas[(thetas >= 1600) & (thetas <= 1616)]).max() == 1
    assert thetas[0] == 1
    assert thetas[-1] == 2000


def test_only_values_far_from_low_get_centred_shapes() -> None:
    assert hypotheses(0.5, far=True)[: len(hypotheses(0.5))] == hypotheses(0.5)
    centred = hypotheses(0.5, far=True)[len(hypotheses(0.5)) :]
    assert all(shape.centred and not shape.nugget for shape in centred)
    assert not PRIOR.far
    assert Prior(EDGES, 300.0, {0.5: 300.0, 0.97: 330.0}, 20.0).far


@pytest.mark.parametrize("bend", BENDS)
def test_a_centred_prior_is_proper_and_falls_both_ways_from_the_median(bend: float) -> None:
    prior = Prior(EDGES, 300.0, {0.5: 300.0, 0.97: 330.0}, 20.0)
    mean, precision, determinant = prior.of(Shape(bend, 0.5, 50.0, 10.0, 0.0, centred=True))
    sign, oracle = np.linalg.slogdet(precision)
    assert sign == 1
    assert determinant == pytest.approx(oracle, rel=1e-6, abs=0.2)
    top = int(mean.argmax())
    assert EDGES[top] <= 300 <= EDGES[top + 1]
    assert (np.diff(mean[:top]) > 0).all()
    assert (np.diff(mean[top + 1 :]) < 0).all()
