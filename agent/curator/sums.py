"""One stream's running sum: a slot's value in, a period's frame out. Pure: no clock, no disk.

Source: docs/methods.md, Period sums.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, field, replace

from agent.claims.batches import Batch, Key, Numbering
from agent.config.summed_streams import SumTerms
from edge_ldp.device.sums import release
from edge_ldp.device.sums_frame import SumsFrame, encode_sums
from edge_ldp.period_sums import PeriodLayout
from edge_ldp.protocol.released import FIRST_SUMS_KEY


@dataclass(frozen=True, slots=True)
class RunningSum:
    """What a period adds up so far. `last`: the slot taken last; `n`, `sums`: of each cell.

    It keeps the terms that it began with. What it adds up hides in every representation.
    """

    terms: SumTerms
    period: int
    last: int
    n: tuple[int, ...]
    sums: tuple[int, ...] = field(repr=False)

    @property
    def slots(self) -> int:
        """How many slots had a value so far."""
        return sum(self.n)

    @property
    def last_slot(self) -> int:
        """The last slot of its period."""
        return self.terms.layout.first_slot(self.period + 1) - 1


def begin_sum(terms: SumTerms, slot: int) -> RunningSum:
    """Return the sum of the period that a slot is in, with nothing in it."""
    nothing = (0,) * terms.layout.cells
    return RunningSum(terms, terms.layout.period(slot), slot - 1, nothing, nothing)


def added(running: RunningSum, slot: int, value: int) -> RunningSum:
    """Return the same with the value of a slot of its period, cut to [low, low + span]."""
    terms, n, sums = running.terms, list(running.n), list(running.sums)
    cell = terms.layout.cell(slot)
    n[cell] += 1
    sums[cell] += min(max(value - terms.low, 0), terms.span)
    return replace(running, last=slot, n=tuple(n), sums=tuple(sums))


def packed(running: RunningSum, numbering: Numbering, draw: Callable[[int], int]) -> Batch:
    """Return the batch that a period's end releases; its noise is drawn here, and kept nowhere.

    To be called once for what is stored: what is drawn and not stored is dropped.
    """
    terms, layout = running.terms, running.terms.layout
    number, series, base = numbering
    frame = SumsFrame(
        stream=terms.key - FIRST_SUMS_KEY,
        series=series,
        batch=number - base,
        period=running.period,
        slot_seconds=layout.slot_seconds,
        days=layout.days,
        cells=layout.cells,
        block=layout.block,
        offset_s=layout.offset_s,
        low=terms.low,
        span=terms.span,
        scale=terms.scale,
        unit=terms.unit,
        name=terms.name,
        n=running.n,
        y=release(running.sums, terms.scale, layout.block, draw),
    )
    return Batch(Key(terms.key, number), encode_sums(frame), running.last_slot, 1)


def sealed_sums(began: int, due: dict[int, int], sums: Iterable[RunningSum]) -> bytes:
    """Return what is sealed of running sums.

    `began`: the first slot of the window account that they belong to; `due`: by their streams' keys
    in which elapsed slot the next one is due to be added, if none comes late.
    """
    return json.dumps([began, list(due.items()), [astuple(one) for one in sums]]).encode()


def opened_sums(record: bytes) -> tuple[int, dict[int, int], list[RunningSum]]:
    """Return what `sealed_sums` was given."""
    began, due, rows = json.loads(record)
    sums = [_running(*row) for row in rows]
    if isinstance(due, int):  # of an older version: the elapsed slot in which all added last
        return began, {one.terms.key: due + 1 for one in sums}, sums
    return began, dict(due), sums


def _running(terms: list[object], *rest: object) -> RunningSum:
    key, layout, *others = terms
    made = SumTerms(key, PeriodLayout(*layout), *others)  # type: ignore[misc, arg-type] # as written
    period, last, n, sums = rest
    return RunningSum(made, period, last, tuple(n), tuple(sums))  # type: ignore[arg-type] # the same
