"""A mechanism: a randomizer and what can be said about it exactly.

The device needs only the randomizer; a plan carries only its integers (`to_plan`).
Sources: DESIGN §4-5, §14.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from functools import cached_property
from math import log
from typing import TYPE_CHECKING, ClassVar, Self

from edge_ldp.device.errors import ParameterError
from edge_ldp.device.lattice import clamp, to_bucket
from edge_ldp.device.randomizer import BUCKETS
from edge_ldp.entropy import ReportDraw
from edge_ldp.mechanisms.decoders import affine
from edge_ldp.mechanisms.fields import exact_integer
from edge_ldp.mechanisms.variance import variance_of, worst_variance_of

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

    @abstractmethod
    def to_plan(self) -> dict[str, object]:
        """Return the integers that define this mechanism, ready for JSON."""

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

    def perturb(self, value: int, *, draw: Callable[[int], int] | None = None) -> int:
        """Return one report's code.

        Unless `draw` is given, the operating system is asked for this report alone;
        `system_draw()` reads in blocks, for many reports in one thread.
        """
        if type(value) is not int:
            raise ParameterError("value", "an integer in the stream's unit")
        return self._perturb(value, draw or ReportDraw().below)

    def probabilities(self, value: int) -> list[Fraction]:
        """Return the exact probability of every code under `value`; they add up to 1."""
        value = exact_integer("value", value)
        law: list[Fraction] = []
        for coin, _, channel in self.branches:
            rows = self.inputs(value, channel)
            law.extend(
                coin
                * sum(share * Fraction(channel.weight(i, j), channel.total) for i, share in rows)
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
        return float(variance_of(self, exact_integer("value", value)))

    @cached_property
    def worst_variance(self) -> float:
        """The largest variance over the real interval [low, high], unit². Cost: O(size)."""
        return worst_variance_of(self)

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
        if self.encoder == BUCKETS:
            return self.low + (index + Fraction(1, 2)) * self.step(channel) - Fraction(1, 2)
        return self.low + index * self.step(channel)

    def inputs(self, value: int, channel: Channel) -> list[tuple[int, Fraction]]:
        """Return the (input, probability) pairs that the encoder gives for a value."""
        if self.encoder == BUCKETS:
            return [(to_bucket(value, self.low, self.high, channel.d), Fraction(1))]
        span = self.high - self.low
        index, rest = divmod((clamp(value, self.low, self.high) - self.low) * (channel.d - 1), span)
        if not rest:
            return [(index, Fraction(1))]
        return [(index, 1 - Fraction(rest, span)), (index + 1, Fraction(rest, span))]
