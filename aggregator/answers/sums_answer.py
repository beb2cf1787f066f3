"""What homes' own sums of a period say of a stream: its value, and how it is shown.

Beside what reports say and never added to it. Homes are added up unweighted; an interval is of
their noise alone, and of few noises by the exact law. Source: docs/methods.md, Period sums.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from itertools import accumulate
from math import inf, sqrt
from statistics import NormalDist, median
from typing import NamedTuple

from msgspec import field

from aggregator.answers import parts as typed
from aggregator.answers.local_time import DAYS
from aggregator.answers.units import ends, energies, energy_kwh, iso, volume_m3
from aggregator.config import StreamTable
from aggregator.counting.period_totals import (
    FIXED,
    CellTotal,
    PeriodTotal,
    TotalKey,
    pooled,
    read_layout,
    report_of,
)
from aggregator.store.contract import Reader
from edge_ldp.device.sums import DAY_S
from edge_ldp.device.sums_frame import decode_sums
from edge_ldp.period_sums.estimate import estimate_total
from edge_ldp.period_sums.law import FEW
from edge_ldp.period_sums.layout import PeriodLayout

LAST_S = 1 << 40
HOURS = 24
LOCAL, SUMS = MODES = ("local", "sums")
VOLUME_KEYS = (
    *("volume_m3", "volume_m3_low", "volume_m3_high"),
    *("full_m3", "full_m3_low", "full_m3_high"),
)
_Z = NormalDist().inv_cdf(0.975)


class SumFigures(typed.AnswerPart, frozen=True, kw_only=True):
    """What sums say of some periods and cells.

    mean, low, high (95 %) over homes' slots; energy_kwh, energy_kwh_low, energy_kwh_high of the
    slots that were measured; full_kwh, full_kwh_low, full_kwh_high: the same mean in every slot of
    every home enrolled; volume_m3, full_m3 and their ends: the same of volumes; homes that sent
    something, the most at any moment; slots of homes with a value, coverage: their share of all
    slots of all enrolled; exact: the interval is of the exact law of the noise; sway, mean_sway:
    how far any one home, lying, can have moved total and mean; withheld: mean to mean_sway are
    null, as fewer homes than query.min_devices sent something, or a group leaves out so few.
    """

    mean: typed.InUnit | None = None
    low: typed.InUnit | None = None
    high: typed.InUnit | None = None
    energy_kwh: typed.Kwh | None = None
    energy_kwh_low: typed.Kwh | None = None
    energy_kwh_high: typed.Kwh | None = None
    full_kwh: typed.Kwh | None = None
    full_kwh_low: typed.Kwh | None = None
    full_kwh_high: typed.Kwh | None = None
    volume_m3: typed.M3 | None = None
    volume_m3_low: typed.M3 | None = None
    volume_m3_high: typed.M3 | None = None
    full_m3: typed.M3 | None = None
    full_m3_low: typed.M3 | None = None
    full_m3_high: typed.M3 | None = None
    homes: int | None = None
    slots: int | None = None
    coverage: typed.Share | None = None
    exact: bool = False
    sway: typed.UnitSlots | None = None
    mean_sway: typed.InUnit | None = None
    withheld: bool = False


class SumPeriod(SumFigures, frozen=True, kw_only=True):
    """A period; from_s, to_s: its time, from, to the same by the zone's clocks."""

    from_s: typed.Seconds
    to_s: typed.Seconds
    from_: typed.Iso | None = field(name="from")
    to: typed.Iso | None


class SumPart(SumFigures, frozen=True, kw_only=True):
    """A part of the day, of all periods; from_day_s, to_day_s: seconds after midnight UTC."""

    from_day_s: typed.Span
    to_day_s: typed.Span


class SumsAnswer(typed.AnswerPart, frozen=True, kw_only=True):
    """What homes' sums say of a stream.

    whole: of the periods shown; periods[] that lie wholly in the range; parts[] of the day, of the
    finest layout that any home has; warnings[].
    """

    whole: SumFigures
    periods: list[SumPeriod]
    parts: list[SumPart]
    warnings: list[str]

    @property
    def block_hours(self) -> int:
        """Of how many hours each part of the day is; 0: there is none, or one of less."""
        return 0 if not self.parts or HOURS % len(self.parts) else HOURS // len(self.parts)

    def spans(self, by: str) -> Sequence[SumFigures]:
        """Return what answers a question `by` hours of the day, days or weeks, or of the whole."""
        if by == "none":
            return [self.whole]
        if by == "hour-of-day":
            return self.parts if self.block_hours else []
        length = DAYS.get(by, 0) * DAY_S
        return self.periods if all(one.to_s - one.from_s == length for one in self.periods) else []

    def is_all_of(self, from_s: int | None, to_s: int | None) -> bool:
        """Say whether shown periods follow each other all through a time; None: there is none."""
        if from_s is None or to_s is None:
            return True
        for one in self.periods:  # rising
            if not one.withheld and one.from_s <= from_s:
                from_s = max(from_s, one.to_s)
        return from_s >= to_s


