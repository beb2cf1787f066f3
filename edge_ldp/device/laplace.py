"""Exact integer noise: discrete Laplace of an integer scale, alone or shared by a block of cells.

Pr[z] is proportional to e^(-|z|/b), or to e^(-max|z_j|/b) where k cells share it; every step is a
uniform integer and a comparison, no number above 2^64 is drawn from, and how many draws are taken
does not depend on what the noise is added to. Source: Canonne, Kamath, Steinke 2020 (arXiv
2004.00010), algorithms 1 and 2; the block: docs/methods.md, Period sums.
"""

from edge_ldp.device.errors import ParameterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from edge_ldp.device.draw import Uniform

MAX_SCALE = 1 << 48  # exclusive: a run of 2^16 flips would be needed to leave 64 bits
MAX_BLOCK = 96


def unit_exp(num: int, den: int, draw: "Uniform") -> bool:
    """Return True with probability e^(-num/den), 0 ≤ num ≤ den: the parity of a falling run."""
    k = 1
    while draw(den * k) < num:
        k += 1
    return k & 1 == 1


def integer_geometric(scale: int, draw: "Uniform") -> int:
    """Return k ≥ 0 with probability (1 - q)·q^k, q = e^(-1/scale); raises ParameterError."""
    if type(scale) is not int or not 1 <= scale < MAX_SCALE:
        raise ParameterError("scale", "an integer in 1..2**48-1")
    while True:
        fine = draw(scale)
        if unit_exp(fine, scale, draw):
            break
    while unit_exp(1, 1, draw):
        fine += scale
    return fine


def integer_laplace(scale: int, draw: "Uniform") -> int:
    """Return k with probability (1-q)/(1+q)·q^|k|, q = e^(-1/scale); raises ParameterError."""
    while True:
        size = integer_geometric(scale, draw)
        if not draw(2):
            return size
        if size:  # minus zero is drawn again, or zero would weigh double
            return -size


def block_laplace(scale: int, cells: int, draw: "Uniform") -> "tuple[int, ...]":
    """Return the noise of `cells` cells that share it: Pr[z] ∝ e^(-max|z_j|/scale).

    One cell gives `integer_laplace`. Else the radius r is a sum of cells + 1 geometric numbers,
    kept with probability Π (2r+1)/(2(r+i)), i = 1..cells, which makes its law proportional to
    (2r+1)^cells·q^r; the cells are uniform in -r..r.
    """
    if type(cells) is not int or not 1 <= cells <= MAX_BLOCK:
        raise ParameterError("cells", "an integer in 1..96")
    if cells == 1:
        return (integer_laplace(scale, draw),)
    while True:
        radius = 0
        for _ in range(cells + 1):
            radius += integer_geometric(scale, draw)
        if _is_kept(radius, cells, draw):
            return tuple([draw(2 * radius + 1) - radius for _ in range(cells)])


def _is_kept(radius: int, cells: int, draw: "Uniform") -> bool:
    return all(draw(2 * (radius + i)) <= 2 * radius for i in range(1, cells + 1))
