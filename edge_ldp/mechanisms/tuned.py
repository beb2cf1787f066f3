"""The tuned mechanism: an optimal unbiased table of 8 or 16 codes, for sums.

Source: docs/methods.md, Optimal tables.

Tables come from a linear programme (`edge-ldp tune`); ready ones for common ε ship with
the library, so a device needs no solver. Source: Chaudhuri, Guo, Rabbat, UAI 2022.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Self

from edge_ldp.checks import exact_integer, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.randomizer import LATTICE, randomizer
from edge_ldp.device.table import Table, table
from edge_ldp.mechanisms.base import Mechanism, bounds, inner, integer, integers
from edge_ldp.mechanisms.decoders import ListedDecoder
from edge_ldp.ratio import Epsilon, exact_epsilon

TABLES = Path(__file__).with_name("tables_v1.json")
MAX_BIAS = Fraction(1, 1 << 30)  # of the range


@dataclass(frozen=True, slots=True)
class Response:
    """A table and what its codes stand for: code j decodes to outputs[j]/scale on [-1, 1]."""

    weights: tuple[tuple[int, ...], ...]
    outputs: tuple[int, ...]
    scale: int


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

    def _shape(self) -> dict[str, object]:
        weights = [list(row) for row in self.response.weights]
        outputs, scale = list(self.response.outputs), self.response.scale
        return {"table": {"weights": weights, "outputs": outputs, "scale": scale}}

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


def ready_response(epsilon: Epsilon, bits: int) -> Response:
    """Return the ready table for an ε; raises ParameterError naming those there are."""
    found = _ready_tables().get((exact_epsilon(epsilon), bits))
    if found is None:
        known = sorted({e for e, of_bits in _ready_tables() if of_bits == bits})
        if not known:
            raise ParameterError("bits", "3 or 4")
        raise ParameterError(
            "epsilon",
            "one of the ready tables' "
            + ", ".join(f"{float(e):g}" for e in known)
            + " (`edge-ldp tune` makes one for any other)",
        )
    return found


def parse_response(fields: Mapping[str, object]) -> Response:
    """Return the table in a plan's or a file's fields; raises ParameterError."""
    rows = fields.get("weights")
    if not isinstance(rows, list):
        raise ParameterError("weights", "a list of rows of integers")
    return Response(
        tuple(tuple(integers("weights", row)) for row in rows),
        tuple(integers("outputs", fields.get("outputs"))),
        integer(fields, "scale"),
    )


@cache
def _ready_tables() -> dict[tuple[Fraction, int], Response]:
    rows = json.loads(TABLES.read_text())["tables"]
    return {(Fraction(row["epsilon"]), row["bits"]): parse_response(_whole(row)) for row in rows}


def _whole(half: Mapping[str, Any]) -> dict[str, object]:
    """Return a ready table, of which the file holds half: the other is its mirror image."""
    rows, outputs = half["weights"], half["outputs"]
    mirrored = [row[::-1] for row in reversed(rows)]
    has_middle = rows[-1] == mirrored[0]
    return {
        "weights": rows + mirrored[has_middle:],
        "outputs": [-y for y in reversed(outputs)] + outputs,
        "scale": half["scale"],
    }
