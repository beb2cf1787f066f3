"""e^ε against an independent high-precision exponential, and everything that is no ε."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import exp, log
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edge_ldp.device.errors import ParameterError
from edge_ldp.ratio import Ratio, exact_epsilon, exp_bounds, exp_fraction, floor_ratio

SMALLEST = Fraction(1, 1 << 16)
ALLOWED = st.fractions(SMALLEST, 32).filter(lambda x: x > SMALLEST)


def independent_exp(x: Fraction) -> Fraction:
    """e^x by the decimal module, to a relative error below 10^-115."""
    with localcontext(prec=120) as context:
        return Fraction(context.exp(Decimal(x.numerator) / x.denominator))


HAIR = Fraction(1, 10**110)  # more than the independent exponential errs by


@pytest.mark.parametrize(
    ("epsilon", "num"),
    [
        ("0.001", 65601),
        ("0.01", 66194),
        ("0.1", 72428),
        ("0.5", 108050),
        ("1", 178145),
        ("2", 484249),
        ("4", 3578144),
        ("8", 195360062),
        ("32", 5174916558532162038),
    ],
)
def test_the_ratio_is_e_to_the_epsilon_rounded_down_to_16_bits(epsilon: str, num: int) -> None:
    assert floor_ratio(epsilon) == Ratio(num, 1 << 16)
    assert num == int(independent_exp(Fraction(epsilon)) * (1 << 16))


@given(ALLOWED)
@example(Fraction(65537, 1 << 32))
@example(Fraction(32))
def test_the_ratio_never_exceeds_e_to_the_epsilon_by_anything(epsilon: Fraction) -> None:
    ratio = floor_ratio(epsilon)
    assert ratio.den == 1 << 16
    assert ratio.num == int(independent_exp(epsilon) * (1 << 16))
    assert ratio.num > ratio.den


@pytest.mark.parametrize("num", [65_538, 108_050, 178_145, 3_578_144, 5_174_916_558_532_162_038])
def test_a_hair_decides_on_which_side_of_an_integer_the_ratio_falls(num: int) -> None:
    with localcontext(prec=110) as context:
        exact = Fraction(context.ln(Decimal(num) / (1 << 16)))
    hair = Fraction(1, 10**80)
    assert floor_ratio(exact + hair).num == num
    assert floor_ratio(exact - hair).num == num - 1


@given(st.fractions(0, 64), st.integers(0, 300))
def test_bounds_bracket_the_exponential(x: Fraction, bits: int) -> None:
    lo, hi = exp_bounds(x, bits)
    exact = independent_exp(x) * (1 << bits)
    assert lo <= exact * (1 + HAIR)
    assert hi >= exact * (1 - HAIR)
    assert hi - lo <= 8 * (exp(float(x)) + 8)


@given(st.fractions(-32, 32))
def test_the_fraction_of_the_exponential_is_below_it_and_close(x: Fraction) -> None:
    exact = independent_exp(x)
    assert 0 <= exact * (1 + HAIR) - exp_fraction(x) <= exact * Fraction(1, 1 << 160)


@pytest.mark.parametrize(
    "epsilon",
    [
        *(0, -1, SMALLEST, 2.0**-16, 33, "32.0001", Fraction(33), True, False, None, [], b"1", 1j),
        *(float("nan"), float("inf"), float("-inf"), Decimal("NaN"), Decimal("Infinity")),
        *("", "one", "1/0", "nan", "inf", "1,5", "0x1", "1_0", "1_0/3"),
        *("1e400", "1e999999999", "1e-999999999", Decimal("1e999999999"), Decimal("1e-999999999")),
    ],
    ids=repr,
)
@pytest.mark.timeout(5)
def test_what_is_no_epsilon_is_refused(epsilon: Any) -> None:
    with pytest.raises(ParameterError) as refused:
        floor_ratio(epsilon)
    assert refused.value.name == "epsilon"


@pytest.mark.parametrize(
    ("epsilon", "exact"),
    [
        (0.1, Fraction(1, 10)),  # the decimal that was written, not the nearest double
        ("0.1", Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        ("2.5e-1", Fraction(1, 4)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Fraction(1, 10), Fraction(1, 10)),
        (1, Fraction(1)),
        (32.0, Fraction(32)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.int64(2), Fraction(2)),
    ],
)
def test_epsilon_is_the_number_that_was_written(epsilon: Any, exact: Fraction) -> None:
    assert exact_epsilon(epsilon) == exact
    assert floor_ratio(epsilon) == floor_ratio(exact)


@pytest.mark.parametrize("num_den", [(1, 1), (1, 2), (0, 0), (2, 0), (2, -1), (2.0, 1), (True, 1)])
def test_odds_that_do_not_favour_the_truth_are_no_ratio(num_den: tuple[Any, Any]) -> None:
    with pytest.raises(ParameterError):
        Ratio(*num_den)


def test_epsilon_of_a_ratio_is_its_log_also_where_floats_overflow() -> None:
    assert Ratio(178145, 65536).epsilon == pytest.approx(1, abs=1e-5)
    assert Ratio(10**400, 1).epsilon == pytest.approx(400 * log(10))
