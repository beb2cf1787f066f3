"""The bound over laws that reports hardly tell apart."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from aggregator.adaptive import Aim, Setting
from aggregator.adaptive.regret import costs_on
from aggregator.adaptive.rivals import Ground, Unmet, every_survey, told_apart, unmet
from aggregator.errors import ArgumentError
from aggregator.estimate.joint import cells, view_of
from edge_ldp import SquareWave

Floats = NDArray[np.float64]
EDGES = cells(0, 499)
AIM = Aim(4.289, 2**20)
MASSES: Floats = -np.diff(np.exp(-EDGES / 20))
MASSES /= MASSES.sum()
FACTOR = 2.0


def setting(epsilon: float = 1) -> Setting:
    return Setting(0, 499, epsilon, AIM, size=64)


def bound(epsilon: float = 1, reports: float = 65_536, factor: float = FACTOR) -> Unmet:
    return unmet(Ground.of(MASSES, EDGES, AIM, every_survey(setting(epsilon))), reports, factor)


def test_no_theta_is_good_for_two_of_the_laws() -> None:
    costs, laws = costs_on(EDGES, AIM), bound(factor=1.1).laws
    assert len(laws) > 2
    prices = costs.of(np.stack([law.masses for law in laws], axis=1))
    good = prices <= 1.1 * prices.min(axis=0)
    assert good.sum(axis=1).max() == 1
    for law in laws:
        assert law.masses.sum() == pytest.approx(1)
    for law in laws[1:]:
        away = np.abs(law.masses - MASSES).sum() / 2
        assert 0 < away <= law.share


def test_more_reports_more_epsilon_and_a_wider_aim_lower_the_bound() -> None:
    some = bound()
    assert 0 < some.sure <= some.likely < 0.5
    assert bound(reports=10 * 65_536).sure < some.sure < bound(reports=6_554).sure
    assert bound(epsilon=2).sure < some.sure < bound(epsilon=0.4).sure
    assert bound(factor=4).sure < some.sure
    assert bound(reports=1e9) == Unmet(0.0, 0.0, ())


def test_no_test_of_two_laws_errs_less_often_than_the_bound() -> None:
    """The best test of two laws by n reports of one survey, by simulation: its mean error."""
    found, n = bound(), 65_536
    first, rival = (law.masses for law in found.laws[:2])
    rng, errors = np.random.default_rng(3), []
    for survey in (setting().survey(0, 499), setting().survey(0, 64)):
        view = view_of(survey, EDGES)
        one, two = view.apply(first), view.apply(rival)
        ratio = np.log(two / one)
        wrong = rng.multinomial(n, one, 4000) @ ratio > 0
        missed = rng.multinomial(n, two, 4000) @ ratio < 0
        errors.append((wrong.mean() + missed.mean()) / 2)
    two_laws = unmet(Ground.of(MASSES, EDGES, AIM, [setting().survey(0, 499)]), n, FACTOR)
    assert min(errors) > found.sure - 0.02
    assert errors[0] > two_laws.sure - 0.02
    assert errors[0] == pytest.approx(two_laws.likely, abs=0.04)


def test_total_variation_is_at_most_the_one_and_about_the_other() -> None:
    """Of two binomial laws, exactly."""
    for n, p, q in ((50, 0.5, 0.55), (1000, 0.3, 0.32), (1000, 0.5, 0.53)):
        at = np.arange(n + 1)
        apart = np.abs(binom.pmf(at, n, p) - binom.pmf(at, n, q)).sum() / 2
        most, about = told_apart(n * np.log(np.sqrt(p * q) + np.sqrt((1 - p) * (1 - q))))
        assert apart < most
        assert apart == pytest.approx(about, rel=0.03)


def test_surveys_go_up_to_the_whole_range_from_several_starts() -> None:
    asked = every_survey(setting())
    assert len(set(asked)) == len(asked) > 50
    assert asked[-4:] == tuple(
        SquareWave(epsilon=1, low=low, high=499, size=64) for low in (0, 62, 124, 249)
    )
    tops = [survey.high for survey in asked]
    assert all(a <= b for a, b in pairwise(tops))
    assert every_survey(Setting(0, 3, 1, AIM))[0].high <= 3


def test_bad_questions_are_refused() -> None:
    with pytest.raises(ArgumentError):
        Ground.of(MASSES, EDGES, AIM, [])
    with pytest.raises(ArgumentError):
        bound(factor=1.0)
