"""The mechanisms of both papers and the tuned one, as parameters of the one integer kernel."""

from edge_ldp.mechanisms.base import Mechanism
from edge_ldp.mechanisms.parse import from_plan
from edge_ldp.mechanisms.tuned import Response, Tuned
from edge_ldp.mechanisms.waved import GeneralWave, Hybrid, Piecewise, SquareWave, StochasticRounding

__all__ = [
    "GeneralWave",
    "Hybrid",
    "Mechanism",
    "Piecewise",
    "Response",
    "SquareWave",
    "StochasticRounding",
    "Tuned",
    "from_plan",
]
