"""Logarithms that are never too small, e^ε that is never too large: integers only.

ε of a ratio and variances are rounded up, the distance below the nominal ε down, to multiples of
10^-15: all round against us. Source: `edge_ldp.ratio` (certified bounds of e^x).
"""

from collections.abc import Callable
from fractions import Fraction

from edge_ldp.ratio import MAX_EPSILON, exp_bounds

STEPS = 10**15
_BITS = 160  # 2^-160 of e^32 is far below any step of a ratio of 64-bit integers


def below_exp(ratio: Fraction, epsilon: Fraction) -> bool:
    """Say whether ratio ≤ e^ε for certain: compared with a lower bound of e^ε, ε ≥ 0."""
    return ratio * (1 << _BITS) <= exp_bounds(epsilon, _BITS)[0]


def log_above(ratio: Fraction) -> Fraction:
    """Return the least multiple x of 10^-15 with ratio ≤ e^x for certain; 1 ≤ ratio < e^64."""
    most = 2 * MAX_EPSILON * STEPS
    return Fraction(_first(most, lambda k: below_exp(ratio, Fraction(k, STEPS))), STEPS)


def margin_below(ratio: Fraction, epsilon: Fraction) -> Fraction:
    """Return the largest multiple x ≥ 0 of 10^-15 with ratio ≤ e^(ε − x) for certain, or 0."""
    most = int(epsilon * STEPS)
    past = _first(most + 1, lambda k: not below_exp(ratio, epsilon - Fraction(min(k, most), STEPS)))
    return Fraction(max(past - 1, 0), STEPS)


def ceil_to(number: Fraction, steps: int) -> Fraction:
    """Return the number rounded up to a multiple of 1/steps."""
    return Fraction(-(-number.numerator * steps // number.denominator), steps)


def _first(count: int, holds: Callable[[int], bool]) -> int:
    """Return the first of 0..count-1 for which `holds`, which never stops holding; or count."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
