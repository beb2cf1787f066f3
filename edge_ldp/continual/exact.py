"""Exact noise from uniform integers: Bernoulli(e^-x), geometric, discrete Laplace.

Every parameter is a rational and every step an integer, so the laws are exactly those written here.
Source: Canonne, Kamath, Steinke 2020 (arXiv 2004.00010), algorithms 1 and 2.
"""

from fractions import Fraction

from edge_ldp.device.errors import ParameterError
from edge_ldp.device.laplace import unit_exp
from edge_ldp.entropy import Uniform

_WORD = 1 << 64


def bernoulli_exp(x: Fraction, draw: Uniform) -> bool:
    """Return True with probability e^-x, for a rational x ≥ 0 (algorithm 1)."""
    if x < 0:
        raise ParameterError("x", "a rational not below 0")
    num, den = x.numerator, x.denominator
    while num > den:
        if not _unit_exp(1, 1, draw):
            return False
        num -= den
    return _unit_exp(num, den, draw)


def geometric(scale: Fraction, draw: Uniform) -> int:
    """Return k ≥ 0 with probability (1 - q)·q^k, q = e^(-1/scale): the floor of an exponential.

    With scale = num/den: u + num·v is geometric with e^(-1/num) when u in 0..num-1 is accepted with
    e^(-u/num) and v counts flips of e^-1; dividing by den gives e^(-den/num) (algorithm 2).
    """
    num, den = _checked(scale)
    while True:
        fine = uniform(num, draw)
        if _unit_exp(fine, num, draw):
            break
    while _unit_exp(1, 1, draw):
        fine += num
    return fine // den


def discrete_laplace(scale: Fraction, draw: Uniform) -> int:
    """Return k with probability (1-q)/(1+q)·q^|k|, q = e^(-1/scale) (algorithm 2)."""
    while True:
        size = geometric(scale, draw)
        if not draw(2):
            return size
        if size:  # minus zero is drawn again, or zero would weigh double
            return -size


def _unit_exp(num: int, den: int, draw: Uniform) -> bool:
    """Return True with probability e^(-num/den), 0 ≤ num ≤ den, for integers of any size."""
    return unit_exp(num, den, lambda n: uniform(n, draw))


def uniform(n: int, draw: Uniform) -> int:
    """Return a uniform integer in `0..n-1` for n of any size, redrawn while it is too large."""
    if n <= _WORD:
        return draw(n)
    size = -(-n.bit_length() // 64)
    while True:
        word = 0
        for _ in range(size):
            word = word << 64 | draw(_WORD)
        word >>= 64 * size - n.bit_length()
        if word < n:
            return word


def _checked(scale: Fraction) -> tuple[int, int]:
    if scale <= 0:
        raise ParameterError("scale", "a rational above 0")
    return scale.numerator, scale.denominator
