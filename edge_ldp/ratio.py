"""From ε to integers that never exceed it: certified bounds of e^x by an integer Taylor series.

And back, from a ratio to an ε that is never too small: what a proof writes down is a multiple of
10^-15, rounded against us.

Privacy rests on one rational, r = ⌊e^ε·2^16⌋ / 2^16 ≤ e^ε; every other number derived here (wave
widths, mixture coins) shapes accuracy only. No float takes part. Source: docs/design.md, The
kernel.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import log
from typing import TypeAlias

from edge_ldp.device.errors import ParameterError

Epsilon: TypeAlias = "int | float | str | Decimal | Fraction"

RATIO_BITS = 16
MAX_EPSILON = 32
_EXPECTED = "a finite number above 2**-16 and at most 32"
STEPS = 10**15
_BITS = 160  # 2^-160 of e^32 is far below any step of a ratio of 64-bit integers
_WORK_BITS = 192  # 2**-192 is far below any cancellation in the wave width for ε > 2**-16


@dataclass(frozen=True, slots=True)
class Ratio:
    """The largest factor between two values' probabilities of one code: num/den ≤ e^ε."""

    num: int
    den: int

    def __post_init__(self) -> None:
        if type(self.num) is not int or type(self.den) is not int or not 0 < self.den < self.num:
            raise ParameterError("ratio", "integers num > den > 0")

    @property
    def epsilon(self) -> float:
        """ln(num/den), for people to read; nothing is decided by it."""
        return log(self.num) - log(self.den)


def exact_epsilon(epsilon: Epsilon) -> Fraction:
    """Return ε as the rational that was written; a float counts as its shortest decimal.

    Raises ParameterError unless 2^-16 < ε ≤ 32 (below, r_num and r_den would be equal).
    """
    if isinstance(epsilon, bool):
        raise ParameterError("epsilon", _EXPECTED)
    try:
        exact = _as_written(epsilon)
    except (ValueError, ArithmeticError, TypeError) as exc:
        raise ParameterError("epsilon", _EXPECTED) from exc
    if not Fraction(1, 1 << RATIO_BITS) < exact <= MAX_EPSILON:
        raise ParameterError("epsilon", _EXPECTED)
    return exact


@lru_cache(maxsize=128)  # each mechanism of an ε asks for the same
def exp_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Return integers lo, hi with lo ≤ e^x·2^bits ≤ hi, for 0 ≤ x; the gap is a few times e^x.

    Every Taylor term is rounded down for lo and up for hi; once k > 2x the rest of the series is
    below the last term.
    """
    lo = hi = 0
    down = up = 1 << bits
    k = 0
    while True:
        lo += down
        hi += up
        k += 1
        down = down * x.numerator // (x.denominator * k)
        up = -(-up * x.numerator // (x.denominator * k))
        if k > 2 * x and up <= 1:
            return lo, hi + 2 * up


def exp_fraction(x: Fraction) -> Fraction:
    """Return e^x from below, to a relative error under 2^-160, for |x| ≤ 32."""
    lo, hi = exp_bounds(abs(x), _WORK_BITS)
    return Fraction(lo, 1 << _WORK_BITS) if x >= 0 else Fraction(1 << _WORK_BITS, hi)


def floor_ratio(epsilon: Epsilon) -> Ratio:
    """Return ⌊e^ε·2^16⌋ / 2^16: the odds of every mechanism, rounded against us."""
    exact = exact_epsilon(epsilon)
    extra = 64
    while True:
        lo, hi = exp_bounds(exact, RATIO_BITS + extra)
        if lo >> extra == hi >> extra:  # e^ε is irrational, so this happens
            return Ratio(lo >> extra, 1 << RATIO_BITS)
        extra *= 2


def _as_written(epsilon: Epsilon) -> Fraction:
    if isinstance(epsilon, float):
        epsilon = float.__repr__(epsilon)  # NumPy's floats print their type too
    if isinstance(epsilon, str) and "_" in epsilon:
        raise ValueError  # Python reads 1_0 as ten; nobody writes a number so
    if isinstance(epsilon, str) and "/" not in epsilon:
        epsilon = Decimal(epsilon)
    if isinstance(epsilon, Decimal) and abs(epsilon.adjusted()) > RATIO_BITS:
        raise OverflowError  # before 10**exponent is computed
    exact = Fraction(epsilon)
    return Fraction(int(exact.numerator), int(exact.denominator))  # NumPy's integers stay theirs


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
