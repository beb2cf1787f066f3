"""The certificate of a home's sums: what any slots and any window cost, from a layout's integers.

Another value in one slot moves one cell of one period by at most R; of cells that share a noise the
one that moved most counts. So a set of slots costs what it counts times R/b, and a window what its
worst place counts: every place is gone through here, also across the borders of periods, by a count
of its own beside `edge_ldp.period_sums`. Of a slot that is of several of the window's the whole
counts wherever a window touches it. Reports of the same slots add up. Source: docs/methods.md,
Period sums.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction

from edge_ldp.certify.certificate import Certificate, ProvedClaim
from edge_ldp.checks import FRACTION, a, exact_integer, optional, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.laplace import MAX_SCALE
from edge_ldp.device.sums_frame import MAX_SPAN
from edge_ldp.period_sums import PeriodLayout, most_in_window
from edge_ldp.ratio import exact_epsilon

SUBJECT = "period-sums"
OPTIONS: dict[str, int | str | None] = {  # of the command; None: to be given
    "span": None,
    "scale": None,
    "window": 97,
    "days": 7,
    "cells": 1,
    "block": 1,
    "offset": 0,
    "slot_seconds": 900,
    "parts": 1,
    "reports": 0,
    "report_epsilon": "0",
}
MOST = 1 << 17  # places of a window, times what is counted at each
_DIGITS = 1000
_LAYOUT = ("slot_seconds", "days", "cells", "offset", "block")


@taking(
    layout=a("edge_ldp.period_sums.layout.PeriodLayout"),
    span=exact_integer,
    scale=exact_integer,
    window_slots=exact_integer,
    nominal=optional(FRACTION),
    parts=exact_integer,
    reports=exact_integer,
    report_epsilon=FRACTION,
)
def certify_sums(  # noqa: PLR0913 (a layout's integers, and what stands beside it)
    layout: PeriodLayout,
    span: int,
    scale: int,
    window_slots: int,
    nominal: Fraction | None = None,
    *,
    parts: int = 1,
    reports: int = 0,
    report_epsilon: Fraction = Fraction(0),
) -> Certificate:
    """Return the certificate of sums with span R and scale b; raises ParameterError.

    `parts`: so many of the window's slots are one of the layout's; `reports`: so many of any
    window's slots are reported, too, at `report_epsilon` each; `nominal`: the ε that any
    `window_slots` consecutive slots may cost in all.
    """
    if not 1 <= span < MAX_SPAN or not 1 <= scale < MAX_SCALE:
        raise ParameterError("span, scale", "1 to 2**47 - 1 and 1 to 2**48 - 1")
    if reports < 0 or report_epsilon < 0:
        raise ParameterError("reports", "0 or more, each at an ε of 0 or more")
    if parts < 1 or layout.slot_seconds % parts:
        raise ParameterError("parts", "a number of slots of whole seconds")
    touched = {(at + window_slots - 1) // parts + 1 for at in range(parts)}
    near = places(layout, max(touched))
    looked = len(near) * len(touched)
    if looked * max(layout.cells, max(touched) if layout.block > 1 else 1) > MOST:
        raise ParameterError("slot_seconds", "longer: there are too many places to go through")
    told = most_in_window(layout, window_slots, parts)
    counts = [counted_at(layout, first, slots) for first in near for slots in touched]
    most, slot = max(counts), Fraction(span, scale)
    window, beside = most * slot, reports * report_epsilon
    whole = window + beside
    return Certificate(
        subject={
            "mechanism": SUBJECT,
            "slot_seconds": layout.slot_seconds,
            "days": layout.days,
            "cells": layout.cells,
            "offset": layout.offset_s,
            "block": layout.block,
            "span": span,
            "scale": scale,
            "window": window_slots,
            **({} if parts == 1 else {"parts": parts}),
            "reports": reports,
            "report_epsilon": f"{report_epsilon.numerator}/{report_epsilon.denominator}",
        },
        nominal=nominal,
        figures={
            "epsilon": whole,
            "margin": None if nominal is None else nominal - whole,
            "slot": slot,
            "most": most,
            "window": window,
        },
        claims=(
            ProvedClaim(
                "slot",
                _are_apart(layout, near),
                f"each slot lies in one cell of one period ({len(near):,} looked at), which "
                f"another value moves by at most {span:,}: ε {slot}, and any set of slots at most "
                "so much each",
            ),
            ProvedClaim(
                "window",
                most <= window_slots,
                f"any {window_slots} consecutive slots{_whole_words(parts, touched)} count at most "
                f"{most}, at each of {len(counts):,} places, over the borders of cells, days and "
                "periods",
            ),
            ProvedClaim("count", most == told, f"the device's own count of a window is {told}"),
            *_nominal_claims(window, beside, nominal),
        ),
    )


def certify_sums_of(table: Mapping[str, object], nominal: Fraction | None) -> Certificate:
    """Return the certificate of the integers of a command or a file; raises ParameterError."""
    values = {name: table.get(name, given) for name, given in OPTIONS.items()}
    written = values.pop("report_epsilon")
    if not isinstance(written, str) or len(written) > _DIGITS:
        raise ParameterError("report_epsilon", "a fraction num/den")
    numbers = dict[str, int]()
    for name, one in values.items():
        if not isinstance(one, int) or isinstance(one, bool):
            raise ParameterError(name, "an integer")
        numbers[name] = one
    slot_seconds, days, cells, offset, block = (numbers[name] for name in _LAYOUT)
    return certify_sums(
        PeriodLayout(slot_seconds, days, cells, offset, block),
        numbers["span"],
        numbers["scale"],
        numbers["window"],
        nominal,
        parts=numbers["parts"],
        reports=numbers["reports"],
        report_epsilon=Fraction(0) if written in ("0", "0/1") else exact_epsilon(written),
    )


def _whole_words(parts: int, touched: set[int]) -> str:
    """Return what a window touches of slots that are longer than its own; "" of its own."""
    if parts == 1:
        return ""
    some = " or ".join(map(str, sorted(touched)))
    return f" touch {some} that are {parts} times as long, which"


def _nominal_claims(
    window: Fraction, beside: Fraction, nominal: Fraction | None
) -> Iterator[ProvedClaim]:
    if nominal is not None:
        sign = "<=" if window + beside <= nominal else ">"
        proof = f"{window} of sums and {beside} of reports {sign} {nominal} in any window"
        yield ProvedClaim("epsilon", window + beside <= nominal, proof)


def _are_apart(layout: PeriodLayout, slots: range) -> bool:
    """Say whether each of these slots lies in its period, and in one cell of the day."""
    start = layout.first_slot(0)
    return all(
        layout.first_slot(period := layout.period(slot)) <= slot < layout.first_slot(period + 1)
        and [
            _often(layout, slot + 1 - start, cell) - _often(layout, slot - start, cell)
            for cell in range(layout.cells)
        ]
        == [cell == layout.cell(slot) for cell in range(layout.cells)]
        for slot in slots
    )


def places(layout: PeriodLayout, window_slots: int) -> range:
    """Return where a window may begin: beyond a day and a period's border all is as before."""
    border, day = layout.first_slot(1), layout.slots_a_day
    return range(border - min(window_slots, layout.slots) - day, border + day)


def counted_at(layout: PeriodLayout, first: int, window_slots: int) -> int:
    """Return what a window counts that begins there: of each period and block the fullest cell.

    By how often each part of the day comes in a stretch, never by going through its slots.
    """
    total, at, end = 0, first, first + window_slots
    while at < end:
        until = min(end, layout.first_slot(layout.period(at) + 1))
        start = layout.first_slot(0)
        cells = [
            _often(layout, until - start, cell) - _often(layout, at - start, cell)
            for cell in range(layout.cells)
        ]
        total += sum(
            max(cells[block : block + layout.block]) if layout.block > 1 else cells[block]
            for block in range(0, layout.cells, layout.block)
        )
        at = until
    return total


def _often(layout: PeriodLayout, slots: int, cell: int) -> int:
    """Return how many of the first so many slots of a day's beginning lie in a cell."""
    day = layout.slots_a_day
    of_cell = day // layout.cells
    days, rest = divmod(slots, day)
    return days * of_cell + min(max(rest - cell * of_cell, 0), of_cell)
