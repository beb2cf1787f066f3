"""The tuned mechanism: an optimal unbiased table of 8 or 16 codes, for sums.

Source: docs/methods.md, Optimal tables.

Tables come from a linear programme (`edge-ldp tune`); ready ones for common ε ship with
the library, so a device needs no solver. Source: Chaudhuri, Guo, Rabbat, UAI 2022.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Self

from edge_ldp.checks import exact_integer, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.randomizer import LATTICE, randomizer
from edge_ldp.device.table import Table, table
from edge_ldp.mechanisms.base import Mechanism
from edge_ldp.mechanisms.decoders import ListedDecoder
from edge_ldp.mechanisms.fields import bounds, inner
from edge_ldp.mechanisms.responses import Response, parse_response, ready_response
from edge_ldp.ratio import Epsilon

MAX_BIAS = Fraction(1, 1 << 30)  # of the range


class Tuned(Mechanism):
    """A table on a lattice of knots, unbiased to within 2^-30 of the range.

    `Tuned(epsilon=…)` takes a ready table; `Tuned.of` any other, which is checked: rising outputs
    and bias. Its largest ratio is found by comparing all weights.
    """

    name = "tuned"
    encoder = LATTICE

    @taking(low=exact_integer, high=exact_integer, bits=exact_integer)
    def __init__(self, *, epsilon: Epsilon, low: int, high: int, bits: int = 4) -> None:
        self._use(low, high, ready_response(epsilon, bits))

    @classmethod
    def of(cls, response: Response, *, low: int, high: int) -> Self:
        """Return the mechanism of a table; raises ParameterError for one that is not sound."""
        made = cls.__new__(cls)
        Tuned._use(made, low, high, response)
        return made

    @classmethod
    def from_plan(cls, table: Mapping[str, object]) -> Self:
        """Return the mechanism that `to_plan` described; raises ParameterError for the field."""
        low, high = bounds(table)
        return cls.of(parse_response(inner(table, "table")), low=low, high=high)

    def to_plan(self) -> dict[str, object]:
        """Return the integers that define this mechanism, ready for JSON."""
        return {
            "mechanism": self.name,
            "low": self.low,
            "high": self.high,
            "table": {
                "weights": [list(row) for row in self.response.weights],
                "outputs": list(self.response.outputs),
                "scale": self.response.scale,
            },
        }

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Tuned)
            and other.randomizer == self.randomizer
            and other.response == self.response
        )

    def __hash__(self) -> int:
        return hash((self.randomizer, self.response))

    @cached_property
    def decoders(self) -> tuple[ListedDecoder]:
        """What each code stands for, in knots."""
        half = Fraction(self.table.d - 1, 2)
        scale = self.response.scale
        return (
            ListedDecoder(self.table, tuple((1 + Fraction(y, scale)) * half for y in self.outputs)),
        )

    @property
    def outputs(self) -> tuple[int, ...]:
        """What the codes stand for, in units of 1/scale on [-1, 1]."""
        return self.response.outputs

    def _use(self, low: int, high: int, response: Response) -> None:
        self.response = response
        self.table: Table = table(response.weights)
        super().__init__(randomizer(low, high, LATTICE, (1, 1), (self.table,)))
        _check(response, self.table)
        if self.bias > MAX_BIAS:
            raise ParameterError("weights", "a bias of at most 2^-30 of the range")


def _check(response: Response, channel: Table) -> None:
    if response.scale < 1:
        raise ParameterError("scale", "1 or more")
    outputs: Sequence[int] = response.outputs
    if len(outputs) != channel.code_count or list(outputs) != sorted(set(outputs)):
        raise ParameterError("outputs", "one for each code, rising")
