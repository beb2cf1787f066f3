"""Densities from counts of randomised codes (NumPy, SciPy)."""

from edge_ldp.estimate.ahead import Ahead, ahead
from edge_ldp.estimate.density import Density, density, edges_of
from edge_ldp.estimate.em import em, ems
from edge_ldp.estimate.held_out import EstimatorChoice, HeldOut, auto, held_out
from edge_ldp.estimate.hierarchy import hh, hh_admm
from edge_ldp.estimate.joint import Evidence, cells, joint
from edge_ldp.estimate.pure import Supports, norm_sub, olh_counts, supports

__all__ = [
    "Ahead",
    "Density",
    "EstimatorChoice",
    "Evidence",
    "HeldOut",
    "Supports",
    "ahead",
    "auto",
    "cells",
    "density",
    "edges_of",
    "em",
    "ems",
    "held_out",
    "hh",
    "hh_admm",
    "joint",
    "norm_sub",
    "olh_counts",
    "supports",
]
