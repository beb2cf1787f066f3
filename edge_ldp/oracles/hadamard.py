"""HRR: one random entry of the value's column of a Hadamard matrix, by randomised response.

HaarHRR is HRR on one random level of the Haar transform.

Rows of the matrix are orthogonal, so the entry of another item agrees with the value's in half of
the rows: estimates are unbiased exactly, with no collisions to correct. Source: [SW] §4.2.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TypeVar

from edge_ldp.checks import iterable, taking
from edge_ldp.device import oracle
from edge_ldp.device.channel import Wave
from edge_ldp.device.errors import ParameterError
from edge_ldp.oracles.base import OfWave, Tree, checked
from edge_ldp.ratio import Ratio


class Hrr(OfWave):
    """HRR over `order` = the least power of two that is no less than the size ([SW] §4.2).

    Report (row, bit) with public part (row,). An item's decoded entry is ±gain, with
    gain = (E + 1)/(E − 1), so its variance is gain², less 1 for the reporter's own.
    """

    name = "hrr"
    client: oracle.Hrr

    @staticmethod
    def _client(size: int, ratio: Ratio) -> oracle.Hrr:
        return oracle.hrr(size, ratio.num, ratio.den)

    @property
    def limits(self) -> tuple[int, int]:
        """Of the row, and of the bit."""
        return self.client.order, 2

    def probabilities(self, value: int, public: Sequence[int]) -> list[Fraction]:
        """Return the exact probability of bit 0 and bit 1 under `value`, given (row,)."""
        self.check_value(value)
        (row,) = checked("public", public, self.client.order)
        return self.law_of(oracle.parity(row & value))

    def decode(self, report: Sequence[int]) -> list[Fraction]:
        """Return ±gain for each item: plus where its entry of the row is the reported one."""
        (row,), bit = self.split(report)
        gain = gain_of(self.client.channel)
        return [sign(oracle.parity(row & item) ^ bit) * gain for item in range(self.size)]

    @taking(reports=iterable)
    def estimate(self, reports: Iterable[Sequence[int]]) -> list[float]:
        """Return each item's unbiased count among the reporters; raises ParameterError.

        Cost: O(1) a report, then one Walsh-Hadamard transform of integers, O(order · log order).
        """
        sums = [0] * self.client.order
        for report in reports:
            (row,), bit = self.split(report)
            sums[row] += sign(bit)
        return walsh_hadamard(sums, gain_of(self.client.channel))[: self.size]

    def variance(self, value: int, item: int) -> Fraction:
        """Return the exact variance of one item's entry in `decode(perturb(value))`."""
        self.check_value(value)
        self.check_value(item)
        return gain_of(self.client.channel) ** 2 - (value == item)

    @property
    def worst_variance(self) -> float:
        """Variance of the entry of any item that is not the reporter's."""
        return float(gain_of(self.client.channel) ** 2)

    @property
    def influence(self) -> float:
        """Largest entry of any decoded report: what one liar can add to an item's count."""
        return float(gain_of(self.client.channel))


def gain_of(wave: Wave) -> Fraction:
    """Return (E + 1)/(E − 1): times this, a sign reported through the wave is unbiased."""
    return Fraction(wave.total, wave.r_num - wave.r_den)


def sign(bit: int) -> int:
    """Return 1 for 0 and -1 for 1."""
    return 1 - 2 * bit


def walsh_hadamard(sums: Sequence[int], gain: Fraction) -> list[float]:
    """Return gain times the Walsh-Hadamard transform: entry x is Σ over rows of ±sums[row]."""
    entries = list(sums)
    step = 1
    while step < len(entries):
        for start in range(0, len(entries), 2 * step):
            for at in range(start, start + step):
                one, two = entries[at], entries[at + step]
                entries[at], entries[at + step] = one + two, one - two
        step *= 2
    return [entry * gain.numerator / gain.denominator for entry in entries]


Number = TypeVar("Number", float, Fraction)


