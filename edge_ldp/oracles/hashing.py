"""OLH: a random hash of the value, then randomised response, and the hash's exact collisions."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Self

from edge_ldp.checks import exact_integer, taking
from edge_ldp.device import oracle
from edge_ldp.device.channel import MAX_SIZE
from edge_ldp.device.errors import ParameterError
from edge_ldp.mechanisms.fields import integer
from edge_ldp.oracles.base import OfWave, checked, one_wave
from edge_ldp.oracles.support import Support
from edge_ldp.ratio import Epsilon, Ratio, floor_ratio


class Olh(Support, OfWave):
    """OLH: a random hash of the value to g = ⌊E⌋ + 1 numbers, then GRR on those ([SW] §2.1).

    Report (a, b, code) with public part (a, b): item x has the hash ((a·x + b) mod (2^31 − 1))
    mod g. Variance of an entry other than the value's own: about 4E/(E − 1)² where E is an integer,
    else below 9/8 of that, whatever the size. Raises ParameterError for ε above 11.09.
    """

    name = "olh"
    client: oracle.Olh

    @taking(size=exact_integer)
    def __init__(self, *, epsilon: Epsilon, size: int) -> None:
        ratio = floor_ratio(epsilon)
        super().__init__(oracle.olh(size, hash_range(ratio), ratio.num, ratio.den))

    @classmethod
    def from_plan(cls, table: Mapping[str, object]) -> Self:
        """Return the oracle that `to_plan` described; raises ParameterError for the field."""
        wave = one_wave(table)
        return cls.of(oracle.olh(integer(table, "size"), wave.d, wave.r_num, wave.r_den))

    @property
    def report_length(self) -> int:
        """Three integers."""
        return 3

    @property
    def report_bits(self) -> int:
        """Bits of a, b and the code."""
        return 2 * (self.client.prime - 1).bit_length() + (self.client.channel.d - 1).bit_length()

    @property
    def own(self) -> Fraction:
        """Probability that the code is the hash of the value."""
        return Fraction(self.client.channel.r_num, self.client.channel.total)

    @property
    def other(self) -> Fraction:
        """Probability that the code is the hash of a given other item, collisions included."""
        alike = collision(self.client.prime, self.client.channel.d)
        lie = Fraction(self.client.channel.r_den, self.client.channel.total)
        return alike * self.own + (1 - alike) * lie

    def split(self, report: Sequence[int]) -> tuple[tuple[int, ...], int]:
        """Return ((a, b), code); raises ParameterError for what is no report."""
        prime = self.client.prime
        a, b, code = checked("report", report, prime, prime, self.client.channel.d)
        if not a:
            raise ParameterError("report", "a multiplier of 1 or more")
        return (a, b), code

    def probabilities(self, value: int, public: Sequence[int]) -> list[Fraction]:
        """Return the exact probability of every code under `value`, given (a, b)."""
        self.check_value(value)
        (a, b), _ = self.split((*public, 0))
        hashed = (a * value + b) % self.client.prime % self.client.channel.d
        return self.law_of(hashed)

    def supported(self, report: Sequence[int]) -> list[int]:
        """Return the items whose hash is the code, rising."""
        (a, b), code = self.split(report)
        prime, g = self.client.prime, self.client.channel.d
        sums = range(b, b + a * self.size, a)  # a·x + b for every item x
        return [item for item, at in enumerate(sums) if at % prime % g == code]


def hash_range(ratio: Ratio) -> int:
    """Return OLH's g = ⌊E⌋ + 1; raises ParameterError where codes would not fit 16 bits."""
    g = ratio.num // ratio.den + 1
    if g > MAX_SIZE:
        raise ParameterError("epsilon", f"below ln {MAX_SIZE} for local hashing")
    return g


def collision(prime: int, g: int) -> Fraction:
    """Return the exact probability that two items have one hash, over all a ≥ 1 and b.

    Over the seeds, two different items are sent to every pair of different residues equally often,
    so count the ordered pairs that agree mod g: n·(n − 1) for each hash that n residues have.
    """
    few, longer = divmod(prime, g)  # `longer` hashes have few + 1 residues, the rest few
    alike = longer * (few + 1) * few + (g - longer) * few * (few - 1)
    return Fraction(alike, prime * (prime - 1))
