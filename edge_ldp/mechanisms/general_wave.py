"""General waves, for densities: a report is likelier the nearer it lies ([SW] §5.1, 6.4)."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Self, TypeAlias

from edge_ldp.checks import exact_integer, taking
from edge_ldp.device.channel import MAX_SIZE
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.randomizer import BUCKETS, randomizer
from edge_ldp.device.table import Profile, profile
from edge_ldp.mechanisms.base import Mechanism
from edge_ldp.mechanisms.fields import bounds, inner, integer, integers
from edge_ldp.mechanisms.waved import check_code_count, square_wave_width
from edge_ldp.ratio import Epsilon, Ratio, floor_ratio

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

    def to_plan(self) -> dict[str, object]:
        """Return the integers that define this mechanism, ready for JSON."""
        shape = self.shape
        return {
            "mechanism": self.name,
            "low": self.low,
            "high": self.high,
            "profile": {"d": shape.d, "r_den": shape.r_den, "weights": list(shape.weights)},
        }

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
