"""A hard stop that the owner sets: so many reports, or so much ε in all; then silence for good.

What adds up over years is bounded by nothing else. The ledger's total counts, at every ratio that
was ever charged, and what sums cost; it is never refunded. A slot of a sum that runs counts from
when it is added. Sources: docs/faults.md, AGT-27; docs/privacy.md, What adds up.
"""

from fractions import Fraction
from typing import NamedTuple

from edge_ldp.lean_class import lean_class
from edge_ldp.protocol.ledger import Ledger, Window
from edge_ldp.ratio import Ratio

DAY_SECONDS = 86_400
WARN_DAYS = 30
REACHED = "lifetime reached"
_ROUNDING = 1e-9  # of a sum of logarithms, and far more than it can be off: never in our favour


class Beside(NamedTuple):
    """What sums cost beside reports: ε so far, what runs included, and ε a day at most."""

    epsilon: Fraction = Fraction(0)
    a_day: Fraction = Fraction(0)


@lean_class(frozen=True, slots=True)
class Lifetime:
    """At most so many `reports` ever, or at most ε in all; None: no such limit."""

    reports: int | None = None
    epsilon: float | None = None

    def left(self, ledger: Ledger | None, ratio: Ratio, beside: Fraction = Fraction(0)) -> int:
        """Return how many more reports may be made, each charged at the policy's ratio.

        `beside`: the ε of sums; they are no reports.
        """
        made = ledger.reports if ledger else 0
        spent = ledger.epsilon_spent if ledger else 0.0
        limits = []
        if self.reports is not None:
            limits.append(self.reports - made)
        if self.epsilon is not None:
            rest = self.epsilon - spent - float(beside)
            limits.append(int(rest / ratio.epsilon * (1 - _ROUNDING)))
        return max(0, min(limits))

    def rest(self, ledger: Ledger | None, beside: Fraction) -> float:
        """Return the ε that sums may still cost: beside what was spent, and what they cost."""
        most = float("inf") if self.epsilon is None else self.epsilon
        spent = ledger.epsilon_spent if ledger else 0.0
        return (most - spent - float(beside)) * (1 - _ROUNDING)


def days_left(left: int, window: Window, slot_seconds: int, beside_a_day: float = 0) -> int:
    """Return for how many whole days so many reports last at the window's pace.

    `beside_a_day`: what sums cost in a day, in reports.
    """
    if not beside_a_day:
        return left * window.period * slot_seconds // (window.reports * DAY_SECONDS)
    pace = window.reports * DAY_SECONDS / (window.period * slot_seconds)
    return int(left / (pace + beside_a_day))


def end_words(days: int, left: str, *, has_ended: bool) -> str:
    """Return what is to be said of the limit, or "" while it is far."""
    if has_ended:
        return f"{REACHED}: nothing is reported any more"
    if days > WARN_DAYS:
        return ""
    return f"the lifetime of reports ends in {WARN_DAYS} days or less: {left} are left"
