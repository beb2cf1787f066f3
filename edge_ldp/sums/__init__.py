"""Means and sums from counts, with intervals that assume nothing about the density (NumPy)."""

from edge_ldp.sums.counted import CodeCounts, Epoch, estimate
from edge_ldp.sums.forecast import (
    EVERY_SLOT,
    SHIPPED,
    Fleet,
    Forecast,
    ForecastRow,
    forecast,
    splits,
)
from edge_ldp.sums.functionals import (
    FunctionalEstimate,
    SurveyDesign,
    below,
    design_of,
    excess,
)
from edge_ldp.sums.law import Cut, Law, homes_law, law_in_time, law_of
from edge_ldp.sums.means import Interval, MeanEstimate, Means, estimate_mean, estimate_means
from edge_ldp.sums.shares import Band, Surveys, cdf_band, quantile_band, range_band, surveys_of
from edge_ldp.sums.width import Question, Width, half_width, tail_sds

__all__ = [
    "EVERY_SLOT",
    "SHIPPED",
    "Band",
    "CodeCounts",
    "Cut",
    "Epoch",
    "Fleet",
    "Forecast",
    "ForecastRow",
    "FunctionalEstimate",
    "Interval",
    "Law",
    "MeanEstimate",
    "Means",
    "Question",
    "SurveyDesign",
    "Surveys",
    "Width",
    "below",
    "cdf_band",
    "design_of",
    "estimate",
    "estimate_mean",
    "estimate_means",
    "excess",
    "forecast",
    "half_width",
    "homes_law",
    "law_in_time",
    "law_of",
    "quantile_band",
    "range_band",
    "splits",
    "surveys_of",
    "tail_sds",
]
