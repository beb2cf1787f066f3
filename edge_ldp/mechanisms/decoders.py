"""From a code back to the input it stands for, without bias, and the law of what comes back.

A decoder maps codes to input indices (fractions; some lie far outside the inputs) so that the mean
under input i is i. It answers in closed form: O(1) for a wave or profile, O(codes) for a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from edge_ldp.device.channel import Wave
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.table import Profile

if TYPE_CHECKING:
    from edge_ldp.device.channel import Channel
    from edge_ldp.device.table import Table


@dataclass(frozen=True, slots=True)
class Affine:
    """The decoder of a wave or a symmetric profile: index(j) = (a·j − b)/m.

    Source: docs/design.md, The kernel.

    The weights above r_den move with the input, so a code's mean is linear in it. `excess`: the
    sums of those weights times position^0, ^1 and ^2; `flat`: of r_den over all codes.
    """

    total: int
    excess: tuple[int, int, int]
    flat: tuple[int, int, int]

    def index(self, code: int) -> Fraction:
        """Return its input index: (total·code − total·mean of it under input 0) / excess weight."""
        return Fraction(self.total * code - self.flat[1] - self.excess[1], self.excess[0])

    def moments(self, index: int) -> tuple[Fraction, Fraction]:
        """Return (index, the exact mean square) in closed form."""
        p0, p1, p2 = self.excess
        first = self.flat[1] + index * p0 + p1
        second = self.flat[2] + index * index * p0 + 2 * index * p1 + p2
        a, b = self.total, self.flat[1] + p1
        square = Fraction(a * a * second - 2 * a * b * first + b * b * a, a * p0 * p0)
        return Fraction(index), square


@dataclass(frozen=True, slots=True)
class ListedDecoder:
    """The decoder of a table: one index for each code, as the table's maker chose them."""

    table: Table
    indices: tuple[Fraction, ...]

    def index(self, code: int) -> Fraction:
        """Return the index listed for a code."""
        return self.indices[code]

    def moments(self, index: int) -> tuple[Fraction, Fraction]:
        """Return the exact mean, which rounding to integers moved a little, and mean square."""
        weighed = [(self.table.weight(index, j), y) for j, y in enumerate(self.indices)]
        first = sum((w * y for w, y in weighed), Fraction(0))
        second = sum((w * y * y for w, y in weighed), Fraction(0))
        return first / self.table.total, second / self.table.total


Decoder: TypeAlias = Affine | ListedDecoder
"""What a branch's codes, counted from 0, stand for, in input indices."""


def affine(channel: Channel) -> Affine:
    """Return the decoder of a Wave, or of a Profile that is symmetric about its middle."""
    if not isinstance(channel, Wave | Profile):
        raise ParameterError("channel", "a wave or a profile")
    last = channel.code_count - 1
    if isinstance(channel, Wave):
        excess = _even(channel.r_num - channel.r_den, 2 * channel.c)
    else:
        above = [(k, w - channel.r_den) for k, w in enumerate(channel.weights)]
        total, first = sum(w for _, w in above), sum(w * k for k, w in above)
        excess = total, first, sum(w * k * k for k, w in above)
    return Affine(channel.total, excess, _even(channel.r_den, last))


def _even(weight: int, n: int) -> tuple[int, int, int]:
    """Return the sums of a weight at each position 0..n times position^0, ^1 and ^2."""
    return weight * (n + 1), weight * (n * (n + 1) // 2), weight * (n * (n + 1) * (2 * n + 1) // 6)
