"""How far a decoded report lies from its value: exact variances, and the worst over the range."""

from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

from edge_ldp.device.randomizer import BUCKETS

if TYPE_CHECKING:
    from edge_ldp.mechanisms.base import Mechanism
    from edge_ldp.mechanisms.decoders import Decoder


def variance_of(mechanism: "Mechanism", value: int) -> Fraction:
    """Return the exact variance of a decoded report of `value`, unit²."""
    mean = square = Fraction(0)
    for (coin, _, channel), decoder in zip(mechanism.branches, mechanism.decoders, strict=True):
        step = mechanism.step(channel)
        start = mechanism.position(Fraction(0), channel)
        for index, share in mechanism.inputs(value, channel):
            first, second = decoder.moments(index)
            mean += coin * share * (start + first * step)
            square += coin * share * (start**2 + 2 * start * first * step + second * step**2)
    return square - mean * mean


def worst_variance_of(mechanism: "Mechanism") -> float:
    """Return the largest variance over the real interval [low, high], unit². Cost: O(size)."""
    channels = mechanism.randomizer.channels
    points = sorted({Fraction(i, c.d - 1) for c in channels for i in range(c.d)})
    if mechanism.encoder == BUCKETS:
        return max(_at_input(mechanism, x) for x in points)
    squares = [_mean_square(mechanism, x) for x in points]
    span = mechanism.high - mechanism.low
    cells = zip(pairwise(points), pairwise(squares), strict=True)
    return max(_worst_in_cell(*ends, *values) for ends, values in cells) * span * span


def _at_input(mechanism: "Mechanism", x: Fraction) -> float:
    """Variance (unit²) at x in [0, 1], which must be an input of every branch."""
    total = Fraction(0)
    for (coin, _, channel), decoder in zip(mechanism.branches, mechanism.decoders, strict=True):
        first, second = decoder.moments(int(x * (channel.d - 1)))
        total += coin * (second - first * first) * mechanism.step(channel) ** 2
    return float(total)


def _mean_square(mechanism: "Mechanism", x: Fraction) -> float:
    """Mean of (decoded position)² at x, positions from 0 to 1 over [low, high]."""
    total = 0.0
    for (coin, _, channel), decoder in zip(mechanism.branches, mechanism.decoders, strict=True):
        last = channel.d - 1
        total += float(coin * _interpolated(decoder, x * last) / (last * last))
    return total


def _interpolated(decoder: "Decoder", place: Fraction) -> Fraction:
    index, rest = divmod(place, 1)
    _, here = decoder.moments(int(index))
    if not rest:
        return here
    _, there = decoder.moments(int(index) + 1)
    return here + rest * (there - here)


def _worst_in_cell(left: Fraction, right: Fraction, at_left: float, at_right: float) -> float:
    """Largest variance between two neighbouring points of the branches' lattices, for span 1.

    There the mean square is linear in x, so the variance is a parabola a + b·x − x² with its top
    at b/2 or at an end.
    """
    slope = (at_right - at_left) / float(right - left)
    top = min(max(slope / 2, float(left)), float(right))
    return at_left + slope * (top - float(left)) - top * top
