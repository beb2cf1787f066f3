"""The study `sw`: figures 2 to 7 of the square-wave paper, and newer estimators beside them."""

from studies.evaluate.sw.study import STUDY

__all__ = ["STUDY"]
