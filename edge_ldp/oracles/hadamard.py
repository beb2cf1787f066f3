"""HRR: one random entry of the value's column of a Hadamard matrix, by randomised response.

Rows of the matrix are orthogonal, so the entry of another item agrees with the value's in half of
the rows: estimates are unbiased exactly, with no collisions to correct. Source: [SW] §4.2.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Self

from edge_ldp.checks import exact_integer, iterable, taking
from edge_ldp.device import oracle
from edge_ldp.device.channel import Wave
from edge_ldp.mechanisms.fields import integer
from edge_ldp.oracles.base import OfWave, checked, one_wave
from edge_ldp.ratio import Epsilon, floor_ratio


class Hrr(OfWave):
    """HRR over `order` = the least power of two that is no less than the size ([SW] §4.2).

    Report (row, bit) with public part (row,). An item's decoded entry is ±gain, with
    gain = (E + 1)/(E − 1), so its variance is gain², less 1 for the reporter's own.
    """

    name = "hrr"
    client: oracle.Hrr

    @taking(size=exact_integer)
    def __init__(self, *, epsilon: Epsilon, size: int) -> None:
        ratio = floor_ratio(epsilon)
        super().__init__(oracle.hrr(size, ratio.num, ratio.den))

    @classmethod
    def from_plan(cls, table: Mapping[str, object]) -> Self:
        """Return the oracle that `to_plan` described; raises ParameterError for the field."""
        wave = one_wave(table, 2)
        return cls.of(oracle.hrr(integer(table, "size"), wave.r_num, wave.r_den))

    @property
    def report_length(self) -> int:
        """Two integers."""
        return 2

    @property
    def report_bits(self) -> int:
        """Bits of the row, and one."""
        return (self.client.order - 1).bit_length() + 1

    def split(self, report: Sequence[int]) -> tuple[tuple[int, ...], int]:
        """Return ((row,), bit); raises ParameterError for what is no report."""
        row, bit = checked("report", report, self.client.order, 2)
        return (row,), bit

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
