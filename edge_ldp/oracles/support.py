"""Oracles whose reports support some items: GRR, OLH, and OUE, every item's bit by itself.

A report of a value supports the value with probability `own` and any other item with `other`, so
(supported − other) / (own − other) is unbiased. Sources: [SW] §2.1; the estimator for such "pure"
protocols, and OUE, are of Wang et al., USENIX Security 2017.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Self

from edge_ldp.checks import iterable, taking
from edge_ldp.device import oracle
from edge_ldp.device.channel import MAX_SIZE
from edge_ldp.device.errors import ParameterError
from edge_ldp.mechanisms.base import integer, integers
from edge_ldp.oracles.base import OfWave, Oracle, checked, one_wave
from edge_ldp.ratio import Ratio


class Support(Oracle):
    """An oracle of the probabilities `own` and `other` with which a report supports an item."""

    @property
    @abstractmethod
    def own(self) -> Fraction:
        """Probability that a report supports the reporter's own item."""

    @property
    @abstractmethod
    def other(self) -> Fraction:
        """Probability that it supports a given other item, over public part and code."""

    @abstractmethod
    def supported(self, report: Sequence[int]) -> list[int]:
        """Return the items that a report supports; raises ParameterError for what is none."""

    def decode(self, report: Sequence[int]) -> list[Fraction]:
        """Return (supported − other) / (own − other) for each item."""
        entries = [-self.other / (self.own - self.other)] * self.size
        for item in self.supported(report):
            entries[item] += 1 / (self.own - self.other)
        return entries

    @taking(reports=iterable)
    def estimate(self, reports: Iterable[Sequence[int]]) -> list[float]:
        """Return each item's unbiased count among the reporters; raises ParameterError.

        Cost: for each report O(1) (GRR), O(size) hashes (OLH) or O(size/8) (OUE).
        """
        count, supports = self.tally(reports)
        other, scale = self.other, 1 / (self.own - self.other)
        times = scale.numerator * other.denominator
        offset = scale.numerator * other.numerator * count
        below = scale.denominator * other.denominator
        return [(times * support - offset) / below for support in supports]

    @taking(reports=iterable)
    def tally(self, reports: Iterable[Sequence[int]]) -> tuple[int, list[int]]:
        """Return (how many reports, how many of them support each item)."""
        count, supports = 0, [0] * self.size
        for report in reports:
            count += 1
            for item in self.supported(report):
                supports[item] += 1
        return count, supports

    def variance(self, value: int, item: int) -> Fraction:
        """Return the exact variance of one item's entry in `decode(perturb(value))`."""
        self.check_value(value)
        self.check_value(item)
        share = self.own if value == item else self.other
        return share * (1 - share) / (self.own - self.other) ** 2

    @property
    def worst_variance(self) -> float:
        """The larger variance of the own item's entry and of another's."""
        return float(max(self.variance(0, 0), self.variance(0, 1)))

    @property
    def influence(self) -> float:
        """Largest entry of any decoded report: what one liar can add to an item's count."""
        return float(max(1 - self.other, self.other) / (self.own - self.other))


class Grr(Support, OfWave):
    """GRR: the value itself with probability E/(E + size − 1), else any other ([SW] §2.1).

    Report (code,), no public part. Variance, for an item that is not the reporter's:
    (E + size − 2)/(E − 1)².
    """

    name = "grr"
    client: oracle.Grr

    @staticmethod
    def _client(size: int, ratio: Ratio) -> oracle.Grr:
        return oracle.grr(size, ratio.num, ratio.den)

    @property
    def limits(self) -> tuple[int]:
        """Of the code."""
        return (self.size,)

    @property
    def own(self) -> Fraction:
        """Probability of the value itself."""
        return Fraction(self.client.channel.r_num, self.client.channel.total)

    @property
    def other(self) -> Fraction:
        """Probability of a given other item."""
        return Fraction(self.client.channel.r_den, self.client.channel.total)

    def probabilities(self, value: int, public: Sequence[int] = ()) -> list[Fraction]:
        """Return the exact probability of every code under `value`; nothing is public."""
        self.check_value(value)
        checked("public", public)
        return self.law_of(value)

    def supported(self, report: Sequence[int]) -> list[int]:
        """Return the code, as the one item that the report supports."""
        return [self.split(report)[1]]


