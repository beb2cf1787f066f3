"""The study `sums`: coverage, width and error of means by horizon."""

from edge_ldp.evaluate.sums.study import STUDY

__all__ = ["STUDY"]
