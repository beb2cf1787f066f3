"""How much noise a promise needs, in integers that are rounded against us.

A slot whose value changes moves one cell of one period by at most R = ceiling - low. With blocks of
cells that share a noise, what counts of a set of slots is the fullest cell of each block. So noise
of scale b on every cell makes any w consecutive slots cost at most L·R/b, L as `most_in_window`
says: w itself without blocks. A stream's slots may be of several of the home's, by which windows
are: any w of these touch at most (w - 2)//parts + 2 of them. Source: docs/methods.md, Period sums.
"""

from collections import Counter
from fractions import Fraction

from edge_ldp.device.errors import ParameterError
from edge_ldp.device.laplace import MAX_SCALE
from edge_ldp.device.sums_frame import MAX_SPAN
from edge_ldp.period_sums.layout import PeriodLayout
from edge_ldp.ratio import Epsilon, exact_epsilon

MAX_WINDOW = 1 << 16


def scale_for(
    layout: PeriodLayout, window_slots: int, span: int, epsilon: Epsilon, parts: int = 1
) -> int:
    """Return the least integer b for which any `window_slots` consecutive slots cost at most ε.

    `span`: R = ceiling - low, in the stream's unit; `parts`: so many of the window's slots are one
    of the layout's. Raises ParameterError where b would be 2^48 or more, or a number is none that
    may be.
    """
    if type(span) is not int or not 1 <= span < MAX_SPAN:
        raise ParameterError("span", "an integer in 1..2**47-1: the ceiling less low")
    exact = exact_epsilon(epsilon)
    most = most_in_window(layout, window_slots, parts) * span
    scale = -(-most * exact.denominator // exact.numerator)
    if scale >= MAX_SCALE:
        raise ParameterError("epsilon", "more: the noise would have a scale of 2**48")
    return scale


def booked(span: int, scale: int, slots: int = 1) -> Fraction:
    """Return what so many slots cost in one layout, at most: slots·R/b, for the ledger."""
    if type(scale) is not int or not 1 <= scale < MAX_SCALE:
        raise ParameterError("scale", "an integer in 1..2**48-1")
    if type(span) is not int or type(slots) is not int:
        raise ParameterError("span, slots", "integers")
    return Fraction(slots * span, scale)


def most_in_window(layout: PeriodLayout, window_slots: int, parts: int = 1) -> int:
    """Return L: the most that any such window counts, over every place it may begin.

    `parts`: so many of the window's slots are one of the layout's, which counts if any of it does.

    Of each block and period it counts the fullest cell, so borders of periods count on both sides.
    Cost: O(slots of a day · window) at most, whatever the period; without blocks O(1).
    """
    if not isinstance(layout, PeriodLayout):
        raise ParameterError("layout", "a PeriodLayout")
    if type(window_slots) is not int or not 1 <= window_slots <= MAX_WINDOW:
        raise ParameterError("window", f"1 to {MAX_WINDOW} slots")
    if type(parts) is not int or parts < 1 or layout.slot_seconds % parts:
        raise ParameterError("parts", "a number of slots of whole seconds")
    touched = (window_slots - 2) // parts + 2
    if layout.block == 1:
        return touched
    border = layout.first_slot(1)
    reach = min(touched, layout.slots) + layout.slots_a_day
    return max(
        counted(layout, range(first, first + touched))
        for first in range(border - reach, border + layout.slots_a_day)
    )


def counted(layout: PeriodLayout, slots: range) -> int:
    """Return what a set of slots counts: the fullest cell of each block, added up."""
    of_cells = Counter((layout.period(slot), layout.cell(slot)) for slot in slots)
    of_blocks: dict[tuple[int, int], int] = {}
    for (period, cell), many in of_cells.items():
        block = (period, cell // layout.block)
        of_blocks[block] = max(of_blocks.get(block, 0), many)
    return sum(of_blocks.values())
