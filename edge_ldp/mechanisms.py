"""The papers' mechanisms as parameters of the one integer kernel, with their exact laws.

A mechanism is a Randomizer plus what can be said about it: probabilities, decoding, variance. The
device needs only the randomizer; a plan carries only its integers (`to_plan`, `from_plan`).
Sources: [SW] §5 (square wave), [ToPS] Appendix E.2 and eq 22 (SR, PM, HM), DESIGN §4-5.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import log
from typing import ClassVar

from edge_ldp.device import channel
from edge_ldp.device.channel import Wave
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.lattice import clamp, to_bucket
from edge_ldp.device.randomizer import BUCKETS, LATTICE, Randomizer, randomizer
from edge_ldp.entropy import system_draw
from edge_ldp.ratio import Epsilon, exact_epsilon, exp_fraction, floor_ratio

COIN_BITS = 16
HYBRID_FROM = Fraction(61, 100)  # below, SR alone has the smaller worst variance ([ToPS] eq 22)


class Mechanism:
    """One randomizer and its exact law; integers low < high, in the stream's unit.

    Values outside [low, high] are clamped. `decode` is unbiased: its mean over the codes is the
    value itself (for a square wave: the centre of the value's bucket). `perturb` costs O(1); a
    variance or a law O(code_count).
    """

    name: ClassVar[str]
    encoder: ClassVar[int]
    branch_count: ClassVar[int] = 1

    def __init__(self, randomizer: Randomizer) -> None:
        if randomizer.encoder != self.encoder:
            raise ParameterError("encoder", f"the encoder of {self.name}")
        self.randomizer = randomizer

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
        return max(wave.d for wave in self.randomizer.waves)

    @property
    def code_count(self) -> int:
        """How many codes a report can be."""
        return self.randomizer.code_count

    @property
    def max_ratio(self) -> Fraction:
        """Largest factor between two values' probabilities of one code, exactly."""
        return max(Fraction(wave.r_num, wave.r_den) for wave in self.randomizer.waves)

    @property
    def epsilon(self) -> float:
        """ln(max_ratio), for people to read."""
        ratio = self.max_ratio
        return log(ratio.numerator) - log(ratio.denominator)

    @property
    def branches(self) -> list[tuple[Fraction, int, Wave]]:
        """(probability, first code, wave) of each branch."""
        r = self.randomizer
        first = Fraction(*r.coin)
        if len(r.waves) == 1:
            return [(first, 0, r.waves[0])]
        return [(first, 0, r.waves[0]), (1 - first, r.waves[0].code_count, r.waves[1])]

    def perturb(self, value: int, *, draw: Callable[[int], int] | None = None) -> int:
        """Return one report's code; `draw` is the operating system's entropy unless given."""
        if type(value) is not int:
            raise ParameterError("value", "an integer in the stream's unit")
        return self.randomizer.perturb(value, draw or system_draw())

    def probabilities(self, value: int) -> list[Fraction]:
        """Return the exact probability of every code under `value`; they add up to 1."""
        law: list[Fraction] = []
        for coin, _, wave in self.branches:
            rows = self._inputs(value, wave)
            law.extend(
                coin * sum(share * Fraction(wave.weight(i, j), wave.total) for i, share in rows)
                for j in range(wave.code_count)
            )
        return law

    def decode(self, code: int) -> float:
        """Return the unbiased estimate that one code stands for, in the stream's unit."""
        return float(self.decode_exact(code))

    def decode_exact(self, code: int) -> Fraction:
        """Return `decode(code)` as the fraction it is."""
        for _, first, wave in self.branches:
            if first <= code < first + wave.code_count:
                a, b, m = wave.decode_terms()
                return self._position(Fraction(a * (code - first) - b, m), wave)
        raise ParameterError("code", f"0..{self.code_count - 1}")

    def variance(self, value: int) -> float:
        """Return the exact variance of `decode(perturb(value))`, unit²."""
        total = Fraction(0)
        for coin, _, wave in self.branches:
            rows = self._inputs(value, wave)
            mean = sum((share * i for i, share in rows), Fraction(0))
            square = sum((share * _mean_square(wave, i) for i, share in rows), Fraction(0))
            total += coin * (square - mean * mean) * self._step(wave) ** 2
        return float(total)

    @cached_property
    def worst_variance(self) -> float:
        """The largest variance over the real interval [low, high], unit². Cost: O(size)."""
        waves = self.randomizer.waves
        points = sorted({Fraction(i, wave.d - 1) for wave in waves for i in range(wave.d)})
        if self.encoder == BUCKETS:
            return max(self._variance_at(x) for x in points)
        return max(self._worst_in_cell(left, right) for left, right in pairwise(points))

    @property
    def unit_variance(self) -> float:
        """`worst_variance` with [low, high] scaled to [-1, 1]."""
        return self.worst_variance / ((self.high - self.low) / 2) ** 2

    @property
    def influence(self) -> float:
        """Largest decoded value with [low, high] scaled to [-1, 1]: what one liar can add."""
        span = self.high - self.low
        ends = [
            self.decode_exact(code)
            for coin, first, wave in self.branches
            if coin
            for code in (first, first + wave.code_count - 1)
        ]
        return float(max(abs(2 * (y - self.low) / span - 1) for y in ends))

    def to_plan(self) -> dict[str, object]:
        """Return the integers that define this mechanism, ready for JSON."""
        r = self.randomizer
        return {
            "mechanism": self.name,
            "low": r.low,
            "high": r.high,
            "coin": list(r.coin),
            "waves": [list(w) for w in r.waves],
        }

    @staticmethod
    def from_plan(table: Mapping[str, object]) -> "Mechanism":
        """Return the mechanism that `to_plan` described; raises ParameterError naming the field."""
        kinds = {kind.name: kind for kind in (SquareWave, StochasticRounding, Piecewise, Hybrid)}
        kind = kinds.get(str(table.get("mechanism")))
        if kind is None:
            raise ParameterError("mechanism", "one of " + ", ".join(sorted(kinds)))
        low, high = _integers("low, high", [table.get("low"), table.get("high")], 2)
        num, den = _integers("coin", table.get("coin"), 2)
        waves = table.get("waves")
        if not isinstance(waves, list) or len(waves) != kind.branch_count:
            raise ParameterError("waves", f"{kind.branch_count} of [d, c, r_num, r_den]")
        made = tuple(channel.wave(*_integers("waves", row, 4)) for row in waves)
        mechanism = kind.__new__(kind)
        Mechanism.__init__(mechanism, randomizer(low, high, kind.encoder, (num, den), made))
        return mechanism

    def _step(self, wave: Wave) -> Fraction:
        """Value units per input of the wave."""
        span = self.high - self.low
        return Fraction(span + 1, wave.d) if self.encoder == BUCKETS else Fraction(span, wave.d - 1)

    def _position(self, index: Fraction, wave: Wave) -> Fraction:
        """Value at an input index: a lattice point, or the middle of a bucket's width."""
        if self.encoder == BUCKETS:
            return self.low + (index + Fraction(1, 2)) * self._step(wave) - Fraction(1, 2)
        return self.low + index * self._step(wave)

    def _inputs(self, value: int, wave: Wave) -> list[tuple[int, Fraction]]:
        """Return the (input, probability) pairs that the encoder gives for a value."""
        if self.encoder == BUCKETS:
            return [(to_bucket(value, self.low, self.high, wave.d), Fraction(1))]
        span = self.high - self.low
        index, rest = divmod((clamp(value, self.low, self.high) - self.low) * (wave.d - 1), span)
        if not rest:
            return [(index, Fraction(1))]
        return [(index, 1 - Fraction(rest, span)), (index + 1, Fraction(rest, span))]

    def _variance_at(self, x: Fraction) -> float:
        """Variance (unit²) at x in [0, 1], which must be an input of every bucketed wave."""
        total = Fraction(0)
        for coin, _, wave in self.branches:
            index = x * (wave.d - 1)
            square = _mean_square(wave, int(index))
            total += coin * (square - index * index) * self._step(wave) ** 2
        return float(total)

    def _worst_in_cell(self, left: Fraction, right: Fraction) -> float:
        """Largest variance (unit²) between two neighbouring points of the branches' lattices.

        There each branch's mean square is linear in x in [0, 1], so the variance is a parabola
        a + b·x − x² (in units of the span²), with its top at b/2 or at an end.
        """
        at_left = at_right = 0.0
        for coin, _, wave in self.branches:
            scale = (wave.d - 1) ** 2
            for_left, for_right = (
                float(coin * _interpolated_square(wave, x) / scale) for x in (left, right)
            )
            at_left += for_left
            at_right += for_right
        slope = (at_right - at_left) / float(right - left)
        top = min(max(slope / 2, float(left)), float(right))
        span = self.high - self.low
        return (at_left + slope * (top - float(left)) - top * top) * span * span


class SquareWave(Mechanism):
    """SW, for densities: values in `size` buckets over [low, high] ([SW] §5).

    Half-width c = ⌊b·size⌋ with b = (εE − E + 1)/(2E(E − 1 − ε)), E = e^ε.
    """

    name = "square-wave"
    encoder = BUCKETS

    def __init__(self, *, epsilon: Epsilon, low: int, high: int, size: int = 1024) -> None:
        ratio = floor_ratio(epsilon)
        c = int(square_wave_width(epsilon) * size)
        made = channel.wave(size, c, ratio.num, ratio.den)
        super().__init__(randomizer(low, high, BUCKETS, (1, 1), (made,)))


class StochasticRounding(Mechanism):
    """SR, for sums: one of two codes, decoded to ±(E+1)/(E−1) on [-1, 1] ([ToPS] E.2)."""

    name = "stochastic-rounding"
    encoder = LATTICE

    def __init__(self, *, epsilon: Epsilon, low: int, high: int) -> None:
        ratio = floor_ratio(epsilon)
        super().__init__(
            randomizer(low, high, LATTICE, (1, 1), (channel.wave(2, 0, ratio.num, ratio.den),))
        )


class Piecewise(Mechanism):
    """PM, for sums: a wave of half-width round(size·e^(−ε/2)/2) on a lattice ([ToPS] E.2)."""

    name = "piecewise"
    encoder = LATTICE

    def __init__(self, *, epsilon: Epsilon, low: int, high: int, size: int = 256) -> None:
        super().__init__(randomizer(low, high, LATTICE, (1, 1), (_piecewise(epsilon, size),)))


class Hybrid(Mechanism):
    """HM, for sums: PM with probability α = 1 − e^(−ε/2) (0 if ε ≤ 0.61), else SR ([ToPS] eq 22).

    Codes 0..size+2c−1 are PM's, the last two SR's; the coin α is rounded down to 16 bits.
    """

    name = "hybrid"
    encoder = LATTICE
    branch_count = 2

    def __init__(self, *, epsilon: Epsilon, low: int, high: int, size: int = 256) -> None:
        ratio = floor_ratio(epsilon)
        exact = exact_epsilon(epsilon)
        share = 1 - 1 / exp_fraction(exact / 2) if exact > HYBRID_FROM else Fraction(0)
        coin = (int(share * (1 << COIN_BITS)), 1 << COIN_BITS)
        waves = (_piecewise(epsilon, size), channel.wave(2, 0, ratio.num, ratio.den))
        super().__init__(randomizer(low, high, LATTICE, coin, waves))


def square_wave_width(epsilon: Epsilon) -> Fraction:
    """Return b, the half-width that maximises the information of a report ([SW] §5.3).

    192 bits carry the cancellation of both differences for every ε the library takes.
    """
    exact = exact_epsilon(epsilon)
    e = exp_fraction(exact)
    return (exact * e - e + 1) / (2 * e * (e - 1 - exact))


def _piecewise(epsilon: Epsilon, size: int) -> Wave:
    ratio = floor_ratio(epsilon)
    c = round(size / (2 * exp_fraction(exact_epsilon(epsilon) / 2)))
    return channel.wave(size, c, ratio.num, ratio.den)


def _mean_square(wave: Wave, index: int) -> Fraction:
    """Exact mean of (decoded index)² under one input, in closed form."""
    a, b, m = wave.decode_terms()
    codes, last = wave.code_count, index + 2 * wave.c
    excess = wave.r_num - wave.r_den
    first_moment = wave.r_den * _sum(codes - 1) + excess * (_sum(last) - _sum(index - 1))
    second_moment = wave.r_den * _squares(codes - 1) + excess * (
        _squares(last) - _squares(index - 1)
    )
    total = wave.total
    return Fraction(a * a * second_moment - 2 * a * b * first_moment + b * b * total, total * m * m)


def _interpolated_square(wave: Wave, x: Fraction) -> Fraction:
    index, rest = divmod(x * (wave.d - 1), 1)
    if not rest:
        return _mean_square(wave, int(index))
    here, there = _mean_square(wave, int(index)), _mean_square(wave, int(index) + 1)
    return here + rest * (there - here)


def _sum(n: int) -> int:
    return n * (n + 1) // 2


def _squares(n: int) -> int:
    return n * (n + 1) * (2 * n + 1) // 6


def _integers(name: str, given: object, count: int) -> list[int]:
    if not isinstance(given, list) or len(given) != count:
        raise ParameterError(name, f"{count} integers")
    if any(type(number) is not int for number in given):
        raise ParameterError(name, f"{count} integers")
    return given
