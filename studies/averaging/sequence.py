"""What someone learns who collects many reports of a reading that never changes.

Two attacks and a limit. Averaging the decoded reports needs no knowledge and errs by √(variance/n).
Comparing likelihoods uses the whole law of the codes and does better wherever the law has edges: a
wave's edges show where the value lies. No unbiased estimate of a constant does better than
`Attack.limit`. Pure; nothing here is run on a device. Sources: docs/methods.md, Attacks; the bounds
of Cramér–Rao (derivatives) and of Chapman–Robbins (differences, Ann. Math. Stat. 22, 1951).
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import expm1, inf, log1p, sqrt
from typing import TYPE_CHECKING

from edge_ldp.device.errors import ParameterError
from edge_ldp.protocol.ledger import Window

if TYPE_CHECKING:
    from edge_ldp.mechanisms import Mechanism

DAY_SECONDS = 86_400
MAX_DAYS = 1 << 20  # 2,871 years
_HUGE = 700.0  # exp of it is still a float
_SPREAD = 1.2  # ratio of neighbouring distances that the limit is searched over


@dataclass(frozen=True, slots=True)
class Attack:
    """What n reports of one constant value tell of it; errors in the stream's unit.

    `variance`: of one decoded report, unit². `information`: Fisher's, of one report, unit⁻², by
    the exact law's step of one unit. `rivals`: (distance in units, ln(1 + χ²) of one report's law
    against the law of the value at that distance).
    """

    variance: float
    information: float
    rivals: tuple[tuple[int, float], ...]

    def averaging(self, reports: int) -> float:
        """Return the standard error of the mean of the decoded reports."""
        return sqrt(self.variance / reports)

    def cramer_rao(self, reports: int) -> float:
        """Return 1/√(n·information): what likelihoods come near to once n is large."""
        return 1 / sqrt(reports * self.information) if self.information else inf

    def limit(self, reports: int) -> float:
        """Return an error that no unbiased estimate of a whole number of units is below.

        The Chapman–Robbins bound: the largest distance/√((1 + χ²)ⁿ − 1) over the rivals. It holds
        for few reports and across edges, where Cramér and Rao's says nothing.
        """
        return max(
            distance / sqrt(expm1(gain)) if (gain := reports * one) < _HUGE else 0.0
            for distance, one in self.rivals
        )


def attack(mechanism: "Mechanism", value: int) -> Attack:
    """Return what reports of `value` tell; raises ParameterError unless low ≤ value ≤ high.

    Cost: about 100 exact laws, O(code_count) each.
    """
    low, high = mechanism.low, mechanism.high
    if not low <= value <= high:
        raise ParameterError("value", "low to high")
    law = mechanism.probabilities(value)
    others = [at for h in _distances(high - low) for at in (value - h, value + h)]
    rivals = {
        at: chi_square(law, mechanism.probabilities(at)) for at in others if low <= at <= high
    }
    nearest = [rivals[at] for at in (value - 1, value + 1) if at in rivals]
    return Attack(
        mechanism.variance(value),
        float(max(nearest)),
        tuple((abs(at - value), log1p(float(chi))) for at, chi in rivals.items() if chi),
    )


def chi_square(law: list[Fraction], other: list[Fraction]) -> Fraction:
    """Return Σ (other − law)²/law over the codes, exactly; both must have the same support."""
    pairs = [(p, q) for p, q in zip(law, other, strict=True) if p and p != q]  # few codes differ
    return sum(((q - p) ** 2 / p for p, q in pairs), start=Fraction(0))


def reports_in(window: Window, days: int, slot_seconds: int) -> int:
    """Return the most reports, all streams together, that the window allows in so many days."""
    return window.most_in(-(-days * DAY_SECONDS // slot_seconds))


def days_until(
    error: Callable[[int], float], goal: float, window: Window, slot_seconds: int
) -> int | None:
    """Return the first day after which `error(reports)` is at most `goal`; None if it never is.

    `error` falls with the number of reports; `goal` has its unit.
    """

    def reached(days: int) -> bool:
        return error(reports_in(window, days, slot_seconds)) <= goal

    if not reached(MAX_DAYS):
        return None
    before, days = 0, 1
    while not reached(days):
        before, days = days, 2 * days
    while days - before > 1:
        middle = (before + days) // 2
        before, days = (before, middle) if reached(middle) else (middle, days)
    return days


def _distances(span: int) -> list[int]:
    """Return distances from 1 to `span`, all small ones and then in equal ratios."""
    found = [1]
    while found[-1] < span:
        found.append(min(span, max(found[-1] + 1, int(found[-1] * _SPREAD))))
    return found
