"""What one home gives away of its habits, by what leaves it: measured, for texts and choices.

How often who knows a home's usual law says rightly which of two months has a habit (0.50: a guess),
over 40 real homes, good to 0.015; readings in W, a window of 97 quarter hours. Of gas by the hour
over 40 made-up homes, in dm³.
Source: docs/results/prying.md.
"""

from typing import NamedTuple

HABITS = (
    "a week away",
    "a charger at known times",
    "a charger, some nights",
    "a heat pump",
    "900 W more",
)
GAS_HABITS = ("a week away", "a night setback", "nobody in on workdays")


class HabitLeak(NamedTuple):
    """What was measured: `found` by (GAS_)HABITS; a `days` of 0 is of reports, and has no scale."""

    days: int
    cells: int
    block: int
    ceiling: int
    scale: int
    found: tuple[float, ...]

    @property
    def by_habit(self) -> dict[str, float]:
        """`found`, by what was looked for."""
        return dict(zip(GAS_HABITS if self in MEASURED_GAS else HABITS, self.found, strict=True))

    def is_no_more_than(self, other: "HabitLeak") -> bool:
        """Say whether no habit is found by more than SLACK better than in another."""
        pairs = zip(self.found, other.found, strict=True)
        return all(one <= two + SLACK for one, two in pairs)


SLACK = 0.02
REPORTS = (8, 97)  # of ε 1
SLOTS_A_DAY = 96
MEASURED = (
    HabitLeak(0, 0, 0, 43_470, 0, (0.75, 0.93, 0.64, 0.77, 0.84)),
    HabitLeak(0, 0, 0, 17_250, 0, (0.84, 0.98, 0.71, 0.88, 0.95)),
    HabitLeak(1, 1, 1, 43_470, 527_074, (0.67, 0.64, 0.58, 0.68, 0.71)),
    HabitLeak(1, 1, 1, 17_250, 209_157, (0.81, 0.82, 0.68, 0.87, 0.91)),
    HabitLeak(7, 1, 1, 43_470, 527_074, (0.79, 0.82, 0.68, 0.86, 0.91)),
    HabitLeak(7, 1, 1, 43_470, 843_318, (0.72, 0.73, 0.62, 0.76, 0.81)),
    HabitLeak(7, 1, 1, 43_470, 1_054_148, (0.68, 0.69, 0.60, 0.72, 0.77)),
    HabitLeak(7, 1, 1, 17_250, 209_157, (0.90, 0.98, 0.84, 0.99, 1.00)),
    HabitLeak(7, 1, 1, 17_250, 418_313, (0.81, 0.88, 0.71, 0.91, 0.95)),
    HabitLeak(7, 1, 1, 17_250, 557_750, (0.76, 0.82, 0.67, 0.85, 0.90)),
    HabitLeak(28, 1, 1, 43_470, 527_074, (0.79, 0.94, 0.79, 0.96, 0.98)),
    HabitLeak(28, 1, 1, 43_470, 1_054_148, (0.68, 0.82, 0.67, 0.84, 0.89)),
    HabitLeak(28, 1, 1, 43_470, 2_108_295, (0.61, 0.68, 0.59, 0.71, 0.75)),
    HabitLeak(28, 1, 1, 17_250, 209_157, (0.91, 1.00, 0.96, 1.00, 1.00)),
    HabitLeak(28, 1, 1, 17_250, 418_313, (0.82, 0.97, 0.86, 0.99, 1.00)),
    HabitLeak(28, 1, 1, 17_250, 836_625, (0.72, 0.86, 0.73, 0.89, 0.93)),
    HabitLeak(1, 4, 1, 43_470, 527_074, (0.60, 0.64, 0.56, 0.58, 0.60)),
    HabitLeak(1, 4, 1, 17_250, 209_157, (0.68, 0.84, 0.63, 0.70, 0.78)),
    HabitLeak(1, 6, 1, 43_470, 527_074, (0.57, 0.64, 0.56, 0.59, 0.61)),
    HabitLeak(1, 6, 1, 17_250, 209_157, (0.68, 0.84, 0.63, 0.69, 0.71)),
    HabitLeak(1, 24, 1, 43_470, 527_074, (0.54, 0.63, 0.51, 0.56, 0.56)),
    HabitLeak(1, 24, 1, 17_250, 209_157, (0.58, 0.76, 0.56, 0.61, 0.60)),
    HabitLeak(7, 4, 1, 43_470, 527_074, (0.66, 0.83, 0.65, 0.73, 0.78)),
    HabitLeak(7, 4, 1, 17_250, 209_157, (0.85, 0.99, 0.79, 0.91, 0.96)),
    HabitLeak(7, 4, 1, 17_250, 334_650, (0.77, 0.94, 0.71, 0.81, 0.87)),
    HabitLeak(7, 6, 1, 43_470, 527_074, (0.67, 0.83, 0.65, 0.69, 0.72)),
    HabitLeak(7, 6, 1, 17_250, 209_157, (0.81, 0.99, 0.81, 0.87, 0.93)),
    HabitLeak(7, 6, 1, 17_250, 334_650, (0.74, 0.94, 0.72, 0.77, 0.82)),
    HabitLeak(7, 24, 1, 43_470, 527_074, (0.60, 0.76, 0.58, 0.58, 0.63)),
    HabitLeak(7, 24, 1, 17_250, 209_157, (0.74, 0.96, 0.66, 0.73, 0.79)),
    HabitLeak(7, 24, 4, 43_470, 152_145, (0.68, 0.89, 0.60, 0.67, 0.70)),
    HabitLeak(7, 24, 4, 17_250, 60_375, (0.79, 0.99, 0.77, 0.85, 0.91)),
    HabitLeak(7, 24, 4, 17_250, 80_500, (0.74, 0.98, 0.72, 0.79, 0.84)),
    HabitLeak(28, 4, 1, 43_470, 527_074, (0.69, 0.95, 0.76, 0.87, 0.92)),
    HabitLeak(28, 4, 1, 43_470, 1_054_148, (0.60, 0.81, 0.64, 0.72, 0.77)),
    HabitLeak(28, 4, 1, 17_250, 209_157, (0.83, 1.00, 0.93, 0.99, 1.00)),
    HabitLeak(28, 4, 1, 17_250, 836_625, (0.62, 0.88, 0.68, 0.78, 0.83)),
    HabitLeak(28, 6, 1, 43_470, 527_074, (0.68, 0.95, 0.72, 0.83, 0.87)),
    HabitLeak(28, 6, 1, 43_470, 843_318, (0.63, 0.87, 0.65, 0.73, 0.77)),
    HabitLeak(28, 6, 1, 17_250, 209_157, (0.80, 1.00, 0.91, 0.98, 0.99)),
    HabitLeak(28, 6, 1, 17_250, 557_750, (0.65, 0.94, 0.71, 0.81, 0.87)),
    HabitLeak(28, 24, 1, 43_470, 527_074, (0.61, 0.90, 0.63, 0.69, 0.72)),
    HabitLeak(28, 24, 1, 17_250, 209_157, (0.71, 1.00, 0.80, 0.88, 0.93)),
    HabitLeak(28, 24, 1, 17_250, 334_650, (0.65, 0.97, 0.71, 0.78, 0.83)),
    HabitLeak(28, 24, 4, 43_470, 152_145, (0.65, 0.97, 0.70, 0.80, 0.85)),
    HabitLeak(28, 24, 4, 43_470, 202_860, (0.62, 0.94, 0.65, 0.74, 0.79)),
    HabitLeak(28, 24, 4, 17_250, 60_375, (0.79, 1.00, 0.89, 0.97, 0.99)),
    HabitLeak(28, 24, 4, 17_250, 241_500, (0.60, 0.90, 0.64, 0.70, 0.74)),
)


