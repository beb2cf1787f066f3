"""The integer channel under every local mechanism of both papers: a wave of heavier codes.

A channel has inputs `i` in [0, d) and codes `j` in [0, code_count), an integer weight for each pair
and one `total` of every input's weights, so a code's probability is weight / total. All channels
(`Wave` here, `Profile` and `Table` in `table`) offer the same: d, code_count, total, weight(i, j),
sample(i, draw), ratio(). Source: docs/design.md, The kernel; [SW] §5 (square wave), [ToPS] E.2 (SR
is d=2, c=0; PM a wave on a lattice).
"""

from collections import namedtuple

from edge_ldp.device.draw import WORD_RANGE
from edge_ldp.device.errors import ParameterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from edge_ldp.device.draw import Uniform

    class Channel(Protocol):
        """What every channel offers."""

        @property
        def d(self) -> int:
            """Inputs."""

        @property
        def code_count(self) -> int:
            """Codes."""

        @property
        def total(self) -> int:
            """Weight of all codes, the same for every input."""

        def weight(self, index: int, code: int) -> int:
            """Return the weight of `code` under input `index`."""

        def sample(self, index: int, draw: Uniform) -> int:
            """Return one code for input `index`, by exactly one draw."""

        def ratio(self) -> "tuple[int, int]":
            """Return (num, den): no code is more than num/den times likelier under another."""


MIN_SIZE = 2
MAX_SIZE = 65_536  # codes travel in 16 bits


class Wave(namedtuple("Wave", ("d", "c", "r_num", "r_den", "code_count", "near_total", "total"))):
    """A channel of d inputs and d+2c codes; build it with `wave()`, which checks and completes it.

    Code j weighs `r_num` if i ≤ j ≤ i+2c ("near", together `near_total`), else `r_den`; the
    largest ratio of two inputs' probabilities for one code is exactly r_num/r_den.
    """

    __slots__ = ()
    d: int
    c: int
    r_num: int
    r_den: int
    code_count: int
    near_total: int
    total: int

    def weight(self, index: int, code: int) -> int:
        """Return the weight of `code` under input `index`; its probability is weight / total."""
        return self.r_num if index <= code <= index + 2 * self.c else self.r_den

    def sample(self, index: int, draw: "Uniform") -> int:
        """Return one code for input `index`, by exactly one draw."""
        _, c, r_num, r_den, _, near_total, total = self
        u = draw(total)
        k: int
        if u < near_total:
            k = index + u // r_num
            return k
        k = (u - near_total) // r_den
        return k if k < index else k + 2 * c + 1

    def ratio(self) -> "tuple[int, int]":
        """Return (r_num, r_den)."""
        return self.r_num, self.r_den


def wave(d: int, c: int, r_num: int, r_den: int) -> Wave:
    """Return the checked Wave; raises ParameterError naming the parameter and its range."""
    check_integers(("d", d), ("c", c), ("r_num", r_num), ("r_den", r_den))
    check_band(d, c, r_den)
    if r_num <= r_den:
        raise ParameterError("r_num", "more than r_den")
    near_total = (2 * c + 1) * r_num
    total = near_total + (d - 1) * r_den
    if total >= WORD_RANGE:
        raise ParameterError("r_num", "a total weight below 2**64")
    return Wave(d, c, r_num, r_den, d + 2 * c, near_total, total)


def check_integers(*named: "tuple[str, int]") -> None:
    """Raise ParameterError for the first (name, number) that is no integer."""
    for name, number in named:
        if type(number) is not int:
            raise ParameterError(name, "an integer")


def check_band(d: int, c: int, r_den: int) -> None:
    """Raise ParameterError unless d inputs may have codes up to c beyond both ends."""
    if not MIN_SIZE <= d <= MAX_SIZE:
        raise ParameterError("d", "2..65536")
    if not 0 <= 2 * c <= MAX_SIZE - d:
        raise ParameterError("c", "0 or more, with d + 2c at most 65536")
    if r_den < 1:
        raise ParameterError("r_den", "1 or more")
