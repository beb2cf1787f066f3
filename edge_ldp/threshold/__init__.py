"""θ, the truncation threshold of stream reports: the papers' rules and ours (NumPy)."""

from edge_ldp.estimate.density import bias, mean_square
from edge_ldp.threshold.choice import Aim, Choice, Outlook, outlook
from edge_ldp.threshold.published import Cost, Threshold, choose_threshold, prune

__all__ = [
    "Aim",
    "Choice",
    "Cost",
    "Outlook",
    "Threshold",
    "bias",
    "choose_threshold",
    "mean_square",
    "outlook",
    "prune",
]