MEASURED_GAS = (
    HabitLeak(1, 1, 1, 6_000, 18_750, (0.74, 0.52, 0.64)),
    HabitLeak(1, 1, 1, 6_000, 37_500, (0.64, 0.50, 0.57)),
    HabitLeak(1, 1, 1, 6_000, 75_000, (0.58, 0.50, 0.53)),
    HabitLeak(1, 1, 1, 6_000, 150_000, (0.55, 0.50, 0.51)),
    HabitLeak(7, 1, 1, 6_000, 18_750, (0.89, 0.61, 0.77)),
    HabitLeak(7, 1, 1, 6_000, 37_500, (0.76, 0.56, 0.66)),
    HabitLeak(7, 1, 1, 6_000, 75_000, (0.66, 0.53, 0.59)),
    HabitLeak(7, 1, 1, 6_000, 150_000, (0.59, 0.52, 0.54)),
    HabitLeak(28, 1, 1, 6_000, 18_750, (0.91, 0.70, 0.91)),
    HabitLeak(28, 1, 1, 6_000, 37_500, (0.77, 0.60, 0.78)),
    HabitLeak(28, 1, 1, 6_000, 75_000, (0.65, 0.55, 0.65)),
    HabitLeak(28, 1, 1, 6_000, 150_000, (0.57, 0.52, 0.58)),
    HabitLeak(1, 12, 1, 6_000, 18_750, (0.59, 0.57, 0.57)),
    HabitLeak(1, 12, 1, 6_000, 75_000, (0.53, 0.53, 0.51)),
    HabitLeak(7, 12, 1, 6_000, 18_750, (0.70, 0.63, 0.67)),
    HabitLeak(7, 12, 1, 6_000, 75_000, (0.55, 0.52, 0.54)),
    HabitLeak(28, 12, 1, 6_000, 18_750, (0.71, 0.75, 0.79)),
    HabitLeak(28, 12, 1, 6_000, 75_000, (0.57, 0.57, 0.61)),
)


def leak_of_sums(
    days: int, cells: int, block: int, scale: int, measured: tuple[HabitLeak, ...] = MEASURED
) -> HabitLeak | None:
    """Return what such sums give away at most: measured at no larger noise; None: not measured.

    `block`: so many cells share one noise.
    """
    fits = [one for one in measured if one[:3] == (days, cells, block) and one.scale <= scale]
    return max(fits, key=lambda one: one.scale, default=None)


def fair_scale(days: int, cells: int, block: int, ceiling: int) -> int | None:
    """Return the least scale measured at which no habit shows more than in reports of a ceiling."""
    reports = leak_of_reports(ceiling)
    fits = [
        one.scale
        for one in MEASURED
        if reports and one[:3] == (days, cells, block) and one.is_no_more_than(reports)
    ]
    return min(fits, default=None)


def leak_of_reports(ceiling: int) -> HabitLeak | None:
    """Return what 8 reports of ε 1 in any 97 slots give away at least: of no smaller ceiling."""
    fits = [one for one in MEASURED if not one.days and one.ceiling >= ceiling]
    return min(fits, key=lambda one: one.ceiling, default=None)
