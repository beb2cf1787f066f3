"""Densities from counts of randomised codes."""

from aggregator.estimate.admm import hh_admm
from aggregator.estimate.ahead import ahead
from aggregator.estimate.auto import auto
from aggregator.estimate.density import Density
from aggregator.estimate.em import em, ems
from aggregator.estimate.held_out import held_out

__all__ = ["Density", "ahead", "auto", "em", "ems", "held_out", "hh_admm"]
