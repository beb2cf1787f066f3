"""Means and sums from counts, with intervals that assume nothing about the density (NumPy)."""

from edge_ldp.sums.functionals import Design, Estimate, below, design_of, estimate, excess
from edge_ldp.sums.means import (
    CodeCounts,
    Epoch,
    Interval,
    MeanEstimate,
    Means,
    estimate_mean,
    estimate_means,
)
from edge_ldp.sums.width import Question, Width, half_width, tail_sds

__all__ = [
    "CodeCounts",
    "Design",
    "Epoch",
    "Estimate",
    "Interval",
    "MeanEstimate",
    "Means",
    "Question",
    "Width",
    "below",
    "design_of",
    "estimate",
    "estimate_mean",
    "estimate_means",
    "excess",
    "half_width",
    "tail_sds",
]
