"""From a plan's table back to the oracle it describes."""

from collections.abc import Mapping

from edge_ldp.checks import mapping, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.oracles.base import Oracle
from edge_ldp.oracles.hadamard import HaarHrr, Hrr
from edge_ldp.oracles.hierarchy import Hierarchy
from edge_ldp.oracles.support import Grr, Olh, Oue

KINDS: dict[str, type[Oracle]] = {
    kind.name: kind for kind in (Grr, Olh, Hrr, Oue, Hierarchy, HaarHrr)
}


@taking(table=mapping())
def oracle_from_plan(table: Mapping[str, object]) -> Oracle:
    """Return the oracle that `to_plan` described; raises ParameterError naming the field."""
    kind = KINDS.get(str(table.get("mechanism")))
    if kind is None:
        raise ParameterError("mechanism", "one of " + ", ".join(sorted(KINDS)))
    return kind.from_plan(table)