class HaarHrr(OfWave, Tree):
    """HaarHRR: HRR on one level of the Haar transform over 2^height ≥ size categories ([SW] §4.2).

    Report (level, row, bit) with public part (level, row). A node of level l has 2^(l+1) categories
    below it; entries of `decode_levels` estimate its coefficient: 1 for a value in its left half,
    -1 in its right half, 0 elsewhere (divided by 2^((l+1)/2), [SW]'s c_a).
    """

    name = "haar-hrr"
    client: oracle.HaarHrr

    @staticmethod
    def _client(size: int, ratio: Ratio) -> oracle.HaarHrr:
        return oracle.haar_hrr(size, ratio.num, ratio.den)

    @property
    def limits(self) -> tuple[int, int, int]:
        """Of the level, of a row of the largest, and of the bit."""
        return self.client.height, self.nodes[0], 2

    @property
    def nodes(self) -> list[int]:
        """How many nodes each level has."""
        height = self.client.height
        return [1 << (height - 1 - level) for level in range(height)]

    @property
    def scale(self) -> Fraction:
        """Size of a decoded node: number of levels times (E + 1)/(E − 1)."""
        return self.client.height * gain_of(self.client.channel)

    def split(self, report: Sequence[int]) -> tuple[tuple[int, ...], int]:
        """Return ((level, row), bit); raises ParameterError for what is no report."""
        (level, row), bit = super().split(report)
        if row >= self.nodes[level]:
            raise ParameterError("report", "a row below the number of the level's nodes")
        return (level, row), bit

    def probabilities(self, value: int, public: Sequence[int]) -> list[Fraction]:
        """Return the exact probability of bit 0 and bit 1 under `value`, given (level, row)."""
        self.check_value(value)
        (level, row), _ = self.split((*public, 0))
        half = value >> level
        return self.law_of(oracle.parity(row & (half >> 1)) ^ (half & 1))

    def decode_levels(self, report: Sequence[int]) -> list[list[Fraction]]:
        """Return [level][node]: the unbiased estimate of the value's coefficient of each node."""
        (chosen, row), bit = self.split(report)
        levels = [[Fraction(0)] * count for count in self.nodes]
        levels[chosen] = [
            sign(oracle.parity(row & node) ^ bit) * self.scale for node in range(self.nodes[chosen])
        ]
        return levels

    @taking(reports=iterable)
    def estimate_levels(self, reports: Iterable[Sequence[int]]) -> list[list[float]]:
        """Return [level][node]: unbiased count of reporters in the left half, less the right."""
        return self._estimate_levels(reports)[1]

    def node_variance(self, value: int, level: int, node: int) -> Fraction:
        """Return the exact variance of one node's entry in `decode_levels(perturb(value))`."""
        self.check_value(value)
        (level,) = checked("level", [level], self.client.height)
        (node,) = checked("node", [node], self.nodes[level])
        return self.scale**2 / self.client.height - (value >> (level + 1) == node)

    def decode(self, report: Sequence[int]) -> list[Fraction]:
        """Return the inverse Haar transform of `decode_levels`, one entry for each item."""
        return halved(Fraction(1), self.decode_levels(report))[: self.size]

    @taking(reports=iterable)
    def estimate(self, reports: Iterable[Sequence[int]]) -> list[float]:
        """Return each item's unbiased count among the reporters; raises ParameterError.

        Cost: O(1) a report, then O(size · log size).
        """
        count, levels = self._estimate_levels(reports)
        return halved(float(count), levels)[: self.size]

    def variance(self, value: int, item: int) -> Fraction:
        """Return the exact variance of one item's entry in `decode(perturb(value))`.

        The entry is 2^-height ± scale/2^(l+1), each level l as likely as the others.
        """
        self.check_value(value)
        self.check_value(item)
        least = Fraction(1, 1 << self.client.height)
        square = self.scale**2 / self.client.height * (1 - least**2) / 3
        return square - ((value == item) - least) ** 2

    @property
    def worst_variance(self) -> float:
        """Variance of the entry of any item that is not the reporter's."""
        return float(self.variance(0, 1))

    @property
    def influence(self) -> float:
        """Largest entry of any decoded report: what one liar can add to an item's count."""
        return float(Fraction(1, 1 << self.client.height) + self.scale / 2)

    def _estimate_levels(self, reports: Iterable[Sequence[int]]) -> tuple[int, list[list[float]]]:
        count = 0
        sums = [[0] * nodes for nodes in self.nodes]
        for report in reports:
            (level, row), bit = self.split(report)
            sums[level][row] += sign(bit)
            count += 1
        return count, [walsh_hadamard(level, self.scale) for level in sums]


def halved(total: Number, levels: Sequence[Sequence[Number]]) -> list[Number]:
    """Return the items whose sum is `total` and whose left less right halves are `levels`.

    Top down: a node's halves are (its sum ± its coefficient)/2.
    """
    sums = [total]
    for differences in reversed(levels):
        pairs = zip(sums, differences, strict=True)
        sums = [half for s, d in pairs for half in ((s + d) / 2, (s - d) / 2)]
    return sums
