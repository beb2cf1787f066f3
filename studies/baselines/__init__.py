"""Estimators that only comparisons need: what the papers set beside the square wave."""

from studies.baselines.cfo import cfo, prefers_grr
from studies.baselines.continuous import ContinuousWave, continuous_wave
from studies.baselines.grr import grr
from studies.baselines.haar import haar_hrr
from studies.baselines.hadamard import hrr_supports

__all__ = [
    "ContinuousWave",
    "cfo",
    "continuous_wave",
    "grr",
    "haar_hrr",
    "hrr_supports",
    "prefers_grr",
]
