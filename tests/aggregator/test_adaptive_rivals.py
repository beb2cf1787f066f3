"""The bound over laws that reports hardly tell apart."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from aggregator.adaptive import Aim, Setting
from aggregator.adaptive.nearest import LESS, MORE, REACHES, Nearest
from aggregator.adaptive.regret import costs_on
from aggregator.adaptive.rivals import (
    HALF,
    ONE_IN_20,
    Ground,
    Limits,
    Unmet,
    every_survey,
    limits_of,
    shortest,
    told_apart,
    unmet,
)
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
        assert away == pytest.approx(law.share)
        assert away > 0


def test_more_reports_more_epsilon_and_a_wider_aim_lower_the_bound() -> None:
    some = bound()
    assert 0 < some.sure <= some.likely < 0.5
    assert bound(reports=10 * 65_536).sure < some.sure < bound(reports=6_554).sure
    assert bound(epsilon=2).sure < some.sure < bound(epsilon=0.4).sure
    assert bound(factor=4).sure < some.sure
    assert bound(reports=1e9) == Unmet(0.0, 0.0, ())


def test_a_rival_is_as_hard_to_tell_as_any_law_with_a_share_elsewhere() -> None:
    """Heaps in each cell, even shares and cuts of every size: none that needs another θ is nearer.

    Measured by the most that any survey tells of them; a few laws are tried, so 5 % are allowed.
    """
    ground = Ground.of(MASSES, EDGES, AIM, every_survey(setting()))
    nearest = Nearest(ground.costs, ground.rows, MASSES)
    for factor in (1.1, 2.0):
        taken = ground.costs.good(MASSES, factor)
        near = taken | np.roll(taken, 1) | np.roll(taken, -1)
        found = {side: nearest.rival(taken, factor, side, REACHES[-1]) for side in (MORE, LESS)}
        assert 0 < min(one.told for one in found.values()) < np.inf
        for one in found.values():
            assert one.told == pytest.approx(most_told(ground, one.masses), rel=1e-6)
        other = {MORE: np.inf, LESS: np.inf}
        for elsewhere in places():
            for share in np.geomspace(1e-5, 1, 60):
                masses = (1 - share) * MASSES + share * elsewhere
                good = ground.costs.good(masses, factor)
                if not (good & near).any():
                    side = MORE if good.argmax() > taken.argmax() else LESS
                    other[side] = min(other[side], most_told(ground, masses))
                    break
        for side, one in found.items():
            assert one.told < 1.05 * other[side]


def places() -> Iterator[Floats]:
    """Where a share of the mass may lie instead."""
    for top in range(1, len(MASSES)):
        cells_below = np.arange(len(MASSES)) < top
        for there in (np.eye(len(MASSES))[top], np.diff(EDGES) * cells_below, MASSES * cells_below):
            yield there / there.sum()


def most_told(ground: Ground, masses: Floats) -> float:
    """The χ² distance of a report from that under MASSES, of the most telling survey."""
    laws = [(rows @ MASSES, rows @ masses) for rows in ground.rows]
    return max(float(((b - a)[a > 0] ** 2 / a[a > 0]).sum()) for a, b in laws)


def test_laws_are_told_at_most_along_the_shortest_tree() -> None:
    """Σ max of the laws is at most 1 and the tree's edges; a chain in order reaches that."""
    rng = np.random.default_rng(1)
    for laws in rng.dirichlet(np.ones(6), size=(200, 5)):
        apart = np.abs(laws[:, None] - laws).sum(axis=2) / 2
        assert laws.max(axis=0).sum() <= 1 + shortest(apart) + 1e-12
    chain = np.stack([binom.pmf(np.arange(31), 30, p) for p in (0.3, 0.1, 0.2, 0.15)])
    apart = np.abs(chain[:, None] - chain).sum(axis=2) / 2
    assert chain.max(axis=0).sum() == pytest.approx(1 + shortest(apart))


def test_no_test_of_two_laws_errs_less_often_than_the_bound() -> None:
    """The best test of two laws by n reports of one survey, by simulation: its mean error."""
    n = 65_536
    first, rival = (law.masses for law in bound().laws[:2])
    rng = np.random.default_rng(3)
    for survey in (setting().survey(0, 499), setting().survey(0, 64)):
        view = view_of(survey, EDGES)
        one, two = view.apply(first), view.apply(rival)
        ratio = np.log(two / one)
        wrong = rng.multinomial(n, one, 4000) @ ratio > 0
        missed = rng.multinomial(n, two, 4000) @ ratio < 0
        error = (wrong.mean() + missed.mean()) / 2
        most, about = told_apart(n * float(np.log(np.sqrt(one * two).sum())))
        assert error > (1 - most) / 2 - 0.02
        assert error == pytest.approx((1 - about) / 2, abs=0.02)


def test_no_guess_among_all_of_the_laws_errs_less_often_than_the_bound() -> None:
    """The likeliest law, by n reports of one survey, by simulation."""
    found, rng = bound(factor=1.1), np.random.default_rng(4)
    assert len(found.laws) > 2
    for survey in (setting().survey(0, 499), setting().survey(0, 64), setting().survey(16, 64)):
        view = view_of(survey, EDGES)
        codes = np.log(np.stack([view.apply(law.masses) for law in found.laws], axis=1))
        wrong = [
            (rng.multinomial(65_536, np.exp(law), 4000) @ codes).argmax(axis=1) != k
            for k, law in enumerate(codes.T)
        ]
        assert np.mean(wrong) > found.sure - 0.02


def test_limits_are_factors_with_such_a_share_and_more_reports_lower_them() -> None:
    ground = Ground.of(MASSES, EDGES, AIM, every_survey(setting()))
    few, many = (limits_of(ground, n, (1.02, 1.2, 2.0, 8.0, 32.0)) for n in (6_554, 65_536))
    assert 1.02 < many.half < few.half < few.one_in_20 < 32
    assert many.half <= many.about < many.one_in_20 < few.one_in_20
    assert unmet(ground, 65_536, many.half).sure >= HALF
    assert unmet(ground, 65_536, many.about).likely >= HALF
    assert unmet(ground, 6_554, few.one_in_20).sure >= ONE_IN_20
    assert limits_of(ground, 1e12, (1.02, 2.0)) == Limits(1.0, 1.0, 1.0)


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
