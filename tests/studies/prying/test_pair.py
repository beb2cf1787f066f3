"""What `agent setup --yes` takes hides 400 from 700 W for a day; what a hostile range would not."""

from math import comb, pi, sin, sqrt

import numpy as np
import pytest

from agent.commands.setup.invited import USUAL_FUSE_W
from edge_ldp import SquareWave, StochasticRounding
from edge_ldp.protocol.plan_bounds import PlanBounds
from edge_ldp.ratio import floor_ratio
from studies.prying.attacker import RATIO
from studies.prying.pair import (
    PAIR,
    REPORTS,
    confused,
    error,
    law,
    least_error,
    pointed,
    sharpest,
    survey_affinity,
    usual,
)


def test_the_error_of_eight_coins_is_the_binomial_one() -> None:
    coin = StochasticRounding(epsilon=1, low=0, high=1)
    lie = floor_ratio(1).den / (floor_ratio(1).num + floor_ratio(1).den)
    wrong = [comb(8, n) * lie**n * (1 - lie) ** (8 - n) for n in range(9)]
    assert error(law(coin, 0), law(coin, 1)) == pytest.approx(sum(wrong[5:]) + wrong[4] / 2)
    assert error(law(coin, 0), law(coin, 0)) == pytest.approx(0.5)


def test_the_span_that_is_taken_unasked_hides_what_a_narrow_one_tells_PLN_19() -> None:
    assert confused(usual(0, USUAL_FUSE_W)) >= 0.37
    assert confused(usual(550, 1054)) <= 0.1, "the control: 9 % for the range of the attack"
    assert REPORTS == 8


def test_no_admitted_plan_tells_the_pair_apart_PLN_14() -> None:
    """Every form at its extremes, tables made for the pair, and what no plan goes below."""
    assert sharpest(0, USUAL_FUSE_W) >= 0.37
    assert pointed(0, USUAL_FUSE_W) >= 0.37
    assert pointed(0, USUAL_FUSE_W, PlanBounds(sharpness=4)) < 0.37, "the control"
    assert least_error(0, USUAL_FUSE_W) >= 0.34


def test_no_law_of_two_outcomes_that_the_bounds_leave_tells_the_pair_apart_PLN_14() -> None:
    """Whatever a table is made of: eight reports alike, each of 3,000 angles of the first law."""
    angle = (PAIR[1] - PAIR[0]) / 2 / sqrt(PlanBounds().least_square(USUAL_FUSE_W, RATIO))
    for step in range(3000):
        first = step * (pi / 2 - angle) / 3000
        shares = [sin(first) ** 2, sin(first + angle) ** 2]
        chances = [[comb(8, n) * p**n * (1 - p) ** (8 - n) for n in range(9)] for p in shares]
        assert sum(map(min, *chances)) / 2 >= 0.37


def test_the_survey_that_tells_the_pair_apart_best_is_one_of_two_buckets_PLN_14() -> None:
    """One border lies between them in 64 buckets; against its exact law."""
    waves = [[64, 0, RATIO.num, RATIO.den]]
    plan = {"low": 0, "high": USUAL_FUSE_W, "coin": [1, 1], "waves": waves}
    laws = [law(SquareWave.from_plan(plan), power) for power in PAIR]
    assert survey_affinity(0, USUAL_FUSE_W) == pytest.approx(sum(np.sqrt(laws[0] * laws[1])))
    assert error(laws[0], laws[1]) >= 0.37
