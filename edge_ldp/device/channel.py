"""The integer channel under every local mechanism of both papers: a wave of heavier codes.

Wave(d, c, r_num, r_den) has inputs `i` in [0, d) and codes `j` in [0, d+2c). Code j weighs `r_num`
if i ≤ j ≤ i+2c ("near"), else `r_den`; every input's weights add up to the same total, so the
largest ratio of two inputs' probabilities for one code is exactly r_num/r_den.
Source: DESIGN §4; [SW] §5 (square wave), [ToPS] E.2 (SR is d=2, c=0; PM a wave on a lattice).
"""

from collections import namedtuple

from edge_ldp.device.draw import WORD_RANGE
from edge_ldp.device.errors import ParameterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from edge_ldp.device.draw import Uniform

MIN_SIZE = 2
MAX_SIZE = 65_536  # codes travel in 16 bits


class Wave(namedtuple("Wave", ("d", "c", "r_num", "r_den"))):
    """A channel of d inputs and d+2c codes; build it with `wave()`, which checks it."""

    __slots__ = ()
    d: int
    c: int
    r_num: int
    r_den: int

    @property
    def code_count(self) -> int:
        """How many codes there are: d + 2c."""
        return self.d + 2 * self.c

    @property
    def near_total(self) -> int:
        """Weight of the codes near the input, together."""
        return (2 * self.c + 1) * self.r_num

    @property
    def total(self) -> int:
        """Weight of all codes, the same for every input."""
        return self.near_total + (self.d - 1) * self.r_den

    def weight(self, index: int, code: int) -> int:
        """Return the weight of `code` under input `index`; its probability is weight / total."""
        return self.r_num if index <= code <= index + 2 * self.c else self.r_den

    def sample(self, index: int, draw: "Uniform") -> int:
        """Return one code for input `index`, by exactly one draw."""
        near = self.near_total
        u = draw(near + (self.d - 1) * self.r_den)
        if u < near:
            return index + u // self.r_num
        k = (u - near) // self.r_den
        return k if k < index else k + 2 * self.c + 1

    def decode_terms(self) -> "tuple[int, int, int]":
        """Return (a, b, m) such that `(a·code − b) / m` has mean `index` exactly."""
        codes = self.code_count
        excess = (self.r_num - self.r_den) * (2 * self.c + 1)
        return self.total, self.r_den * (codes * (codes - 1) // 2) + excess * self.c, excess


def wave(d: int, c: int, r_num: int, r_den: int) -> Wave:
    """Return the checked Wave; raises ParameterError naming the parameter and its range."""
    for name, number in (("d", d), ("c", c), ("r_num", r_num), ("r_den", r_den)):
        if type(number) is not int:
            raise ParameterError(name, "an integer")
    if not MIN_SIZE <= d <= MAX_SIZE:
        raise ParameterError("d", "2..65536")
    if not 0 <= 2 * c <= MAX_SIZE - d:
        raise ParameterError("c", "0 or more, with d + 2c at most 65536")
    if r_den < 1:
        raise ParameterError("r_den", "1 or more")
    if r_num <= r_den:
        raise ParameterError("r_num", "more than r_den")
    made = Wave(d, c, r_num, r_den)
    if made.total >= WORD_RANGE:
        raise ParameterError("r_num", "a total weight below 2**64")
    return made
