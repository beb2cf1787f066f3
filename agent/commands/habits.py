"""What who knows this home's usual law could tell of its habits by now: for people and machines.

Measured on real homes, in the very windows and layouts that are listed (`period_sums.habits`); of
another one nothing is said but the bound. Source: docs/results/prying.md.
"""

from collections.abc import Iterable
from typing import Any

from agent.config import AgentConfig
from edge_ldp.period_sums.habits import (
    HABITS,
    MEASURED,
    REPORTS,
    SLOTS_A_DAY,
    HabitLeak,
    leak_of_sums,
)

_SLOT_S = 86_400 // SLOTS_A_DAY
NOT_MEASURED = (
    "How well habits are found was not measured for this window and ε: what holds is ε itself, "
    "which adds up."
)


def habits_facts(config: AgentConfig) -> list[dict[str, Any]]:
    """Return, for each way out that was measured, how often habits of a month are told rightly."""
    if config.mode != "local" or config.slot_seconds != _SLOT_S:
        return []
    window = config.policy.window
    is_usual = (window.reports, window.slots) == REPORTS and config.policy.epsilon == 1
    rows: list[tuple[str, HabitLeak | None]] = []
    if is_usual and not config.shared:
        rows += [
            (f"reports of {one.name}", _of_reports(one.ceiling - one.low))
            for one in config.local_streams
            if one.unit == "W"
        ]
    if config.shared:
        from agent.config.summed_streams import sum_terms  # noqa: PLC0415 (memory: who has sums)

        rows += [
            (
                f"sums of {t.name}",
                leak_of_sums(t.layout.days, t.layout.cells, t.layout.block, t.scale),
            )
            for t in sum_terms(config).values()
        ]
    return [
        {"of": what, "found": dict(zip(HABITS, leak.found, strict=True))}
        for what, leak in rows
        if leak is not None
    ]


def habits_text(facts: Iterable[dict[str, Any]]) -> str:
    """Return the same as lines; "" where nothing was measured."""
    lines = ""
    for one in facts:
        told = ", ".join(f"{habit} {share:.0%}" for habit, share in one["found"].items())
        lines += f"\nOf a month's {one['of']} who knows your usual days tells rightly (50 %: a "
        lines += f"guess):\n  {told}\n"
    return lines


def _of_reports(span: int) -> HabitLeak | None:
    """Return what was measured of no wider range: a wider one hides more."""
    fits = [one for one in MEASURED if not one.days and one.ceiling <= span]
    return max(fits, key=lambda one: one.ceiling, default=None)
