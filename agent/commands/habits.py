"""What who knows this home's usual law could tell of its habits by now: for people and machines.

Measured on real homes, in the very windows and layouts that are listed (`period_sums.habits`); of
another one nothing is said but the bound. Source: docs/results/prying.md.
"""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

from agent.meters.reading import GAS
from edge_ldp.period_sums.habits import (
    HABITS,
    MEASURED,
    MEASURED_GAS,
    REPORTS,
    SLOTS_A_DAY,
    HabitLeak,
    leak_of_reports,
    leak_of_sums,
)
from edge_ldp.protocol.released import FIRST_SUMS_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent.config import AgentConfig
    from agent.config.summed_streams import SumTerms

WIDTH = 90
_SLOT_S = 86_400 // SLOTS_A_DAY
_USED = ("power", "apparent_power")  # of which habits were measured
NOT_MEASURED = (
    "How well habits are found was not measured for this window and ε: what holds is ε itself, "
    "which adds up."
)


def habits_facts(config: AgentConfig) -> list[dict[str, Any]]:
    """Return, for each way out that was measured, how often habits of a month are told rightly."""
    if config.mode != "local" or config.slot_seconds != _SLOT_S:
        return []
    window = config.policy.window
    rows: list[tuple[str, HabitLeak | None]] = []
    if config.shared:
        from agent.config.summed_streams import sum_terms  # noqa: PLC0415 (memory: who has sums)

        rows = [
            (f"sums of {terms.name}", _of_sums(config, terms))
            for terms in sum_terms(config).values()
        ]
    elif (window.reports, window.slots) == REPORTS and config.policy.epsilon == 1:
        rows = [
            (f"reports of {one.name}", _of_reports(one.ceiling - one.low))
            for one in config.local_streams
            if one.unit == "W"
        ]
    return [{"of": what, "found": leak.by_habit} for what, leak in rows if leak is not None]


def habits_text(facts: Iterable[dict[str, Any]]) -> str:
    """Return the same as lines; "" where nothing was measured."""
    lines = ""
    for one in facts:
        told = f"A month's {one['of']} tell {_words(one['found'])}."
        lines += "\n" + "\n".join(wrap(told, WIDTH)) + "\n"
    return lines


def sums_words(config: AgentConfig, terms: SumTerms) -> str:
    """Return what a month of such sums tells, beside reports; "" where it was not measured."""
    stream, leak = config.streams[terms.key - FIRST_SUMS_KEY], _of_sums(config, terms)
    if leak is None:
        return ""
    reports = None if stream.quantity == GAS else leak_of_reports(stream.ceiling - stream.low)
    return _words(leak.by_habit, reports.found if reports else ())


def _words(found: Mapping[str, float], reports: Sequence[float] = ()) -> str:
    beside = [f" ({100 * share:.0f})" for share in reports] or [""] * len(found)
    rows = zip(found.items(), beside, strict=True)
    told = ", ".join(f"{habit} {100 * share:.0f}{other}" for (habit, share), other in rows)
    whose = "" if tuple(found) == HABITS else " of made-up homes"
    usual = "; in brackets: by reports alone" if reports else ""
    return (
        f"habits, to who knows your usual days. Of 100 pairs of months{whose}, one of them with "
        f"the habit, he says so often rightly which (50: a guess{usual}): {told}"
    )


def _of_sums(config: AgentConfig, terms: SumTerms) -> HabitLeak | None:
    """Return what was measured: of power in quarter hours, of gas by the hour."""
    stream, layout = config.streams[terms.key - FIRST_SUMS_KEY], terms.layout
    kind = (MEASURED_GAS, 24) if stream.quantity == GAS else (MEASURED, SLOTS_A_DAY)
    if stream.quantity not in (*_USED, GAS) or layout.slots_a_day != kind[1]:
        return None
    return leak_of_sums(layout.days, layout.cells, layout.block, terms.scale, kind[0])


def _of_reports(span: int) -> HabitLeak | None:
    """Return what was measured of no wider range: a wider one hides more."""
    fits = [one for one in MEASURED if not one.days and one.ceiling <= span]
    return max(fits, key=lambda one: one.ceiling, default=None)
