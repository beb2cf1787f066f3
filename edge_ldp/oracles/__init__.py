"""Frequency oracles: how often each category occurs, from reports that say next to nothing."""

from edge_ldp.oracles.base import Oracle
from edge_ldp.oracles.hadamard import HaarHrr, Hrr
from edge_ldp.oracles.hierarchy import Hierarchy
from edge_ldp.oracles.parse import oracle_from_plan
from edge_ldp.oracles.support import Grr, Olh, Oue

__all__ = ["Grr", "HaarHrr", "Hierarchy", "Hrr", "Olh", "Oracle", "Oue", "oracle_from_plan"]
