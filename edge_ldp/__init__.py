"""Local differential privacy for meter readings: exact mechanisms, plans, frames, ledgers."""

from edge_ldp.device.errors import EdgeLdpError, EntropyError, ParameterError, WireError
from edge_ldp.mechanisms import (
    GeneralWave,
    Hybrid,
    Mechanism,
    Piecewise,
    SquareWave,
    StochasticRounding,
    Tuned,
    from_plan,
)
from edge_ldp.version import __version__

__all__ = [
    "EdgeLdpError",
    "EntropyError",
    "GeneralWave",
    "Hybrid",
    "Mechanism",
    "ParameterError",
    "Piecewise",
    "SquareWave",
    "StochasticRounding",
    "Tuned",
    "WireError",
    "__version__",
    "from_plan",
]
