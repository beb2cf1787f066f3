"""The papers' own mechanisms: one or two waves.

Sources: [SW] §5 (square wave), [ToPS] Appendix E.2 and eq 22 (SR, PM, HM), docs/design.md,
Mechanisms.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar, Self

from edge_ldp.checks import exact_integer, taking
from edge_ldp.device.channel import MAX_SIZE, MIN_SIZE, Wave, wave
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.randomizer import BUCKETS, LATTICE, randomizer
from edge_ldp.mechanisms.base import Mechanism
from edge_ldp.mechanisms.fields import bounds, integers
from edge_ldp.ratio import Epsilon, exact_epsilon, exp_fraction, floor_ratio

COIN_BITS = 16
HYBRID_FROM = Fraction(61, 100)  # below, SR alone has the smaller worst variance ([ToPS] eq 22)
WHOLE = (1, 1)


class Waved(Mechanism):
    """A mechanism of `branch_count` waves, with one form in plans."""

    branch_count: ClassVar[int] = 1

    def __init__(self, low: int, high: int, coin: tuple[int, int], *waves: Wave) -> None:
        super().__init__(randomizer(low, high, self.encoder, coin, waves))
        self.waves = waves

    @classmethod
    def from_plan(cls, table: Mapping[str, object]) -> Self:
        """Return the mechanism that `to_plan` described; raises ParameterError for the field."""
        num, den = integers("coin", table.get("coin"), 2)
        made = cls.__new__(cls)
        Waved.__init__(made, *bounds(table), (num, den), *waves(table, cls.branch_count))
        return made

    def to_plan(self) -> dict[str, object]:
        """Return the integers that define this mechanism, ready for JSON."""
        return {
            "mechanism": self.name,
            "low": self.low,
            "high": self.high,
            "coin": list(self.randomizer.coin),
            "waves": wave_rows(self.waves),
        }


class SquareWave(Waved):
    """SW, for densities: values in `size` buckets over [low, high] ([SW] §5).

    Half-width c = ⌊b·size⌋ with b = (εE − E + 1)/(2E(E − 1 − ε)), E = e^ε.
    """

    name = "square-wave"
    encoder = BUCKETS

    @taking(low=exact_integer, high=exact_integer, size=exact_integer)
    def __init__(self, *, epsilon: Epsilon, low: int, high: int, size: int = 1024) -> None:
        ratio = floor_ratio(epsilon)
        check_code_count(size, 0)
        c = int(square_wave_width(epsilon) * size)
        check_code_count(size, c)
        super().__init__(low, high, WHOLE, wave(size, c, ratio.num, ratio.den))


class StochasticRounding(Waved):
    """SR, for sums: one of two codes, decoded to ±(E+1)/(E−1) on [-1, 1] ([ToPS] E.2)."""

    name = "stochastic-rounding"
    encoder = LATTICE

    @taking(low=exact_integer, high=exact_integer)
    def __init__(self, *, epsilon: Epsilon, low: int, high: int) -> None:
        super().__init__(low, high, WHOLE, _response(epsilon))


class Piecewise(Waved):
    """PM, for sums: a wave of half-width round(size·e^(−ε/2)/2) on a lattice ([ToPS] E.2)."""

    name = "piecewise"
    encoder = LATTICE

    @taking(low=exact_integer, high=exact_integer, size=exact_integer)
    def __init__(self, *, epsilon: Epsilon, low: int, high: int, size: int = 256) -> None:
        super().__init__(low, high, WHOLE, _piecewise(epsilon, size))


class Hybrid(Waved):
    """HM, for sums: PM with probability α = 1 − e^(−ε/2) (0 if ε ≤ 0.61), else SR ([ToPS] eq 22).

    Codes 0..size+2c−1 are PM's, the last two SR's; the coin α is rounded down to 16 bits.
    """

    name = "hybrid"
    encoder = LATTICE
    branch_count = 2

    @taking(low=exact_integer, high=exact_integer, size=exact_integer)
    def __init__(self, *, epsilon: Epsilon, low: int, high: int, size: int = 256) -> None:
        exact = exact_epsilon(epsilon)
        share = 1 - 1 / exp_fraction(exact / 2) if exact > HYBRID_FROM else Fraction(0)
        coin = (int(share * (1 << COIN_BITS)), 1 << COIN_BITS)
        super().__init__(low, high, coin, _piecewise(epsilon, size), _response(epsilon))


def waves(table: Mapping[str, object], count: int) -> tuple[Wave, ...]:
    """Return `count` waves from rows [d, c, r_num, r_den]; raises ParameterError."""
    rows = table.get("waves")
    if not isinstance(rows, list) or len(rows) != count:
        raise ParameterError("waves", f"{count} of [d, c, r_num, r_den]")
    return tuple(wave(*integers("waves", row, 4)) for row in rows)


def wave_rows(waves: tuple[Wave, ...]) -> list[list[int]]:
    """Return the rows that `waves` reads."""
    return [[w.d, w.c, w.r_num, w.r_den] for w in waves]


def square_wave_width(epsilon: Epsilon) -> Fraction:
    """Return b, the half-width that maximises the information of a report ([SW] §5.3).

    192 bits carry the cancellation of both differences for every ε the library takes.
    """
    exact = exact_epsilon(epsilon)
    e = exp_fraction(exact)
    return (exact * e - e + 1) / (2 * e * (e - 1 - exact))


def check_code_count(size: int, c: int) -> None:
    """Raise ParameterError unless `size` inputs with half-width c give 65536 codes at most."""
    if type(size) is not int or size < MIN_SIZE:
        raise ParameterError("size", f"an integer from {MIN_SIZE}")
    if size + 2 * c > MAX_SIZE:
        raise ParameterError("size", f"at most {MAX_SIZE} codes; here size + 2·{c}")


def _response(epsilon: Epsilon) -> Wave:
    ratio = floor_ratio(epsilon)
    return wave(2, 0, ratio.num, ratio.den)


def _piecewise(epsilon: Epsilon, size: int) -> Wave:
    ratio = floor_ratio(epsilon)
    check_code_count(size, 0)
    c = round(size / (2 * exp_fraction(exact_epsilon(epsilon) / 2)))
    check_code_count(size, c)
    return wave(size, c, ratio.num, ratio.den)
