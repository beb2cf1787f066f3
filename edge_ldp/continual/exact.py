"""Exact noise from uniform integers: Bernoulli(e^-x), geometric, discrete Laplace, floors of reals.

Every parameter is a rational and every step an integer, so the laws are exactly those written here.
Source: Canonne, Kamath, Steinke 2020 (arXiv 2004.00010), algorithms 1 and 2; the normal: Karney
2016 (arXiv 1303.6257), algorithm N.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from edge_ldp.device.errors import ParameterError
from edge_ldp.device.laplace import unit_exp

Uniform: TypeAlias = Callable[[int], int]

_WORD = 1 << 64
_ONE = Fraction(1)


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


def floor_laplace(scale: Fraction, shift: Fraction, draw: Uniform) -> int:
    """Return the floor of shift + scale·Z, Z continuous Laplace of scale 1, exactly.

    Z ≥ 0: with f = shift - floor, the floor passes 0 iff an exponential passes (1-f)/scale, and
    from there on it is geometric. Z < 0 is the same seen from above, as ties have probability 0.
    """
    base = shift.numerator // shift.denominator
    below = shift - base
    if draw(2):
        up = _ONE - below
        return base + (1 + geometric(scale, draw) if bernoulli_exp(up / scale, draw) else 0)
    if below and not bernoulli_exp(below / scale, draw):
        return base
    return base - 1 - geometric(scale, draw)


def normal(draw: Uniform) -> Fraction:
    """Return a standard normal as a multiple of 2^-64: at most 2^-60 from it in total variation.

    Karney's algorithm N with the uniform x replaced by its first 64 bits.
    """
    half = Fraction(1, 2)
    while True:
        whole = 0
        while bernoulli_exp(half, draw):
            whole += 1
        if not bernoulli_exp(Fraction(whole * (whole - 1), 2), draw):
            continue
        x = Fraction(draw(_WORD), _WORD)
        if bernoulli_exp(x * (2 * whole + x) / 2, draw):
            return (whole + x) * (1 if draw(2) else -1)


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
