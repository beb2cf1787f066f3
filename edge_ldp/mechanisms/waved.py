"""The papers' own mechanisms: one or two waves; and general waves.

Of a general wave a report is likelier the nearer it lies. Sources: [SW] §5 (square wave), §5.1 and
6.4 (general waves), [ToPS] Appendix E.2 and eq 22 (SR, PM, HM), docs/design.md, Mechanisms.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar, Self, TypeAlias

from edge_ldp.checks import exact_integer, taking
from edge_ldp.device.channel import MAX_SIZE, MIN_SIZE, Wave, wave
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.randomizer import BUCKETS, LATTICE, randomizer
from edge_ldp.device.table import Profile, profile
from edge_ldp.mechanisms.base import Mechanism, bounds, inner, integer, integers
from edge_ldp.ratio import Epsilon, Ratio, exact_epsilon, exp_fraction, floor_ratio

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

    def _shape(self) -> dict[str, object]:
        return {"coin": list(self.randomizer.coin), "waves": wave_rows(self.waves)}


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


Number: TypeAlias = int | float | str | Fraction


class GeneralWave(Mechanism):
    """GW: a trapezoid over the 2c+1 nearest codes, values in `size` buckets over [low, high].

    `top` is the length of its upper side over its lower one: 0 is the triangle, 1 the square wave,
    which is the best of them ([SW] §5.2; there 0.2, 0.4, 0.6 and 0.8 are compared). Half-width
    c = ⌊b·size⌋; b is the square wave's unless given. The weights are rounded down to integers.
    """

    name = "general-wave"
    encoder = BUCKETS

    @taking(low=exact_integer, high=exact_integer, size=exact_integer)
    def __init__(  # noqa: PLR0913 (keywords, and two of them are shape)
        self,
        *,
        epsilon: Epsilon,
        low: int,
        high: int,
        size: int = 1024,
        top: Number = 0,
        b: Number | None = None,
    ) -> None:
        share = _fraction("top", top, "0 to 1", most=1)
        width = square_wave_width(epsilon) if b is None else _fraction("b", b, "0 or more")
        check_code_count(size, 0)
        c = int(width * size)
        if not 0 <= 2 * c < MAX_SIZE:
            raise ParameterError("b", "a half-width below 32768 codes")
        if b is None:
            check_code_count(size, c)
        ratio = floor_ratio(epsilon)
        self._use(low, high, profile(size, trapezoid(ratio, c, share), ratio.den))

    @classmethod
    def from_plan(cls, table: Mapping[str, object]) -> Self:
        """Return the mechanism that `to_plan` described; raises ParameterError for the field."""
        fields = inner(table, "profile")
        weights = integers("weights", fields.get("weights"))
        if weights != weights[::-1]:
            raise ParameterError("weights", "the same from both ends")
        made = cls.__new__(cls)
        shape = profile(integer(fields, "d"), weights, integer(fields, "r_den"))
        GeneralWave._use(made, *bounds(table), shape)
        return made

    def _shape(self) -> dict[str, object]:
        shape = self.shape
        return {"profile": {"d": shape.d, "r_den": shape.r_den, "weights": list(shape.weights)}}

    def _use(self, low: int, high: int, shape: Profile) -> None:
        super().__init__(randomizer(low, high, BUCKETS, (1, 1), (shape,)))
        self.shape = shape


def trapezoid(ratio: Ratio, c: int, top: Fraction) -> list[int]:
    """Return the 2c+1 weights of a symmetric trapezoid between r_den and r_num.

    Position k from the middle stands for its own width of 1: the lower side is 2c+1 long, the
    upper one top·(2c+1); between their ends the weight falls linearly.
    """
    rise = ratio.num - ratio.den
    half = Fraction(2 * c + 1, 2)
    flat = top * half
    heights = [
        min(Fraction(1), (half - k) / (half - flat)) if k > flat else 1 for k in range(c + 1)
    ]
    falling = [ratio.den + int(rise * height) for height in heights]
    return [*falling[:0:-1], *falling]


def _fraction(name: str, given: Number, expected: str, most: int | None = None) -> Fraction:
    try:
        made = Fraction(float.__repr__(given) if isinstance(given, float) else given)
    except (TypeError, ValueError, ArithmeticError) as exc:
        raise ParameterError(name, expected) from exc
    made = Fraction(int(made.numerator), int(made.denominator))  # NumPy's integers stay theirs
    if made < 0 or (most is not None and made > most):
        raise ParameterError(name, expected)
    return made
