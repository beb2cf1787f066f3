"""A mechanism: a randomizer and what can be said about it exactly.

The device needs only the randomizer; a plan carries only its integers (`to_plan`).
Sources: docs/design.md, The kernel, Mechanisms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING, ClassVar, Self, SupportsIndex

from edge_ldp.checks import exact_integer
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.lattice import clamp, to_bucket
from edge_ldp.device.randomizer import BUCKETS
from edge_ldp.entropy import ReportDraw
from edge_ldp.mechanisms.decoders import affine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from edge_ldp.device.channel import Channel
    from edge_ldp.device.randomizer import Randomizer
    from edge_ldp.mechanisms.decoders import Decoder


class Mechanism(ABC):
    """One randomizer and its exact law; integers low < high, in the stream's unit.

    Values outside [low, high] are clamped. `decode` is unbiased: its mean over the codes is the
    value itself (for buckets: the centre of the value's bucket; for a rounded table to within
    `bias`). `perturb` costs O(1); a variance or a law O(code_count).
    """

    name: ClassVar[str]
    encoder: ClassVar[int]

    def __init__(self, randomizer: Randomizer) -> None:
        if randomizer.encoder != self.encoder:
            raise ParameterError("encoder", f"the encoder of {self.name}")
        self.randomizer = randomizer
        self._perturb = randomizer.perturb

    @classmethod
    @abstractmethod
    def from_plan(cls, table: Mapping[str, object]) -> Self:
        """Return the mechanism that `to_plan` described; raises ParameterError for the field."""

    def to_plan(self) -> dict[str, object]:
        """Return the integers that define this mechanism, ready for JSON."""
        return {"mechanism": self.name, "low": self.low, "high": self.high, **self._shape()}

    @abstractmethod
    def _shape(self) -> dict[str, object]:
        """Return what a plan says of it beside its name and range."""

    def __repr__(self) -> str:
        r = self.randomizer
        return (
            f"<{type(self).__name__} [{r.low}, {r.high}] size {self.size} ε {self.epsilon:.6g} "
            f"{r.code_count} codes>"
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Mechanism)
            and other.name == self.name
            and other.randomizer == self.randomizer
        )

    def __hash__(self) -> int:
        return hash((self.name, self.randomizer))

    @property
    def low(self) -> int:
        """Smallest value, unit of the stream."""
        return self.randomizer.low

    @property
    def high(self) -> int:
        """Largest value (θ for stream reports), unit of the stream."""
        return self.randomizer.high

    @property
    def size(self) -> int:
        """Inputs of the finest branch: buckets or lattice points."""
        return max(channel.d for channel in self.randomizer.channels)

    @property
    def code_count(self) -> int:
        """How many codes a report can be."""
        return self.randomizer.code_count

    @property
    def max_ratio(self) -> Fraction:
        """Largest factor between two values' probabilities of one code, exactly."""
        return max(Fraction(*channel.ratio()) for channel in self.randomizer.channels)

    @property
    def epsilon(self) -> float:
        """ln(max_ratio), for people to read."""
        ratio = self.max_ratio
        return log(ratio.numerator) - log(ratio.denominator)

    @property
    def branches(self) -> list[tuple[Fraction, int, Channel]]:
        """(probability, first code, channel) of each branch."""
        r = self.randomizer
        first = Fraction(*r.coin)
        if len(r.channels) == 1:
            return [(first, 0, r.channels[0])]
        return [(first, 0, r.channels[0]), (1 - first, r.channels[0].code_count, r.channels[1])]

    @cached_property
    def decoders(self) -> tuple[Decoder, ...]:
        """What the codes of each branch stand for, in input indices of that branch."""
        return tuple(affine(channel) for channel in self.randomizer.channels)

    def perturb(self, value: SupportsIndex, *, draw: Callable[[int], int] | None = None) -> int:
        """Return one report's code; an integer of NumPy is one, too, a float or bool is not.

        Unless `draw` is given, the operating system is asked for this report alone;
        `system_draw()` reads in blocks, for many reports in one thread.
        """
        if type(value) is not int:
            value = exact_integer("value", value)
        return self._perturb(value, draw or ReportDraw().below)

    def probabilities(self, value: int) -> list[Fraction]:
        """Return the exact probability of every code under `value`; they add up to 1."""
        value = exact_integer("value", value)
        law: list[Fraction] = []
        for coin, _, channel in self.branches:
            rows = self.inputs(value, channel)
            unit = coin / (channel.total * rows[0][1].denominator)  # both shares have this one
            law.extend(
                Fraction(
                    unit.numerator
                    * sum(share.numerator * channel.weight(i, j) for i, share in rows),
                    unit.denominator,
                )
                for j in range(channel.code_count)
            )
        return law

    def decode(self, code: int) -> float:
        """Return the unbiased estimate that one code stands for, in the stream's unit."""
        return float(self.decode_exact(code))

    def decode_exact(self, code: int) -> Fraction:
        """Return `decode(code)` as the fraction it is."""
        code = exact_integer("code", code)
        for (_, first, channel), decoder in zip(self.branches, self.decoders, strict=True):
            if first <= code < first + channel.code_count:
                return self.position(decoder.index(code - first), channel)
        raise ParameterError("code", f"0..{self.code_count - 1}")

    def variance(self, value: int) -> float:
        """Return the exact variance of `decode(perturb(value))`, unit²."""
        return float(_variance_of(self, exact_integer("value", value)))

    @cached_property
    def worst_variance(self) -> float:
        """The largest variance over the real interval [low, high], unit². Cost: O(size)."""
        channels = self.randomizer.channels
        points = sorted({Fraction(i, c.d - 1) for c in channels for i in range(c.d)})
        if self.encoder == BUCKETS:
            return max(_at_input(self, x) for x in points)
        squares = [_mean_square(self, x) for x in points]
        span = self.high - self.low
        cells = zip(pairwise(points), pairwise(squares), strict=True)
        return max(_worst_in_cell(*ends, *values) for ends, values in cells) * span * span

    @cached_property
    def bias(self) -> Fraction:
        """Largest error of an input's decoded mean, as a share of the range. Cost: O(size).

        0 but for tables, whose weights were rounded to integers.
        """
        return max(
            abs(decoder.moments(i)[0] - i) / (channel.d - 1)
            for (coin, _, channel), decoder in zip(self.branches, self.decoders, strict=True)
            for i in range(channel.d)
            if coin
        )

    @property
    def unit_variance(self) -> float:
        """`worst_variance` with [low, high] scaled to [-1, 1]."""
        return self.worst_variance / ((self.high - self.low) / 2) ** 2

    @property
    def influence(self) -> float:
        """Largest decoded value with [low, high] scaled to [-1, 1]: what one liar can add."""
        span = self.high - self.low
        ends = [
            self.position(decoder.index(code), channel)
            for (coin, _, channel), decoder in zip(self.branches, self.decoders, strict=True)
            if coin
            for code in (0, channel.code_count - 1)
        ]
        return float(max(abs(2 * (y - self.low) / span - 1) for y in ends))

    def step(self, channel: Channel) -> Fraction:
        """Value units per input of the channel."""
        span = self.high - self.low
        if self.encoder == BUCKETS:
            return Fraction(span + 1, channel.d)
        return Fraction(span, channel.d - 1)

    def position(self, index: Fraction, channel: Channel) -> Fraction:
        """Value at an input index: a lattice point, or the middle of a bucket's width."""
        n, m = index.numerator, index.denominator
        span = self.high - self.low
        if self.encoder == BUCKETS:  # low + (index + 1/2) · (span + 1) / d - 1/2, as one fraction
            over = 2 * m * channel.d
            return Fraction((2 * self.low - 1) * m * channel.d + (2 * n + m) * (span + 1), over)
        over = m * (channel.d - 1)  # low + index · span / (d - 1)
        return Fraction(self.low * over + n * span, over)

    def inputs(self, value: int, channel: Channel) -> list[tuple[int, Fraction]]:
        """Return the (input, probability) pairs that the encoder gives for a value."""
        if self.encoder == BUCKETS:
            return [(to_bucket(value, self.low, self.high, channel.d), Fraction(1))]
        span = self.high - self.low
        index, rest = divmod((clamp(value, self.low, self.high) - self.low) * (channel.d - 1), span)
        if not rest:
            return [(index, Fraction(1))]
        return [(index, 1 - Fraction(rest, span)), (index + 1, Fraction(rest, span))]


