"""Estimators that only comparisons need: what the papers set beside the square wave."""

from studies.baselines.continuous import ContinuousWave, continuous_wave
from studies.baselines.grr import cfo, grr
from studies.baselines.haar import haar_hrr

__all__ = ["ContinuousWave", "cfo", "continuous_wave", "grr", "haar_hrr"]
