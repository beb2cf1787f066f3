"""The study `topl`: thresholds under local differential privacy, and what range sums they give."""

from studies.evaluate.topl.study import STUDY

__all__ = ["STUDY"]
