"""The study `sums`: coverage, width and error of means by horizon."""

from studies.evaluate.sums.study import STUDY

__all__ = ["STUDY"]
