"""Discrete Laplace noise by table: digits by certified integer thresholds, ties by further bits.

For a whole chunk's nodes the samplers of `exact` are too slow. A geometric number's base-256 digits
are independent: digit i < top has mass ∝ e^(-256^i·d/scale) on 0..255, the top one is geometric.
A digit is the number of survival probabilities S_1 > S_2 > … that lie above a uniform real U. Its
first 32 bits decide unless a threshold has the same 32 bits; then 32 more are asked for, and so on,
so the law is exact. All bounds are integers around e^(-1/scale), of rising precision.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count
from typing import TypeAlias

from edge_ldp.device.errors import ParameterError
from edge_ldp.ratio import exp_bounds

More: TypeAlias = Callable[[int], int]  # the nth further 32-bit word, n = 0, 1, …

RADIX_BITS = 8
RADIX = 1 << RADIX_BITS
WORD_BITS = 32
MAX_SCALE = 1 << 40
_TOP_SCALE = 26  # then the top digit has at most 600 thresholds above 2^-32
_EXTRA_BITS = 96  # beyond the bits compared: for the division by 1 - e^(-256·x), x ≥ 2^-40


@dataclass(frozen=True, slots=True)
class Column:
    """The law of one digit: `kind` "sign", "digit" or "top" of a geometric with e^-rate.

    `thresholds`: ⌊S_k·2^32⌋ rising, those above 0 only; S_k = P(digit ≥ k).
    """

    kind: str
    rate: Fraction
    thresholds: tuple[int, ...]
    ties: frozenset[int]  # words that do not decide

    def digit(self, word: int, more: More) -> int:
        """Return the digit of a 32-bit word; `more(n)` gives the further words, used for ties."""
        if word in self.ties:
            return self.tie(word, more)
        return len(self.thresholds) - bisect_right(self.thresholds, word)

    def tie(self, word: int, more: More) -> int:
        """Compare with further bits; a threshold is never rational, so this ends."""
        bits, taken = WORD_BITS, 0
        while True:
            digit = 0
            is_sure = True
            for low, high in survivals(self.kind, self.rate, bits):
                if low <= word:  # not surely above; surely not, with all later ones, if high is so
                    is_sure = high <= word
                    break
                digit += 1
            if is_sure:
                return digit
            word = word << WORD_BITS | more(taken)
            taken += 1
            bits += WORD_BITS


@lru_cache(maxsize=8)
def laplace_columns(scale: Fraction) -> tuple[Column, ...]:
    """Return the columns of one discrete Laplace number: sign first, then digits, low to high.

    Raises ParameterError unless 2^-10 ≤ scale ≤ 2^40.
    """
    if not Fraction(1, 1 << 10) <= scale <= MAX_SCALE:
        raise ParameterError("noise scale", "2**-10..2**40")
    columns = [_column("sign", 1 / scale)]
    rate = 1 / scale
    while 1 / rate > _TOP_SCALE:
        columns.append(_column("digit", rate))
        rate *= RADIX
    return (*columns, _column("top", rate))


def _column(kind: str, rate: Fraction) -> Column:
    """Return a column whose thresholds are certified: both bounds have the same first 32 bits."""
    extra = WORD_BITS
    while True:
        found: list[int] = []
        is_sure = True
        for low, high in survivals(kind, rate, WORD_BITS + extra):
            is_sure &= low >> extra == high >> extra
            if not high >> extra:
                break
            found.append(low >> extra)
        if is_sure:
            return Column(kind, rate, tuple(reversed(found)), frozenset(found) | {0})
        extra *= 2


def survivals(kind: str, rate: Fraction, bits: int) -> Iterator[tuple[int, int]]:
    """Yield integers low ≤ S_k·2^bits ≤ high for k = 1, 2, …; without end for a top digit."""
    work = bits + _EXTRA_BITS
    one = 1 << work
    down, up = _minus_exp(rate, work)
    if kind == "sign":  # 1: not zero, 2q/(1+q); 2: above zero, half of it
        for shift in (bits + 1, bits):
            yield (down << shift) // (one + down), -(-(up << shift) // (one + up))
        return
    end_down, end_up = _minus_exp(rate * RADIX, work) if kind == "digit" else (0, 0)
    low, high = down, up
    for _ in range(RADIX - 1) if kind == "digit" else count():
        yield (
            (max(0, low - end_up) << bits) // (one - end_up),
            -((end_down - high) << bits) // (one - end_down) + 1,
        )
        low = low * down >> work
        high = (high * up >> work) + 1


def _minus_exp(x: Fraction, work: int) -> tuple[int, int]:
    """Return integers around e^-x·2^work."""
    low, high = exp_bounds(x, work)
    return (1 << 2 * work) // high, (1 << 2 * work) // low + 1
