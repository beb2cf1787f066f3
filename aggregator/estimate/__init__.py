"""Densities from counts of randomised codes."""

from aggregator.estimate.bootstrap import resample
from aggregator.estimate.density import Density
from aggregator.estimate.em import em, ems

__all__ = ["Density", "em", "ems", "resample"]
