"""Local differential privacy for meter readings: exact mechanisms, plans, frames, ledgers."""

from edge_ldp.device.errors import EdgeLdpError, EntropyError, ParameterError, WireError
from edge_ldp.mechanisms import Hybrid, Mechanism, Piecewise, SquareWave, StochasticRounding

__all__ = [
    "EdgeLdpError",
    "EntropyError",
    "Hybrid",
    "Mechanism",
    "ParameterError",
    "Piecewise",
    "SquareWave",
    "StochasticRounding",
    "WireError",
]
