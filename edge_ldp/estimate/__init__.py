"""Densities without NumPy, so that a gateway can estimate alone."""

from edge_ldp.estimate.ems import Estimate, ems

__all__ = ["Estimate", "ems"]
