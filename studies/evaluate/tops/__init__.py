"""The study `tops`: central-privacy streams, exact beside the published code's behaviour."""

from studies.evaluate.tops.study import STUDY

__all__ = ["STUDY"]
