"""What `agent setup --yes` takes hides 400 from 700 W for a day; what a hostile range would not."""

from math import comb

import pytest

from agent.commands.invited import USUAL_FUSE_W
from edge_ldp import StochasticRounding
from edge_ldp.ratio import floor_ratio
from studies.prying.pair import REPORTS, TIGHTER, confused, error, law, sharpest, usual


def test_the_error_of_eight_coins_is_the_binomial_one() -> None:
    coin = StochasticRounding(epsilon=1, low=0, high=1)
    lie = floor_ratio(1).den / (floor_ratio(1).num + floor_ratio(1).den)
    wrong = [comb(8, n) * lie**n * (1 - lie) ** (8 - n) for n in range(9)]
    assert error(law(coin, 0), law(coin, 1)) == pytest.approx(sum(wrong[5:]) + wrong[4] / 2)
    assert error(law(coin, 0), law(coin, 0)) == pytest.approx(0.5)


def test_the_span_that_is_taken_unasked_hides_what_a_narrow_one_tells_PLN_19() -> None:
    assert confused(usual(0, USUAL_FUSE_W)) >= 0.37
    assert sharpest(0, USUAL_FUSE_W) >= 0.33
    assert sharpest(0, USUAL_FUSE_W, TIGHTER) >= 0.37
    assert confused(usual(550, 1054)) <= 0.1, "the control: 9 % for the range of the attack"
    assert REPORTS == 8
