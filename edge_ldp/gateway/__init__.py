"""Densities without NumPy, so that a gateway can estimate alone."""

from edge_ldp.gateway.ems import Estimate, ems

__all__ = ["Estimate", "ems"]
