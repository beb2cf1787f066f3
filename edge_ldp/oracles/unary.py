"""OUE: every item's bit by itself. Source: Wang et al., USENIX Security 2017."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Self

from edge_ldp.checks import exact_integer, iterable, taking
from edge_ldp.device import oracle
from edge_ldp.device.errors import ParameterError
from edge_ldp.mechanisms.base import integer, integers
from edge_ldp.oracles.base import checked
from edge_ldp.oracles.support import Support
from edge_ldp.ratio import Epsilon, floor_ratio

MAX_LAW = 16  # items, of whose bits the law of all 2^16 reports can be listed


class Oue(Support):
    """OUE: the own bit is 1 with probability 1/2, any other with 1/(E + 1).

    Report: ⌈size/8⌉ bytes, bit k (byte k >> 3, bit k & 7) item k's; no public part. Variance
    4E/(E − 1)² for an item that is not the reporter's, whatever the size.
    """

    name = "oue"
    client: oracle.Oue

    @taking(size=exact_integer)
    def __init__(self, *, epsilon: Epsilon, size: int) -> None:
        ratio = floor_ratio(epsilon)
        super().__init__(oracle.oue(size, ratio.num, ratio.den))

    @classmethod
    def from_plan(cls, table: Mapping[str, object]) -> Self:
        """Return the oracle that `to_plan` described; raises ParameterError for the field."""
        r_num, r_den = integers("ratio", table.get("ratio"), 2)
        return cls.of(oracle.oue(integer(table, "size"), r_num, r_den))

    def to_plan(self) -> dict[str, object]:
        """Return the integers that define this oracle, ready for JSON."""
        ratio = [self.client.r_num, self.client.r_den]
        return {"mechanism": self.name, "size": self.size, "ratio": ratio}

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
