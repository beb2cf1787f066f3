"""Allotting a tail to strata, on cases whose answer is known."""

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

from edge_ldp.sums.strata import LEAST, Allotted, allot, chi_squared, expected_cases

Floats = NDArray[np.float64]


def quantile(level: float, degrees: int) -> float:
    """Return that of χ², as scipy.stats.chi2.ppf does, which takes a second to load."""
    return 2 * float(scipy.special.gammaincinv(degrees / 2, level))


@pytest.mark.parametrize("degrees", [3, 4, 5, 10, 22, 47, 200, 1000])
@pytest.mark.parametrize(
    ("level", "off"),
    [(0.03, 0.14), (0.05, 0.07), (0.25, 0.015), (0.5, 0.01), (0.75, 0.01), (0.95, 0.01)],
)
def test_quantiles_are_near_scipys_from_three_degrees(
    level: float, off: float, degrees: int
) -> None:
    assert chi_squared(level, degrees) == pytest.approx(quantile(level, degrees), rel=off)


@pytest.mark.parametrize("degrees", [1, 2])
def test_medians_of_one_and_two_degrees_are_within_four_percent(degrees: int) -> None:
    assert chi_squared(0.5, degrees) == pytest.approx(quantile(0.5, degrees), rel=0.04)


def even(count: int) -> Floats:
    return np.linspace(900, 1100, count)


def usually(tails: Floats, errors: Floats, means: Floats, pooled: Floats) -> Allotted:
    """Return what is allotted where each stratum errs as all do."""
    return allot(tails, errors, errors, means, pooled)


def test_strata_that_do_not_differ_all_get_the_pooled_tail() -> None:
    pooled = np.full(24, 100.0)
    found = usually(np.full(24, 100.0), np.full(24, 30.0), even(24), pooled)
    assert found.tails == pytest.approx(pooled)
    assert found.spread == 0
    assert found.own.tolist() == [0] * 24  # there is nothing to lean on: not even noise
    assert found.slope == pytest.approx(0)
    assert found.se.min() == pytest.approx(30 / 24**0.5, rel=0.1)
    assert 0 < found.unseen < 30


def test_strata_that_differ_by_noise_alone_lean_on_the_pooled_tail() -> None:
    rng = np.random.default_rng(6)
    tails, errors = 100 + rng.normal(0, 30, 24), np.full(24, 30.0)
    found = usually(tails, errors, even(24), np.full(24, 100.0))
    assert found.own.max() < 0.4
    assert np.abs(found.tails - 100).max() < np.abs(tails - 100).max() / 2
    assert np.median(found.se) < 25


def test_strata_that_differ_by_far_more_than_noise_keep_their_own_tails() -> None:
    own: Floats = 100 + 1000 * np.array([(-1.0) ** at for at in range(24)])
    found = usually(own, np.full(24, 3.0), even(24), np.full(24, 100.0))
    assert found.tails == pytest.approx(own, rel=1e-3)
    assert found.se == pytest.approx(np.full(24, 3.0), rel=1e-3)
    assert found.own.min() > 0.999
    assert found.carried == pytest.approx(np.zeros(24), abs=1e-3)  # nothing of the line's slope
    assert found.spread == pytest.approx(1000, rel=0.1)


def test_a_tail_that_goes_with_the_truncated_mean_is_a_line_and_no_spread() -> None:
    means = even(24)
    found = usually(100 + 0.5 * (means - 1000), np.full(24, 5.0), means, np.full(24, 100.0))
    assert found.slope == pytest.approx(0.5)
    assert found.spread == 0
    assert found.carried == pytest.approx(np.full(24, 0.5))
    assert found.tails == pytest.approx(100 + 0.5 * (means - 1000))


def test_a_stratum_without_surveys_gets_the_lines_tail_and_all_of_the_spread() -> None:
    tails: Floats = 100 + 50 * np.array([(-1.0) ** at for at in range(12)])
    errors = np.full(12, 10.0)
    tails[3], errors[3] = 12_345, np.inf
    found = usually(tails, errors, even(12), np.full(12, 100.0))
    assert found.own[3] == 0
    assert abs(found.tails[3] - 100) < 50
    assert found.se[3] > found.spread > 30
    assert np.isfinite(found.se).all()


@pytest.mark.parametrize("count", range(LEAST))
def test_fewer_strata_than_four_stand_by_themselves(count: int) -> None:
    tails, errors = np.linspace(0, 100, count), np.full(count, 10.0)
    errors[:1] = np.inf
    found = usually(tails, errors, even(count), np.full(count, 77.0))
    assert found.tails[1:].tolist() == tails[1:].tolist()
    assert found.tails[:1].tolist() == [77.0][:count]
    assert found.se.tolist() == errors.tolist()
    assert found.own.tolist() == [1] * count
    assert found.unseen == np.inf


def test_strata_that_need_no_tail_stand_by_themselves() -> None:
    """θ is the ceiling, so nothing lies above it and no survey errs."""
    nothing = np.zeros(5)
    found = usually(nothing, nothing, even(5), nothing)
    assert found.tails.tolist() == found.se.tolist() == [0] * 5


def spreads_of(squares: float, noise: float, degrees: int) -> Floats:
    """Return the spreads of sixteen even levels where all noise and all means are equal."""
    levels = [chi_squared((at + 0.5) / 16, degrees) for at in range(16)]
    return np.array([max(0.0, squares / level - noise) for level in levels])


