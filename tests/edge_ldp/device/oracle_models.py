"""The oracles written from their contract, as functions of a value and a draw.

Not from the code that they hold: a row of weights is listed and added up, bits are counted in text.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate

from tests.edge_ldp.laws import Uniform

Report = tuple[int, ...]
Model = Callable[[int, Uniform], Report]


def response(d: int, r_num: int, r_den: int) -> Callable[[int, Uniform], int]:
    """GRR by its list of weights: r_num for the input itself, r_den for each other code."""

    def sample(index: int, draw: Uniform) -> int:
        codes = [index, *(code for code in range(d) if code != index)]
        sums = accumulate([r_num] + [r_den] * (d - 1))
        u = draw(r_num + r_den * (d - 1))
        return next(code for code, above in zip(codes, sums, strict=True) if u < above)

    return sample


def odd(bits: int) -> int:
    """Return 1 where the number of ones is odd."""
    return f"{bits:b}".count("1") % 2


def height_of(size: int) -> int:
    """Return the height of the least power of two that holds so many."""
    return (size - 1).bit_length()


def grr_model(size: int, r_num: int, r_den: int) -> Model:
    """[code]: the value itself, or some other."""
    sample = response(size, r_num, r_den)
    return lambda value, draw: (sample(value, draw),)


def olh_model(g: int, prime: int, r_num: int, r_den: int) -> Model:
    """[a, b, code] of a random hash to 0..g-1."""
    sample = response(g, r_num, r_den)

    def perturb(value: int, draw: Uniform) -> Report:
        a = 1 + draw(prime - 1)
        b = draw(prime)
        return a, b, sample((a * value + b) % prime % g, draw)

    return perturb


def hrr_model(size: int, r_num: int, r_den: int) -> Model:
    """[row, bit] of a Hadamard matrix of the least power of two that holds `size`."""
    sample = response(2, r_num, r_den)

    def perturb(value: int, draw: Uniform) -> Report:
        row = draw(2 ** height_of(size))
        return row, sample(odd(row & value), draw)

    return perturb


def oue_model(size: int, r_num: int, r_den: int) -> Model:
    """One bit a category, in bytes: a half for the value's own, the less likely for another."""

    def perturb(value: int, draw: Uniform) -> Report:
        bits = 0
        for item in range(size):
            limit = r_num + r_den if item == value else 2 * r_den
            bits += (draw(2 * (r_num + r_den)) < limit) << item
        return tuple(bits.to_bytes(-(-size // 8), "little"))

    return perturb


def tree_model(fanout: int, levels: Sequence[Model]) -> Model:
    """[level, ...that level's report] of the value's node on a level drawn at random."""

    def perturb(value: int, draw: Uniform) -> Report:
        level = draw(len(levels))
        node = value // fanout ** (len(levels) - 1 - level)
        return (level, *levels[level](node, draw))

    return perturb


def haar_model(size: int, r_num: int, r_den: int) -> Model:
    """[level, row, bit]: one coefficient of the Haar tree through a Hadamard matrix."""
    sample = response(2, r_num, r_den)

    def perturb(value: int, draw: Uniform) -> Report:
        level = draw(height_of(size))
        node, rest = divmod(value, 2 ** (level + 1))
        row = draw(2 ** height_of(size) // 2 ** (level + 1))
        return level, row, sample(odd(row & node) ^ (rest >= 2**level), draw)

    return perturb
