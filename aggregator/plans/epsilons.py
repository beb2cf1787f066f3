"""Where a stream's plans begin to ask for another ε: whoever changed it, in whatever file.

Nothing is written for it: plans say it themselves. docs/faults.md, AGG-35.
"""

from collections.abc import Mapping
from itertools import pairwise
from math import log
from typing import NamedTuple

from edge_ldp.protocol.plan import Plan


class EpsilonChange(NamedTuple):
    """The first plan of another ε of one report, and both, to three figures."""

    stream: str
    epoch: int
    at_s: int
    before: float
    after: float

    def __str__(self) -> str:
        """Return what changed, without when."""
        return f"{self.stream}: ε of a report {self.before:g} → {self.after:g}, plan {self.epoch}"


def epsilon_changes(plans: Mapping[int, Plan]) -> tuple[EpsilonChange, ...]:
    """Return where a stream's plans (by epoch) change ε, oldest first."""
    ordered = [plans[epoch] for epoch in sorted(plans)]
    return tuple(
        EpsilonChange(after.stream, after.epoch, after.issued_s, was, now)
        for before, after in pairwise(ordered)
        if (was := _epsilon(before)) != (now := _epsilon(after))
    )


def _epsilon(plan: Plan) -> float:
    """Return ε to three figures: mechanisms stay below what was asked by their rounding."""
    ratio = max(plan.stream_mechanism.max_ratio, plan.survey_mechanism.max_ratio)
    return float(f"{log(ratio):.3g}")
