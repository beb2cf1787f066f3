"""Adaptive θ: from counted reports to the next plan's θ and survey."""

from aggregator.adaptive.decide import (
    Decision,
    Setting,
    State,
    first_survey,
    observe,
    worth_it,
)
from aggregator.adaptive.regret import Aim

__all__ = ["Aim", "Decision", "Setting", "State", "first_survey", "observe", "worth_it"]
