"""Bias and worst variance of a mechanism, from its decoded codes and the laws of its channels.

Everything lies on [-1, 1], the scale of the papers, as integers over one denominator a branch.
Sources: [ToPS] E.2 (variance over the interval), docs/design.md, The kernel (lattice, buckets).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import lcm

from edge_ldp.certify.channels import ChannelProof
from edge_ldp.certify.laws import row_moments
from edge_ldp.device.randomizer import BUCKETS
from edge_ldp.mechanisms import Mechanism
from edge_ldp.ratio import STEPS, ceil_to

_GRID = 1 << 96  # mean squares are rounded up to multiples of 1/GRID first


@dataclass(frozen=True, slots=True)
class DecodedBranch:
    """One branch: code j decodes to outputs[j]/scale, input i stands for places[i]/unit."""

    coin: Fraction
    proof: ChannelProof
    outputs: tuple[int, ...]
    scale: int
    places: Sequence[int]
    unit: int

    def moments(self) -> list[tuple[int, int]] | None:
        """Return Σ weight·output and Σ weight·output² for every input, or None: see Law."""
        return self.proof.law.moments(self.outputs)

    def is_as_defined(self, moments: list[tuple[int, int]]) -> bool:
        """Say whether moments are those by definition in every row that was read."""
        law = self.proof.law
        return all(row_moments(law.row(i), self.outputs) == moments[i] for i in self.proof.rows)

    def bias(self, moments: list[tuple[int, int]]) -> Fraction:
        """Return the largest error of an input's mean, as a share of the range."""
        total = self.proof.channel.total * self.scale
        means = zip(moments, self.places, strict=True)
        worst = max(abs(mean * self.unit - place * total) for (mean, _), place in means)
        return Fraction(worst, 2 * total * self.unit)


def branches_of(mechanism: Mechanism, proofs: Sequence[ChannelProof]) -> list[DecodedBranch]:
    """Return the branches with what every code decodes to; also those that never serve."""
    made = []
    for (coin, first, channel), proof in zip(mechanism.branches, proofs, strict=True):
        span = mechanism.high - mechanism.low
        decoded = (mechanism.decode_exact(first + j) for j in range(channel.code_count))
        # 2 · (y - low) / span - 1 of every code's y, as one fraction
        outputs = [
            Fraction(
                2 * y.numerator - (2 * mechanism.low + span) * y.denominator, span * y.denominator
            )
            for y in decoded
        ]
        scale = lcm(*{y.denominator for y in outputs})
        integers = tuple(y.numerator * (scale // y.denominator) for y in outputs)
        places, unit = _places(mechanism.encoder, span, channel.d)
        made.append(DecodedBranch(coin, proof, integers, scale, places, unit))
    return made


def influence_of(branches: Sequence[DecodedBranch]) -> Fraction:
    """Return the largest decoded value on [-1, 1] of a branch that serves."""
    return max(Fraction(max(map(abs, b.outputs)), b.scale) for b in branches if b.coin)


def worst_of_buckets(branch: DecodedBranch, moments: list[tuple[int, int]]) -> Fraction:
    """Return the largest variance of an input's decoded reports, rounded up."""
    total = branch.proof.channel.total
    worst = max(second * total - first * first for first, second in moments)
    return ceil_to(Fraction(worst, (total * branch.scale) ** 2), STEPS)


def worst_on_lattice(
    branches: Sequence[DecodedBranch], moments: Sequence[list[tuple[int, int]]], bias: Fraction
) -> Fraction:
    """Return the largest variance over the whole interval, rounded up.

    A value lies between two points of each lattice, so the mean square is linear between
    neighbouring points of all of them; less the value's square it is a parabola there. A bias of
    at most `bias` of the range, 2·bias on [-1, 1], adds at most twice that.
    """
    grid = lcm(*(len(part) - 1 for part in moments))
    points = sorted({i * (grid // (len(p) - 1)) for p in moments for i in range(len(p))})
    squares = [0] * len(points)
    for branch, part in zip(branches, moments, strict=True):
        for at, square in enumerate(_squares(branch, part, points, grid)):
            squares[at] += square
    cells = zip(pairwise(points), pairwise(squares), strict=True)
    worst = max(_worst_in_cell(ends, values, grid) for ends, values in cells)
    return ceil_to(Fraction(worst, _GRID) + 4 * bias, STEPS)


def _places(encoder: int, span: int, d: int) -> tuple[range, int]:
    """Return (numerators, denominator) of the places of inputs on [-1, 1]: knots or centres."""
    if encoder == BUCKETS:
        first = span + 1 - d - d * span
        return range(first, first + d * 2 * (span + 1), 2 * (span + 1)), d * span
    return range(1 - d, d + 1, 2), d - 1


def _squares(
    branch: DecodedBranch, part: Sequence[tuple[int, int]], points: Sequence[int], grid: int
) -> Iterator[int]:
    """Yield coin · mean square at each point of the common grid, in units of 1/GRID, rounded up."""
    step = grid // (len(part) - 1)
    over = branch.coin.denominator * branch.proof.channel.total * branch.scale**2 * step
    for point in points:
        index, rest = divmod(point, step)
        here = part[index][1] * (step - rest) + (part[index + 1][1] * rest if rest else 0)
        yield -(-here * branch.coin.numerator * _GRID // over)


def _worst_in_cell(ends: tuple[int, int], squares: tuple[int, int], grid: int) -> int:
    """Return the top of a + s·(x − x₀) − x² between two points, in 1/GRID; x = 2·end/grid − 1.

    With x in units of 1/unit the slope is 2·half, and the top lies at `half` or at an end.
    """
    width = ends[1] - ends[0]
    unit = 4 * _GRID * width * grid
    scale = unit // grid
    half = (squares[1] - squares[0]) * grid * grid
    first, last = ((2 * end - grid) * scale for end in ends)
    top = min(max(half, first), last)
    over = squares[0] * (unit // _GRID) * unit + 2 * half * (top - first) - top * top
    return -(-over * _GRID // (unit * unit))
