"""Means and sums from counts, with intervals that assume nothing about the density (NumPy)."""

from edge_ldp.sums.forecast import Question, Width, half_width, tail_sds
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
from edge_ldp.sums.shares import Band, Surveys, cdf_band, quantile_band, range_band, surveys_of

__all__ = [
    "Band",
    "CodeCounts",
    "Design",
    "Epoch",
    "Estimate",
    "Interval",
    "MeanEstimate",
    "Means",
    "Question",
    "Surveys",
    "Width",
    "below",
    "cdf_band",
    "design_of",
    "estimate",
    "estimate_mean",
    "estimate_means",
    "excess",
    "half_width",
    "quantile_band",
    "range_band",
    "surveys_of",
    "tail_sds",
]
