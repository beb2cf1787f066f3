"""A hard stop that the owner sets: so many reports, or so much ε in all; then silence for good.

What adds up over years is bounded by nothing else. The ledger's total counts, at every ratio that
was ever charged; it is never refunded. Sources: docs/faults.md, AGT-27;
docs/privacy.md, What adds up.
"""

from dataclasses import dataclass

from edge_ldp.protocol.ledger import Ledger, Window
from edge_ldp.ratio import Ratio

DAY_SECONDS = 86_400
WARN_DAYS = 30
REACHED = "lifetime reached"
_ROUNDING = 1e-9  # of a sum of logarithms, and far more than it can be off: never in our favour


@dataclass(frozen=True, slots=True)
class Lifetime:
    """At most so many `reports` ever, or at most ε in all; None: no such limit."""

    reports: int | None = None
    epsilon: float | None = None

    def left(self, ledger: Ledger | None, ratio: Ratio) -> int:
        """Return how many more reports may be made, each charged at the policy's ratio."""
        made = ledger.reports if ledger else 0
        spent = ledger.epsilon_spent if ledger else 0.0
        limits = []
        if self.reports is not None:
            limits.append(self.reports - made)
        if self.epsilon is not None:
            limits.append(int((self.epsilon - spent) / ratio.epsilon * (1 - _ROUNDING)))
        return max(0, min(limits))


def days_left(left: int, window: Window, slot_seconds: int) -> int:
    """Return for how many whole days so many reports last at the window's pace."""
    return left * window.period * slot_seconds // (window.reports * DAY_SECONDS)
