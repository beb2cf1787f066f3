"""Frequency oracles: how often each category occurs, from reports that say next to nothing."""

from edge_ldp.frequency.base import Oracle
from edge_ldp.frequency.haar import HaarHrr
from edge_ldp.frequency.hadamard import Hrr
from edge_ldp.frequency.hashing import Olh
from edge_ldp.frequency.hierarchy import Hierarchy
from edge_ldp.frequency.parse import oracle_from_plan
from edge_ldp.frequency.support import Grr
from edge_ldp.frequency.unary import Oue

__all__ = ["Grr", "HaarHrr", "Hierarchy", "Hrr", "Olh", "Oracle", "Oue", "oracle_from_plan"]
