"""The study `sums --mode sums`: coverage, width and error of homes' own sums."""

from studies.evaluate.period_sums.study import STUDY

__all__ = ["STUDY"]
