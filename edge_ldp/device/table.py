"""Channels by explicit weights: one draw, then a search in the input's cumulative weights.

A `Table` is the general form. A `Profile` is a table whose rows are one row shifted, kept as that
one row: the general waves of [SW] §5.1. Source: docs/design.md, The kernel.
"""

from collections import namedtuple

from edge_ldp.device.channel import MAX_SIZE, MIN_SIZE, check_band, check_integers
from edge_ldp.device.draw import WORD_RANGE
from edge_ldp.device.errors import ParameterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from edge_ldp.device.draw import Uniform


class Profile(namedtuple("Profile", ("d", "c", "r_den", "code_count", "total", "sums"))):
    """A channel of d inputs and d+2c codes; build it with `profile()`, which checks it.

    Codes i..i+2c weigh what the profile says, of which `sums` are the cumulative weights; every
    other code weighs `r_den`, which no weight of the profile is below.
    """

    __slots__ = ()
    d: int
    c: int
    r_den: int
    code_count: int
    total: int
    sums: "tuple[int, ...]"

    @property
    def weights(self) -> "tuple[int, ...]":
        """The profile: weights of codes i, i+1, … i+2c under input i."""
        return differences(self.sums)

    def weight(self, index: int, code: int) -> int:
        """Return the weight of `code` under input `index`; its probability is weight / total."""
        at = code - index
        if not 0 <= at <= 2 * self.c:
            return self.r_den
        return self.sums[at] - (self.sums[at - 1] if at else 0)

    def sample(self, index: int, draw: "Uniform") -> int:
        """Return one code for input `index`, by exactly one draw."""
        _, c, r_den, _, total, sums = self
        u = draw(total)
        if u < sums[-1]:
            return index + first_above(sums, u)
        k: int = (u - sums[-1]) // r_den
        return k if k < index else k + 2 * c + 1

    def ratio(self) -> "tuple[int, int]":
        """Return (largest weight, r_den): an upper bound, reached where d > 2c."""
        return max(self.weights), self.r_den


class Table(namedtuple("Table", ("d", "code_count", "total", "sums", "bound"))):
    """A channel by its weights; build it with `table()`, which checks it.

    `sums`: one tuple of cumulative weights an input. `bound`: the largest ratio of two inputs'
    weights for one code, found by comparing all of them.
    """

    __slots__ = ()
    d: int
    code_count: int
    total: int
    sums: "tuple[tuple[int, ...], ...]"
    bound: "tuple[int, int]"

    @property
    def weights(self) -> "tuple[tuple[int, ...], ...]":
        """The weights of all codes, one tuple an input."""
        return tuple(differences(row) for row in self.sums)

    def weight(self, index: int, code: int) -> int:
        """Return the weight of `code` under input `index`; its probability is weight / total."""
        row = self.sums[index]
        return row[code] - (row[code - 1] if code else 0)

    def sample(self, index: int, draw: "Uniform") -> int:
        """Return one code for input `index`, by exactly one draw."""
        return first_above(self.sums[index], draw(self.total))

    def ratio(self) -> "tuple[int, int]":
        """Return the largest ratio of two inputs' weights for one code, as (num, den)."""
        return self.bound


def profile(d: int, weights: "Sequence[int]", r_den: int) -> Profile:
    """Return the checked Profile; raises ParameterError naming the parameter and its range."""
    check_integers(("d", d), ("r_den", r_den))
    if len(weights) % 2 == 0:
        raise ParameterError("weights", "an odd number of them: 2c + 1")
    check_band(d, len(weights) // 2, r_den)
    sums = cumulated(weights, r_den)
    if max(weights) == r_den:
        raise ParameterError("weights", "one above r_den")
    total = sums[-1] + (d - 1) * r_den
    if total >= WORD_RANGE:
        raise ParameterError("weights", "a total weight below 2**64")
    return Profile(d, len(weights) // 2, r_den, d + len(weights) - 1, total, sums)


def table(weights: "Sequence[Sequence[int]]") -> Table:
    """Return the checked Table; raises ParameterError naming the parameter and its range.

    Every weight is 1 or more, so each code is possible under every input. Cost: d · code_count.
    """
    d, codes = len(weights), len(weights[0]) if weights else 0
    if not MIN_SIZE <= d <= MAX_SIZE:
        raise ParameterError("weights", "2..65536 rows")
    if not MIN_SIZE <= codes <= MAX_SIZE or any(len(row) != codes for row in weights):
        raise ParameterError("weights", "2..65536 codes, the same number in every row")
    sums = tuple(cumulated(row, 1) for row in weights)
    total = sums[0][-1]
    if total >= WORD_RANGE or any(row[-1] != total for row in sums):
        raise ParameterError("weights", "one total for every row, below 2**64")
    bound = (1, 1)
    for j in range(codes):
        column = [row[j] for row in weights]
        most, least = max(column), min(column)
        if most * bound[1] > bound[0] * least:
            bound = (most, least)
    return Table(d, codes, total, sums, bound)


def cumulated(weights: "Sequence[int]", least: int) -> "tuple[int, ...]":
    """Return the running sums of weights, each of which must be an integer, `least` or more."""
    sums = []
    total = 0
    for weight in weights:
        if type(weight) is not int or weight < least:
            raise ParameterError("weights", "integers, 1 or more, and no less than r_den")
        total += weight
        sums.append(total)
    return tuple(sums)


def differences(sums: "tuple[int, ...]") -> "tuple[int, ...]":
    """Return the weights whose running sums these are."""
    weights = []
    before = 0
    for total in sums:
        weights.append(total - before)
        before = total
    return tuple(weights)


def first_above(sums: "tuple[int, ...]", u: int) -> int:
    """Return the first index whose running sum exceeds u, by halving; u is below the last."""
    low, high = 0, len(sums) - 1
    while low < high:
        middle = (low + high) // 2
        if u < sums[middle]:
            high = middle
        else:
            low = middle + 1
    return low