class Olh(Support, OfWave):
    """OLH: a random hash of the value to g = ⌊E⌋ + 1 numbers, then GRR on those ([SW] §2.1).

    Report (a, b, code) with public part (a, b): item x has the hash ((a·x + b) mod (2^31 − 1))
    mod g. Variance of an entry other than the value's own: about 4E/(E − 1)² where E is an integer,
    else below 9/8 of that, whatever the size. Raises ParameterError for ε above 11.09.
    """

    name = "olh"
    client: oracle.Olh

    @staticmethod
    def _client(size: int, ratio: Ratio) -> oracle.Olh:
        return oracle.olh(size, hash_range(ratio), ratio.num, ratio.den)

    @classmethod
    def from_plan(cls, table: Mapping[str, object]) -> Self:
        """Return the oracle that `to_plan` described; raises ParameterError for the field."""
        wave = one_wave(table)
        return cls.of(oracle.olh(integer(table, "size"), wave.d, wave.r_num, wave.r_den))

    @property
    def limits(self) -> tuple[int, int, int]:
        """Of a, b and the code."""
        return self.client.prime, self.client.prime, self.client.channel.d

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
        (a, b), code = super().split(report)
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


MAX_LAW = 16  # items, of whose bits the law of all 2^16 reports can be listed


class Oue(Support):
    """OUE: the own bit is 1 with probability 1/2, any other with 1/(E + 1).

    Report: ⌈size/8⌉ bytes, bit k (byte k >> 3, bit k & 7) item k's; no public part. Variance
    4E/(E − 1)² for an item that is not the reporter's, whatever the size.
    """

    name = "oue"
    client: oracle.Oue

    @staticmethod
    def _client(size: int, ratio: Ratio) -> oracle.Oue:
        return oracle.oue(size, ratio.num, ratio.den)

    @classmethod
    def from_plan(cls, table: Mapping[str, object]) -> Self:
        """Return the oracle that `to_plan` described; raises ParameterError for the field."""
        r_num, r_den = integers("ratio", table.get("ratio"), 2)
        return cls.of(oracle.oue(integer(table, "size"), r_num, r_den))

    def _shape(self) -> dict[str, object]:
        return {"ratio": [self.client.r_num, self.client.r_den]}

    @property
    def max_ratio(self) -> Fraction:
        """Largest factor between two values' probabilities of one report, exactly.

        Two bits differ: E·1/2 against 1/2 for a set one, and 1 for a clear one, times one another.
        """
        return Fraction(self.client.r_num, self.client.r_den)

    @property
    def report_length(self) -> int:
        """Bytes of a report."""
        return (self.size + 7) // 8

    @property
    def report_bits(self) -> int:
        """One bit an item."""
        return self.size

    @property
    def own(self) -> Fraction:
        """Probability that the own item's bit is set."""
        return Fraction(1, 2)

    @property
    def other(self) -> Fraction:
        """Probability that a given other item's bit is set."""
        return Fraction(self.client.r_den, self.client.r_num + self.client.r_den)

    def split(self, report: Sequence[int]) -> tuple[tuple[int, ...], int]:
        """Return ((), the bits as one little-endian integer); raises ParameterError."""
        if not isinstance(report, bytes):
            report = bytes(checked("report", report, *[256] * self.report_length))
        code = int.from_bytes(report, "little")
        if len(report) != self.report_length or code >> self.size:
            raise ParameterError("report", f"{self.report_length} bytes, {self.size} bits of them")
        return (), code

    def probabilities(self, value: int, public: Sequence[int] = ()) -> list[Fraction]:
        """Return the exact probability of every code, 0..2^size−1, under `value`.

        Raises ParameterError for more than 16 items: one bit's law is `own` or `other`.
        """
        self.check_value(value)
        checked("public", public)
        if self.size > MAX_LAW:
            raise ParameterError("size", f"at most {MAX_LAW} for the law of whole reports")
        law = [Fraction(1)]
        for item in range(self.size):
            share = self.own if item == value else self.other
            law = [p * (1 - share) for p in law] + [p * share for p in law]
        return law

    def supported(self, report: Sequence[int]) -> list[int]:
        """Return the items whose bits are set, rising."""
        _, code = self.split(report)
        return [item for item in range(self.size) if code >> item & 1]

    @taking(reports=iterable)
    def tally(self, reports: Iterable[Sequence[int]]) -> tuple[int, list[int]]:
        """Return (how many reports, how many of them support each item), by counting bytes."""
        count = 0
        columns = [[0] * 256 for _ in range(self.report_length)]
        for report in reports:
            self.split(report)
            count += 1
            for column, byte in zip(columns, report, strict=True):
                column[byte] += 1
        places = ((columns[item >> 3], item & 7) for item in range(self.size))
        return count, [
            sum(times for byte, times in enumerate(column) if byte >> bit & 1)
            for column, bit in places
        ]
