"""Which mode answers a question better: randomised reports, or sums that homes add noise to.

Both under one window's ε. Sums of one day, of a week and of as many days as are looked at are
compared, by parts of the day where these are asked for. What a home gives away is what was measured
of habits (`edge_ldp.period_sums.habits`), where it was. Source: docs/which-mode.md.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import NamedTuple

from edge_ldp.device.errors import ParameterError
from edge_ldp.device.frame import HEAD_BYTES, PAIR_BYTES
from edge_ldp.device.sums_frame import CELL_BYTES
from edge_ldp.device.sums_frame import HEAD_BYTES as SUMS_HEAD_BYTES
from edge_ldp.period_sums.habits import (
    REPORTS,
    SLOTS_A_DAY,
    HabitLeak,
    leak_of_reports,
    leak_of_sums,
)
from edge_ldp.period_sums.law import forecast_total
from edge_ldp.period_sums.layout import PeriodLayout
from edge_ldp.period_sums.scale import scale_for
from edge_ldp.ratio import exact_epsilon
from edge_ldp.sums.forecast import DAY_S, Fleet, Forecast
from edge_ldp.sums.law import HOURS, WEEK, Law

MONTH = 28  # days
PARTS = 6
BLOCK = 4  # hours that share a noise
QUESTIONS = ("total", "week", "day", "part-of-day", "hour-of-day", "density", "theta")
ONLY_REPORTS = ("density", "theta")
_TEXTS = 10  # bytes of unit and name, about


class SumsShape(NamedTuple):
    """A layout tried, and of how many of its periods one answer is."""

    days: int
    cells: int
    block: int
    periods: int


@dataclass(frozen=True, slots=True)
class ModeRow:
    """How one mode answers: ± `half` unit, ± `percent` of the mean (None where that is 0).

    Of sums: `shape`, and the noise's scale. `leak`: what one home gives away, None: not measured;
    `home_bytes`: what it sends over all days.
    """

    mode: str
    half: float
    percent: float | None
    home_bytes: int
    leak: HabitLeak | None
    shape: SumsShape | None = None
    scale: int = 0


@dataclass(frozen=True, slots=True)
class ModeChoice:
    """A question, how the modes answer it, which is better (None: neither answers), and why."""

    question: str
    rows: tuple[ModeRow, ...]
    best: ModeRow | None
    reason: str


def choices(
    found: Forecast, law: Law, questions: Sequence[str] = QUESTIONS, parts: int = 1
) -> tuple[ModeChoice, ...]:
    """Return how reports and sums at home compare under the forecast's window, by question."""
    return tuple(choose(question, found, law, parts) for question in questions)


def choose(question: str, found: Forecast, law: Law, parts: int = 1) -> ModeChoice:
    """Return how the modes answer one question. Raises ParameterError for an unknown one.

    `parts`: so many of the fleet's slots are one of the stream's, which are summed alone. Better is
    the narrower, of those in which no habit shows more than in reports; where reports or sums were
    not measured at such a noise, the narrower alone.
    """
    if question not in QUESTIONS:
        raise ParameterError("question", f"one of {', '.join(QUESTIONS)}")
    local = _local(question, found, law) if parts == 1 else None
    sums: list[ModeRow] = []
    if question not in ONLY_REPORTS:
        sums = sorted(_sums(question, found.fleet, law, parts), key=lambda row: row.half)
    narrower = [row for row in sums if local and row.half < local.half]
    leak = local and local.leak
    fair = [row for row in narrower if leak and row.leak and row.leak.is_no_more_than(leak)]
    best = local
    if question in ONLY_REPORTS:
        reason = "sums at home tell nothing of how values are spread"
    elif not sums:
        reason = "no layout of sums fits these days and slots"
    elif local is None:
        best = sums[0]
        reason = (
            "no forecast of reports for it" if parts == 1 else "reports have the window's slots"
        )
    elif not narrower:
        reason = "reports are as good, and answer more"
    elif leak is None:
        best, reason = narrower[0], "narrower; what a home gives away: not measured"
    elif fair:
        best, reason = fair[0], "narrower, and no habit shows more than in reports"
    else:
        reason = "sums are narrower, but a habit shows more in them or was not measured: "
        reason += "yours to choose"
    return ModeChoice(question, (*([local] if local else []), *sums), best, reason)


