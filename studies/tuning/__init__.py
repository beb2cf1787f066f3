"""Optimal unbiased tables of responses, by linear programmes (SciPy)."""

from studies.tuning.tables import TuningError, certify_table, solve, tune

__all__ = [
    "TuningError",
    "certify_table",
    "solve",
    "tune",
]