def _variance_of(mechanism: Mechanism, value: int) -> Fraction:
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


def _at_input(mechanism: Mechanism, x: Fraction) -> float:
    """Variance (unit²) at x in [0, 1], which must be an input of every branch."""
    total = Fraction(0)
    for (coin, _, channel), decoder in zip(mechanism.branches, mechanism.decoders, strict=True):
        first, second = decoder.moments(int(x * (channel.d - 1)))
        total += coin * (second - first * first) * mechanism.step(channel) ** 2
    return float(total)


def _mean_square(mechanism: Mechanism, x: Fraction) -> float:
    """Mean of (decoded position)² at x, positions from 0 to 1 over [low, high]."""
    total = 0.0
    for (coin, _, channel), decoder in zip(mechanism.branches, mechanism.decoders, strict=True):
        last = channel.d - 1
        index, rest = divmod(x * last, 1)
        _, square = decoder.moments(int(index))
        if rest:
            _, there = decoder.moments(int(index) + 1)
            square += rest * (there - square)
        total += float(coin * square / (last * last))
    return total


def _worst_in_cell(left: Fraction, right: Fraction, at_left: float, at_right: float) -> float:
    """Largest variance between two neighbouring points of the branches' lattices, for span 1.

    There the mean square is linear in x, so the variance is a parabola a + b·x − x² with its top
    at b/2 or at an end.
    """
    slope = (at_right - at_left) / float(right - left)
    top = min(max(slope / 2, float(left)), float(right))
    return at_left + slope * (top - float(left)) - top * top


def integers(name: str, given: object, count: int | None = None) -> list[int]:
    """Return a list of integers (`count` of them, if given); raises ParameterError."""
    wanted = "integers" if count is None else f"{count} integers"
    if not isinstance(given, list) or count not in (None, len(given)):
        raise ParameterError(name, wanted)
    if any(type(number) is not int for number in given):
        raise ParameterError(name, wanted)
    return given


def integer(table: Mapping[str, object], name: str) -> int:
    """Return an integer field; raises ParameterError."""
    given = table.get(name)
    if type(given) is not int:
        raise ParameterError(name, "an integer")
    return given


def inner(table: Mapping[str, object], name: str) -> Mapping[str, object]:
    """Return a field that is a table itself; raises ParameterError."""
    given = table.get(name)
    if not isinstance(given, dict):
        raise ParameterError(name, "a table")
    return given


def bounds(table: Mapping[str, object]) -> tuple[int, int]:
    """Return (low, high); raises ParameterError."""
    low, high = integers("low, high", [table.get("low"), table.get("high")], 2)
    return low, high