class _Taken(NamedTuple):
    """Some cells of a period's total, of all groups asked for; `homes` with a value, at least."""

    first_s: int
    end_s: int
    layout: PeriodLayout
    cells: tuple[int, ...]
    found: tuple[CellTotal, ...]
    homes: int

    def part(self, cell: int) -> "_Taken":
        """Return one cell of it alone."""
        found = self.found[cell]
        return self._replace(cells=(cell,), found=(found,), homes=found.homes)


def read_sums_answer(  # noqa: PLR0913 (what is asked for)
    reader: Reader,
    stream: StreamTable,
    span: tuple[int | None, int | None],
    zone: tzinfo,
    *,
    group: int | None = None,
    least: int,
) -> SumsAnswer | None:
    """Return what homes' sums of a span say, of all or of one group; None where there are none."""
    since_s, until_s = span
    totals = reader.period_totals(stream.name, since_s or 0, LAST_S if until_s is None else until_s)
    fits = [key for key in totals if read_layout(key.layout).slot_seconds == stream.slot_seconds]
    every = _by_period({key: totals[key] for key in fits if group in (None, key.group)})
    if not every:
        return None
    left = _by_period({key: totals[key] for key in fits if group not in (None, key.group)})
    asked = _Asking(reader, stream, group, least, reader.may_report(group))
    periods, kept = [], []
    for when, taken in every.items():
        figures = asked.figures(taken, left.get(when, ()))
        kept += [] if figures.withheld else taken
        from_, to = (iso(at_s, zone) for at_s in when)
        periods.append(SumPeriod.of(figures, from_s=when[0], to_s=when[1], from_=from_, to=to))
    odd = len(totals) - len(fits)
    told = f"sums over slots of another length than {stream.slot_seconds} s are left out: "
    return SumsAnswer(
        whole=asked.figures(kept, ()) if kept else SumFigures(withheld=True),
        periods=periods,
        parts=_parts(asked, kept),
        warnings=[f"{told}{odd}"] if odd else [],
    )


def narrower_mode(
    reports: Collection[typed.Interval], sums: SumsAnswer | None, by: str = "none"
) -> str:
    """Return whose intervals are narrower, by the middle one, whatever the means.

    `by` what the rows of reports are grouped; local where sums have no such groups, but reports do,
    or lack more days or weeks than the one that is not over. Blocks of k hours must be narrower
    than an hour by √k: so much a mean of k hours of reports may be, if they err independently.
    """
    if sums is None:
        return LOCAL
    width = _width(reports)
    rows = sums.spans(by) if width < inf else [sums.whole]
    lacks = by in DAYS and width < inf and len(rows) < len(reports) - 1
    share = len(rows) / HOURS if by == "hour-of-day" else 1
    return SUMS if _width(rows) < width * sqrt(share) and not lacks else LOCAL


def _width(rows: Iterable[typed.Interval]) -> float:
    ends = ((one.low, one.high) for one in rows)
    widths = [inf if low is None or high is None else high - low for low, high in ends]
    return median(widths) if widths else inf


