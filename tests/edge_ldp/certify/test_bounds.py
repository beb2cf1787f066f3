"""Logarithms and margins round against us, and never the other way."""

from fractions import Fraction
from math import exp, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.ratio import STEPS, below_exp, ceil_to, floor_ratio, log_above, margin_below

EPSILONS = ["0.0000153", "1e-3", "0.01", "0.1", "0.5", "1", "2", "4", "8", "32", "1/3"]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_odds_in_use_are_below_e_to_the_epsilon_and_one_unit_more_is_not(epsilon: str) -> None:
    exact = Fraction(epsilon)
    odds = floor_ratio(epsilon)
    assert below_exp(Fraction(odds.num, odds.den), exact)
    assert not below_exp(Fraction(odds.num + 1, odds.den), exact)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_epsilon_and_margin_together_never_exceed_the_nominal_epsilon(epsilon: str) -> None:
    exact = Fraction(epsilon)
    odds = floor_ratio(epsilon)
    ratio = Fraction(odds.num, odds.den)
    above, margin = log_above(ratio), margin_below(ratio, exact)
    assert margin >= 0
    assert exact - Fraction(2, STEPS) <= above + margin <= exact + Fraction(1, STEPS)
    assert below_exp(ratio, exact - margin)
    assert float(above) == pytest.approx(log(odds.num / odds.den), abs=2e-15, rel=1e-15)


def test_there_is_no_margin_where_the_ratio_is_too_large() -> None:
    assert margin_below(Fraction(3), Fraction(1)) == 0
    assert margin_below(Fraction(2), Fraction(1)) == pytest.approx(1 - log(2), abs=1e-15)
    assert log_above(Fraction(1)) == 0


@given(st.fractions(1, 1000))
def test_a_logarithm_is_the_least_step_that_is_certain(ratio: Fraction) -> None:
    above = log_above(ratio)
    assert below_exp(ratio, above)
    assert above == 0 or not below_exp(ratio, above - Fraction(1, STEPS))
    assert exp(float(above)) == pytest.approx(float(ratio))


@given(st.fractions(), st.integers(1, 10**12))
def test_rounding_up_is_by_less_than_a_step(number: Fraction, steps: int) -> None:
    assert 0 <= ceil_to(number, steps) - number < Fraction(1, steps)
