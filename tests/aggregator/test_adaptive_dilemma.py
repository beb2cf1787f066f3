"""The bound on a median and a rare bad run, asked for together."""

import numpy as np
import pytest
from scipy.stats import binom

from aggregator.adaptive.dilemma import Dilemma, dilemma, none_of, power
from aggregator.adaptive.nearest import LESS, MORE
from aggregator.adaptive.rivals import Ground, every_survey
from aggregator.errors import ArgumentError
from aggregator.estimate.joint import view_of
from tests.aggregator.test_adaptive_rivals import AIM, EDGES, MASSES, most_told, places, setting

GOOD, BEARABLE, RARE, REPORTS = 1.3, 2.6, none_of(20), 65_536


def ground(epsilon: float = 1) -> Ground:
    return Ground.of(MASSES, EDGES, AIM, every_survey(setting(epsilon)))


def asked(
    here: Ground, reports: float = REPORTS, good: float = GOOD, bearable: float = BEARABLE
) -> Dilemma:
    return dilemma(here, reports, good, bearable, RARE)


def test_an_even_chance_that_none_is_bad() -> None:
    assert (1 - none_of(20)) ** 20 == pytest.approx(0.5)
    assert none_of(1) == pytest.approx(0.5)


def test_no_test_of_a_level_has_more_power_than_the_one_and_the_best_about_the_other() -> None:
    """Of two binomial laws, exactly: Neyman and Pearson's test, randomised at its threshold."""
    for n, p, q in ((200, 0.5, 0.56), (1000, 0.3, 0.32), (4000, 0.5, 0.53)):
        log = n * np.log(np.sqrt(p * q) + np.sqrt((1 - p) * (1 - q)))
        for level in (RARE, 0.2, 0.5):
            at = int(binom.isf(level, n, p))
            shared = (level - binom.sf(at, n, p)) / binom.pmf(at, n, p)
            best = binom.sf(at, n, q) + shared * binom.pmf(at, n, q)
            most, about, apart = power(log, level)
            assert level < best < most
            assert best == pytest.approx(about, abs=0.012)
            assert apart == pytest.approx(n**0.5 * (q - p) / (p * (1 - p)) ** 0.5, rel=0.03)


def test_a_test_that_is_told_nothing_or_everything() -> None:
    assert power(0.0, RARE) == pytest.approx((RARE, RARE, 0.0))
    assert power(-100.0, RARE)[:2] == pytest.approx((1.0, 1.0))


def test_no_theta_is_good_for_the_law_and_bearable_for_its_rival() -> None:
    here = ground()
    found = asked(here)
    assert RARE < found.likely < found.sure < 1
    assert found.rival.kind in {MORE, LESS}
    assert found.rival.masses.sum() == pytest.approx(1)
    bearable = here.costs.good(found.rival.masses, BEARABLE)
    assert not (here.costs.good(MASSES, GOOD) & bearable).any()


def test_more_reports_more_epsilon_and_less_to_bear_raise_the_bound() -> None:
    here = ground()
    some = asked(here)
    assert asked(here, REPORTS / 10).sure < some.sure < asked(here, REPORTS * 10).sure
    assert some.sure < asked(here, good=2 * GOOD).sure
    assert some.sure < asked(here, bearable=2 * BEARABLE).sure
    assert some.sure < dilemma(here, REPORTS, GOOD, BEARABLE, 2 * RARE).sure
    assert asked(ground(0.4)).sure < some.sure < asked(ground(2)).sure


def test_a_rival_is_as_hard_to_tell_as_any_law_with_a_share_elsewhere() -> None:
    """Heaps in each cell, even shares and cuts of every size, as for the other bound."""
    here = ground()
    found = asked(here)
    good, other = here.costs.good(MASSES, GOOD), np.inf
    for elsewhere in places():
        for share in np.geomspace(1e-5, 1, 60):
            masses = (1 - share) * MASSES + share * elsewhere
            if not (good & here.costs.good(masses, BEARABLE)).any():
                other = min(other, most_told(here, masses))
                break
    assert most_told(here, found.rival.masses) < 1.05 * other


def test_the_likeliest_of_two_laws_at_that_level_is_no_better() -> None:
    """By n reports of one survey, by simulation: the likelihood ratio's own power."""
    here, rng = ground(), np.random.default_rng(5)
    found = asked(here)
    for survey in (setting().survey(0, 499), setting().survey(0, 64), setting().survey(16, 64)):
        view = view_of(survey, EDGES)
        one, two = view.apply(MASSES), view.apply(found.rival.masses)
        ratio = np.log(one / two)
        threshold = np.quantile(rng.multinomial(REPORTS, two, 8000) @ ratio, 1 - RARE)
        told = (rng.multinomial(REPORTS, one, 8000) @ ratio > threshold).mean()
        assert told < found.sure + 0.02
        assert told < found.likely + 0.03


def test_where_every_theta_is_good_there_is_no_rival() -> None:
    assert asked(ground(), good=1e9)[:3] == (1.0, 1.0, np.inf)


def test_bad_questions_are_refused() -> None:
    for question in ((1.0, 2.0, RARE), (2.0, 1.0, RARE), (2.0, 4.0, 0.0), (2.0, 4.0, 1.0)):
        with pytest.raises(ArgumentError):
            dilemma(ground(), REPORTS, *question)