@pytest.mark.parametrize("apart", [3.0, 30.0, 60.0, 300.0])
@pytest.mark.parametrize("strata", [4, 5, 9])
def test_with_equal_noise_and_means_it_is_a_formula_of_sixteen_levels(
    strata: int, apart: float
) -> None:
    """The line is the mean of the tails; the error is that of the eight largest spreads."""
    noise = 30.0**2
    off: Floats = apart * np.linspace(-1, 1, strata)
    usual, means, pooled = (np.full(strata + 1, at) for at in (30.0, 1e3, 100.0))
    errors = np.linspace(10, 50, strata + 1)
    found = allot(100 + off, errors[:-1], usual[1:], means[1:], pooled[1:])
    spreads = spreads_of(float(off @ off), noise, strata - 2)
    own = (spreads / (spreads + noise))[:, None]
    line = (spreads[:, None] + noise) / strata
    variance = own**2 * errors[:-1] ** 2 + (1 - own) ** 2 * (line + spreads[:, None])
    variance += (own * off - own.mean() * off) ** 2
    assert found.own == pytest.approx(np.full(strata, own.mean()))
    assert found.tails == pytest.approx(100 + own.mean() * off)
    assert found.se == pytest.approx(variance[:8].mean(axis=0) ** 0.5)
    assert found.spread == pytest.approx(float(np.median(spreads)) ** 0.5)
    # a stratum more, without surveys: it may lie as far from the line as any
    errors[-1] = np.inf
    unseen = allot(100 + np.append(off, 0.0), errors, usual, means, pooled)
    assert unseen.se[-1] == pytest.approx((line[:8, 0] + spreads[:8]).mean() ** 0.5)
    assert unseen.se[:-1] == pytest.approx(found.se)


@pytest.mark.parametrize("spread2", [0.0, 0.7, 5.0])
@pytest.mark.parametrize("strata", [4, 9])
def test_what_is_expected_is_the_formula_at_sixteen_cases_of_the_residuals(
    strata: int, spread2: float
) -> None:
    variances, leanings = expected_cases(strata, spread2)
    assert len(variances) == len(leanings) == 16
    for case, (variance, leaning) in enumerate(zip(variances, leanings, strict=True)):
        squares = chi_squared((case + 0.5) / 16, strata - 2) * (1 + spread2)
        spreads = spreads_of(squares, 1.0, strata - 2)
        own = spreads / (spreads + 1)
        each = own + (1 - own) * 2 / strata + (own - own.mean()) ** 2 * squares / strata
        assert leaning == pytest.approx(own.mean())
        assert variance == pytest.approx(each[:8].mean())


def test_strata_that_weigh_alike_keep_the_mean_of_their_tails_whatever_their_errors() -> None:
    tails: Floats = 100 * np.random.default_rng(8).exponential(1, 24)
    found = allot(tails, 1 + tails / 5, np.full(24, 20.0), even(24), np.full(24, 100.0))
    assert 0 < found.own[0] < 1
    assert found.tails.mean() == pytest.approx(tails.mean())


def test_strata_of_equal_means_have_no_slope_and_order_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    tails, errors, means = rng.normal(100, 60, 9), rng.uniform(20, 90, 9), np.full(9, 1000.0)
    found = usually(tails, errors, means, np.full(9, 100.0))
    assert found.slope == 0
    back = usually(tails[::-1], errors[::-1], means, np.full(9, 100.0))
    assert back.tails[::-1] == pytest.approx(found.tails)
    assert back.se[::-1] == pytest.approx(found.se)


def test_units_do_not_matter() -> None:
    rng = np.random.default_rng(4)
    tails, errors, means = rng.normal(100, 60, 9), rng.uniform(20, 90, 9), even(9)
    one = usually(tails, errors, means, np.full(9, 100.0))
    milli = usually(1000 * tails, 1000 * errors, 1000 * means, np.full(9, 100_000.0))
    assert milli.tails == pytest.approx(1000 * one.tails)
    assert milli.se == pytest.approx(1000 * one.se)
    assert milli.spread == pytest.approx(1000 * one.spread)


def test_the_variance_expected_is_that_of_allotting() -> None:
    rng = np.random.default_rng(5)
    for strata, spread in ((24, 0.0), (24, 1.0), (7, 4.0), (49, 0.25)):
        drawn = []
        for _ in range(100):
            own = rng.normal(0, spread, strata) + rng.normal(0, 1, strata)
            found = usually(own, np.ones(strata), even(strata), np.zeros(strata))
            drawn.append(float((found.se**2).mean()))
        # 100 draws: the mean's own error is 2 to 6 %
        assert np.mean(drawn) == pytest.approx(expected_cases(strata, spread**2)[0].mean(), rel=0.2)
    assert expected_cases(LEAST - 1)[0].tolist() == [1]


# days of a week here; hours and more with the slow tests
@pytest.mark.parametrize(
    "strata", [7, *(pytest.param(many, marks=pytest.mark.slow) for many in (24, 49))]
)
@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0, 3.0])
def test_allotted_tails_hold_the_true_ones_however_far_strata_differ(
    strata: int, spread: float
) -> None:
    """Seeded: 100 draws of all strata hold 93 % or more, at 95 %; the draws' own error is 1 %."""
    rng = np.random.default_rng(7)
    held = []
    for _ in range(100):
        true, noise = rng.normal(0, spread, strata), rng.lognormal(0, 0.4, strata)
        found = usually(true + rng.normal(0, noise), noise, even(strata), np.zeros(strata))
        held.append(float((np.abs(found.tails - true) <= 1.96 * found.se).mean()))
    assert np.mean(held) > 0.93
