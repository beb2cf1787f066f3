"""From a plan's table back to the mechanism it describes."""

from collections.abc import Mapping

from edge_ldp.checks import mapping, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.mechanisms.base import Mechanism
from edge_ldp.mechanisms.tuned import Tuned
from edge_ldp.mechanisms.waved import GeneralWave, Hybrid, Piecewise, SquareWave, StochasticRounding

KINDS: dict[str, type[Mechanism]] = {
    kind.name: kind
    for kind in (SquareWave, GeneralWave, StochasticRounding, Piecewise, Hybrid, Tuned)
}


@taking(table=mapping())
def from_plan(table: Mapping[str, object]) -> Mechanism:
    """Return the mechanism that `to_plan` described; raises ParameterError naming the field."""
    kind = KINDS.get(str(table.get("mechanism")))
    if kind is None:
        raise ParameterError("mechanism", "one of " + ", ".join(sorted(KINDS)))
    return kind.from_plan(table)
