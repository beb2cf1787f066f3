"""How far estimates are from the truth: the papers' metrics, for experiments on known data."""

from studies.evaluate.metrics import (
    Masses,
    SumErrors,
    ks,
    mean_error,
    quantile_error,
    query_pairs,
    range_error,
    variance_error,
    w1,
)

__all__ = [
    "Masses",
    "SumErrors",
    "ks",
    "mean_error",
    "quantile_error",
    "query_pairs",
    "range_error",
    "variance_error",
    "w1",
]
