"""What homes' sums of one period add up to: integers, so that merging is addition in any order.

A fleet's year is a few hundred of these, whatever the homes. Folding and variances are those of
`edge_ldp.period_sums.estimate`, in fixed point. Source: docs/methods.md, Period sums.
"""

import json
from collections.abc import Iterable
from typing import NamedTuple

from aggregator.counting.records import KeptSums
from edge_ldp.device.sums_frame import SumsFrame, decode_sums
from edge_ldp.errors import RowError
from edge_ldp.period_sums.estimate import PeriodReport, folded
from edge_ldp.period_sums.law import reach
from edge_ldp.period_sums.layout import PeriodLayout

FIXED = 1 << 20  # parts of one unit · slot


class TotalKey(NamedTuple):
    """Whose sums are added up: a stream's, of one period, layout and group. Seconds UTC."""

    name: str
    first_s: int
    end_s: int
    layout: str
    group: int


class CellTotal(NamedTuple):
    """One cell over the homes that had a value in it: slots, their sum folded (in FIXED), variance.

    `sway`: how far any one of the homes can have moved it.
    """

    homes: int = 0
    slots: int = 0
    total: int = 0
    variance: int = 0
    sway: int = 0


def pooled(cells: Iterable[CellTotal]) -> CellTotal:
    """Return one or more totals of different homes as one."""
    homes, slots, totals, variances, sways = zip(*cells, strict=True)
    return CellTotal(sum(homes), sum(slots), sum(totals), sum(variances), max(sways))


class PeriodTotal(NamedTuple):
    """How many homes, and what each cell adds up to."""

    homes: int
    cells: tuple[CellTotal, ...]

    @classmethod
    def of(cls, frame: SumsFrame) -> "PeriodTotal":
        """Return one home's."""
        beyond = 2 * reach(frame.block) * frame.scale
        cells = []
        for n, y in zip(frame.n, frame.y, strict=True):
            value, variance = folded((y,), frame.scale, frame.block)
            total = frame.low * n * FIXED + round(value * FIXED)
            # a cell without a slot is left out with its noise
            cells.append(CellTotal(1, n, total, round(variance), n * frame.span + beyond))
        return cls(1, tuple(one if one.slots else CellTotal() for one in cells))

    def plus(self, other: "PeriodTotal") -> "PeriodTotal":
        """Return both together, of one layout."""
        pairs = zip(self.cells, other.cells, strict=True)
        return PeriodTotal(self.homes + other.homes, tuple(map(pooled, pairs)))

    def pack(self) -> str:
        """Return the one text that it is kept as."""
        return json.dumps([self.homes, self.cells], separators=(",", ":"))


def totals_of(kept: Iterable[KeptSums]) -> dict[TotalKey, PeriodTotal]:
    """Return what releases add to totals; those of held devices are in none. Raises WireError."""
    found: dict[TotalKey, PeriodTotal] = {}
    for one in kept:
        if not one.held:
            frame = decode_sums(one.payload)
            layout = layout_text(layout_of(frame))
            key, total = TotalKey(*one[1:4], layout, one.group), PeriodTotal.of(frame)
            found[key] = found[key].plus(total) if key in found else total
    return found


def unpack_total(text: str) -> PeriodTotal:
    """Return what was packed; raises RowError."""
    try:
        homes, cells = json.loads(text)
        found = PeriodTotal(homes, tuple(CellTotal(*one) for one in cells))
    except (TypeError, ValueError) as exc:
        raise RowError("a period's total does not parse") from exc
    numbers = (homes, *(number for one in cells for number in one))
    if {*map(type, numbers)} != {int} or len(numbers) != 1 + 5 * len(cells):
        raise RowError("a period's total is no integers, five for each cell")
    return found


def layout_of(frame: SumsFrame) -> PeriodLayout:
    """Return the layout that a frame is of."""
    return PeriodLayout(*frame[4:7], frame.offset_s, frame.block)


def layout_text(layout: PeriodLayout) -> str:
    """Return a layout as it stands in a key: slot seconds, days, cells, offset, block."""
    shape = layout.slot_seconds, layout.days, layout.cells, layout.offset_s, layout.block
    return "/".join(map(str, shape))


def read_layout(text: str) -> PeriodLayout:
    """Return the layout of a key; raises RowError."""
    try:
        slot_seconds, days, cells, offset_s, block = map(int, text.split("/"))
        return PeriodLayout(slot_seconds, days, cells, offset_s, block)
    except (TypeError, ValueError) as exc:
        raise RowError("a period's layout does not parse") from exc


def report_of(frame: SumsFrame) -> PeriodReport:
    """Return what a frame says as the estimates take it; raises ParameterError."""
    law = frame.low, frame.span, frame.scale
    return PeriodReport(layout_of(frame), frame.period, *law, frame.n, frame.y)
