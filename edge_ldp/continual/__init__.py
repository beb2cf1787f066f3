"""Streams under central differential privacy: thresholds, trees with exact noise, smoothers."""

from edge_ldp.continual.curator import Curator, CuratorState, Release, parse_state
from edge_ldp.continual.design import Account, Charge, Design, Renewal
from edge_ldp.continual.shape import Shape, best_pruning
from edge_ldp.continual.smoothers import Exponential, Mean, Median, Moving, Recent
from edge_ldp.continual.sums import RangeSum, Released
from edge_ldp.continual.systems import (
    Tops,
    cold_design,
    tops_design,
)
from edge_ldp.continual.threshold import Fixed, NoisyMax, Quantile

__all__ = [
    "Account",
    "Charge",
    "Curator",
    "CuratorState",
    "Design",
    "Exponential",
    "Fixed",
    "Mean",
    "Median",
    "Moving",
    "NoisyMax",
    "Quantile",
    "RangeSum",
    "Recent",
    "Release",
    "Released",
    "Renewal",
    "Shape",
    "Tops",
    "best_pruning",
    "cold_design",
    "parse_state",
    "tops_design",
]
