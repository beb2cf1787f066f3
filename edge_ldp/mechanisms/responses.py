"""Tables of the tuned mechanism: their form in plans and files, and the ready ones shipped."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from edge_ldp.device.errors import ParameterError
from edge_ldp.mechanisms.fields import integer, integers
from edge_ldp.ratio import Epsilon, exact_epsilon

TABLES = Path(__file__).with_name("tables_v1.json")


@dataclass(frozen=True, slots=True)
class Response:
    """A table and what its codes stand for: code j decodes to outputs[j]/scale on [-1, 1]."""

    weights: tuple[tuple[int, ...], ...]
    outputs: tuple[int, ...]
    scale: int


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