def _local(question: str, found: Forecast, law: Law) -> ModeRow | None:
    """Return how reports answer, None where the days hold no such answer."""
    fleet, by_name = found.fleet, {row.horizon: row for row in found.rows}
    asked = (fleet.window.reports, fleet.window.slots, fleet.slots_a_day)
    is_measured = asked == (*REPORTS, SLOTS_A_DAY) and exact_epsilon(fleet.epsilon) == 1
    leak = leak_of_reports(law.ceiling - law.low) if is_measured else None
    sent = round(fleet.reports / fleet.homes * (HEAD_BYTES + PAIR_BYTES))
    length = {"week": WEEK, "day": 1, "part-of-day": 0, "hour-of-day": 0}.get(question, fleet.days)
    name = "whole" if length == fleet.days else question
    if question == "part-of-day" and "hour-of-day" in by_name:
        whole, hour = by_name["whole"], by_name["hour-of-day"]
        share = (PARTS - 1) / (HOURS - 1)  # squares of widths rise with the number of parts
        half = sqrt(whole.half**2 + share * (hour.half**2 - whole.half**2))
        percent = None if whole.percent is None else half * whole.percent / whole.half
    elif name in by_name:
        half, percent = by_name[name].half, by_name[name].percent
    else:
        return None
    return ModeRow("local", half, percent, sent, leak)


def _sums(question: str, fleet: Fleet, law: Law, parts: int) -> Iterator[ModeRow]:
    """Yield how each layout that fits the days answers."""
    epsilon = fleet.total / fleet.window.streams
    for shape in _shapes(question, fleet.days):
        with suppress(ParameterError):  # slots that do not divide the day, or its parts
            yield _row(shape, fleet, law, epsilon, parts)


def _row(shape: SumsShape, fleet: Fleet, law: Law, epsilon: Fraction, parts: int) -> ModeRow:
    seconds, rest = divmod(DAY_S * parts, fleet.slots_a_day)
    if rest:
        raise ParameterError("slots_a_day", "slots that divide the day")
    layout = PeriodLayout(seconds, shape.days, shape.cells, 0, shape.block)
    scale = scale_for(layout, fleet.window.slots, law.ceiling - law.low, epsilon, parts)
    held = (law.mean - law.low) * layout.slots_in_cell
    total = forecast_total(
        layout, scale, homes=fleet.homes, periods=shape.periods, cells=1, cell_sum=held
    )
    half = total / (fleet.homes * shape.periods * layout.slots_in_cell)
    sent = SUMS_HEAD_BYTES + _TEXTS + CELL_BYTES * shape.cells
    is_measured = (fleet.slots_a_day, parts) == (SLOTS_A_DAY, 1)
    return ModeRow(
        "sums",
        half,
        100 * half / abs(law.mean) if law.mean else None,
        sent * (fleet.days // shape.days),
        leak_of_sums(*shape[:3], scale) if is_measured else None,
        shape,
        scale,
    )


def _shapes(question: str, days: int) -> Iterator[SumsShape]:
    lengths = sorted({1, WEEK, MONTH} & set(range(1, days + 1)))
    if question in {"total", "week"}:
        of = WEEK if question == "week" else days
        for length in lengths:
            if length <= of and (question == "total" or of <= days):
                yield SumsShape(length, 1, 1, of // length)
    elif question == "day":
        yield SumsShape(1, 1, 1, 1)
    else:
        cells = PARTS if question == "part-of-day" else HOURS
        for length in lengths[1:]:
            yield SumsShape(length, cells, 1, days // length)
            if cells == HOURS:
                yield SumsShape(length, cells, BLOCK, days // length)