@dataclass(frozen=True, slots=True)
class _Asking:
    """What is asked, and whom figures may tell of."""

    reader: Reader
    stream: StreamTable
    group: int | None
    least: int
    enrolled: int

    def figures(self, taken: Collection[_Taken], others: Iterable[_Taken]) -> SumFigures:
        """Return what these say; withheld where they, or all others, are too few homes."""
        homes, left = _most(taken), _most(others)
        slots = sum(one.slots for each in taken for one in each.found)
        if homes < self.least or 0 < left < self.least or not slots:
            return SumFigures(withheld=True)
        total, half, exact = self._total(taken)
        found = total, total - half, total + half
        full = max(self.enrolled, homes) * _slots_of(taken)
        mean, low, high = (one / slots for one in found)
        scaled = [one / slots * full for one in found]
        sway = float(sum(one.sway for each in taken for one in each.found))
        return SumFigures(
            mean=mean,
            low=low,
            high=high,
            **energies(self.stream, *found),
            **ends("full_kwh", *(energy_kwh(self.stream, one) for one in scaled)),
            **ends("volume_m3", *(volume_m3(self.stream, one) for one in found)),
            **ends("full_m3", *(volume_m3(self.stream, one) for one in scaled)),
            homes=homes,
            slots=slots,
            coverage=slots / full,
            exact=exact,
            sway=sway,
            mean_sway=sway / slots,
            withheld=False,
        )

    def _total(self, taken: Collection[_Taken]) -> tuple[float, float, bool]:
        """Return total, half its interval's width, and whether that is of the exact law."""
        if sum(one.homes for each in taken for one in each.found) <= FEW:  # noises, at most
            return self._exact(taken)
        total = sum(one.total for each in taken for one in each.found) / FIXED
        variance = sum(one.variance for each in taken for one in each.found)
        return total, _Z * sqrt(variance), False

    def _exact(self, taken: Collection[_Taken]) -> tuple[float, float, bool]:
        """Return the same by the releases themselves, which are few."""
        wanted = {one[:3]: one.cells for one in taken}
        first_s, end_s = min(one.first_s for one in taken), max(one.end_s for one in taken)
        homes = defaultdict(list)
        for kept in self.reader.period_sums(self.stream.name, first_s, end_s, self.group):
            report = report_of(decode_sums(kept.payload))
            if cells := wanted.get((kept.first_s, kept.end_s, report.layout)):
                n = tuple(one if at in cells else 0 for at, one in enumerate(report.n))
                homes[kept.device].append(replace(report, n=n))  # a cell without slots is left out
        found = estimate_total(list(homes.values()))
        return found.total, found.total_half_width, found.is_exact


def _by_period(totals: Mapping[TotalKey, PeriodTotal]) -> dict[tuple[int, int], list[_Taken]]:
    """Return totals over their groups, a layout each, by period; these rise."""
    groups: defaultdict[tuple[int, int, str], list[PeriodTotal]] = defaultdict(list)
    for key, total in totals.items():
        groups[key[1:4]].append(total)
    found: defaultdict[tuple[int, int], list[_Taken]] = defaultdict(list)
    for first_s, end_s, layout in sorted(groups, key=lambda one: one[:2]):
        several = groups[first_s, end_s, layout]
        cells = tuple(map(pooled, zip(*(one.cells for one in several), strict=True)))
        homes = sum(max(one.homes for one in each.cells) for each in several)
        taken = _Taken(first_s, end_s, read_layout(layout), tuple(range(len(cells))), cells, homes)
        found[first_s, end_s].append(taken)
    return found


def _parts(asked: _Asking, taken: Collection[_Taken]) -> list[SumPart]:
    """Return the parts of the day, of the finest layout that there is."""
    finest = max(((one.layout.cells, -one.layout.offset_s) for one in taken), default=(1, 0))
    mine = [one for one in taken if (one.layout.cells, -one.layout.offset_s) == finest]
    cells, before_s = finest
    if cells == 1:
        return []
    found = []
    for cell in range(cells):
        part = [one.part(cell) for one in mine]
        begin = (cell * DAY_S // cells - before_s) % DAY_S
        times = {"from_day_s": begin, "to_day_s": begin + DAY_S // cells}
        found.append(SumPart.of(asked.figures(part, ()), **times))
    return found


def _most(taken: Iterable[_Taken]) -> int:
    """Return how many homes there were at the moment when they were the most."""
    steps: defaultdict[int, int] = defaultdict(int)
    for one in taken:
        steps[one.first_s] += one.homes
        steps[one.end_s] -= one.homes
    return max(accumulate(steps[at] for at in sorted(steps)), default=0)


def _slots_of(taken: Iterable[_Taken]) -> int:
    """Return the slots of one home that these periods' cells have together."""
    slots, until = 0.0, 0
    for one in sorted(taken, key=lambda one: one[:2]):
        seconds = max(0, one.end_s - max(until, one.first_s))
        slots += seconds / one.layout.slot_seconds * len(one.cells) / one.layout.cells
        until = max(until, one.end_s)
    return round(slots)
