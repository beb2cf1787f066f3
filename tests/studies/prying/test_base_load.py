"""The study of base loads: what nothing tells, what all tells, and that noise hides."""

import numpy as np
import pytest

from studies.prying.attacker import TOP, Load
from studies.prying.base_load import error, law_of_reports, walked
from studies.prying.habits import DAYS, Sums, Way

STILL, MOVING = Load(), Load(spread=150.0, drift=20.0)
ANY = np.ones((TOP + 1, 1))


def of(way: Way, load: Load = STILL) -> float:
    return error(way, 43_470, load, ANY, homes=60, paths=3001)


def test_without_anything_a_guess_errs_as_the_prior_does() -> None:
    assert of(Way(0)) == pytest.approx(TOP / 12**0.5, rel=0.03)
    assert of(Way(8)) == of(Way(0)), "reports that say the same of every load"


def test_what_has_no_noise_is_known_and_noise_hides_it_the_more_the_smaller_epsilon_is() -> None:
    errors = [of(Way(0, Sums(7, 1, epsilon))) for epsilon in (1e6, 8, 4, 2)]
    assert errors[0] < 2
    assert errors[0] < errors[1] < errors[2] < errors[3] < of(Way(0))


def test_a_load_that_moves_stays_in_its_range_and_moves_as_said() -> None:
    paths = walked(MOVING, 2001, np.random.default_rng(3))
    assert paths.shape == (2001, DAYS)
    assert paths.min() >= 0
    assert paths.max() <= TOP
    steps = np.diff(paths[500:1500], axis=1)
    assert steps.std() == pytest.approx(20, rel=0.05)


@pytest.mark.slow
def test_the_plans_law_is_one_for_every_load() -> None:
    assert law_of_reports(17_250, STILL).sum(axis=1) == pytest.approx(1)
