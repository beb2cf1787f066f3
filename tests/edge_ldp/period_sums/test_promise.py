"""The promise, enumerated: any window of slots costs what is claimed, and no less would do."""

from fractions import Fraction
from itertools import product

import pytest

from edge_ldp import ParameterError
from edge_ldp.period_sums import PeriodLayout, booked, most_in_window, scale_for
from edge_ldp.period_sums.scale import counted

SMALL = PeriodLayout(slot_seconds=14_400, days=1, cells=2)  # 6 slots a day, 2 cells of 3
SHARED = PeriodLayout(slot_seconds=7_200, days=1, cells=4, block=2)  # 12 slots a day


def exponent(layout: PeriodLayout, moved: dict[int, int], scale: int) -> Fraction:
    """Return the largest log ratio of two releases whose slots differ by `moved`: exact.

    Noise weighs e^(-|z|/b), or e^(-max|z_j|/b) of a block: a shift Δ costs |Δ|/b, or max|Δ_j|/b.
    """
    cells: dict[tuple[int, int], int] = {}
    for slot, by in moved.items():
        key = (layout.period(slot), layout.cell(slot))
        cells[key] = cells.get(key, 0) + by
    blocks: dict[tuple[int, int], int] = {}
    for (period, cell), by in cells.items():
        block = (period, cell // layout.block)
        blocks[block] = max(blocks.get(block, 0), abs(by))
    return Fraction(sum(blocks.values()), scale)


@pytest.mark.parametrize("layout", [SMALL, SHARED])
@pytest.mark.parametrize(
    ("parts", "window"), [(1, 1), (1, 2), (1, 3), (1, 5), (3, 1), (3, 2), (3, 7), (4, 9), (4, 10)]
)
def test_the_worst_two_histories_in_any_window_cost_the_claim(
    layout: PeriodLayout, parts: int, window: int
) -> None:
    """Every change in a window of a home's slots, `parts` to one of the layout's, R = 2.

    At every place of it, across the border of two periods; a slot counts whole if any of it does.
    """
    span, scale = 2, 5
    claim = Fraction(most_in_window(layout, window, parts) * span, scale)
    begins = range((layout.first_slot(10) - 5) * parts, (layout.first_slot(11) + 1) * parts)
    touched = {range(at // parts, (at + window - 1) // parts + 1) for at in begins}
    worst = max(
        exponent(layout, dict(zip(slots, by, strict=True)), scale)
        for slots in touched
        for by in product((-span, 0, span), repeat=len(slots))
    )
    assert worst == claim
    assert layout.block > 1 or claim == booked(span, scale, (window - 2) // parts + 2)


def test_hours_that_97_quarter_hours_touch_are_25_and_the_noise_3_9_times_less() -> None:
    """An hour's R in either case; for all windows and parts the bound is met, and never passed."""
    layout = PeriodLayout(3600, 7)
    assert most_in_window(layout, 97, 4) == 25
    assert scale_for(layout, 97, 6000, 8, 4) == 18_750
    assert Fraction(scale_for(PeriodLayout(900, 7), 97, 6000, 8), 18_750) == Fraction(388, 100)
    for parts, window in product((1, 2, 3, 4, 12, 60), range(1, 130)):
        found = [(at + window - 1) // parts - at // parts + 1 for at in range(parts)]
        assert max(found) == most_in_window(layout, window, parts)


@pytest.mark.parametrize(
    ("layout", "window", "most"),
    [
        (PeriodLayout(900, 28), 97, 97),
        (PeriodLayout(900, 28, 24, block=4), 97, 28),
        (PeriodLayout(900, 28, 24, block=4), 4, 4),
        (PeriodLayout(900, 28, 24, block=4), 16, 8),
        (PeriodLayout(900, 28, 24, block=4), 32, 12),
        (PeriodLayout(900, 1, 24, block=4), 97, 28),
    ],
)
def test_what_a_window_counts(layout: PeriodLayout, window: int, most: int) -> None:
    assert most_in_window(layout, window) == most


@pytest.mark.parametrize(
    "layout", [PeriodLayout(900, 1, 24, block=4), PeriodLayout(3600, 7, 24, 7200, 3)]
)
@pytest.mark.parametrize("window", [1, 5, 30, 97, 250])
def test_no_place_of_a_window_counts_more(layout: PeriodLayout, window: int) -> None:
    begins = range(-layout.slots - window, 2 * layout.slots)
    most = max(counted(layout, range(first, first + window)) for first in begins)
    assert most == most_in_window(layout, window)


def test_the_scale_is_the_least_that_keeps_the_promise() -> None:
    layout = PeriodLayout(900, 28)
    scale = scale_for(layout, 97, 43_470, 8)
    assert booked(43_470, scale, 97) <= 8 < booked(43_470, scale - 1, 97)
    assert scale == 527_074
    assert scale_for(layout, 97, 43_470, "0.1") == 42_165_900  # as written, not a float near it


@pytest.mark.parametrize(
    "wrong",
    [
        {"slot_seconds": 7000},
        {"days": 0},
        {"days": 400},
        {"cells": 5},
        {"cells": 0},
        {"offset_s": 100},
        {"offset_s": -900},
        {"offset_s": 86_400},
        {"block": 5},
        {"block": 0},
        {"days": 1, "cells": 96},
        {"days": 28.0},
        {"days": True},
    ],
)
def test_a_layout_that_is_none_is_refused_by_name(wrong: dict[str, int]) -> None:
    with pytest.raises(ParameterError):
        PeriodLayout(**{"slot_seconds": 900, "days": 28, "cells": 24, "block": 4, **wrong})


@pytest.mark.parametrize("layout", [SMALL, SHARED, PeriodLayout(900, 7, 24, 3600)])
def test_every_slot_is_in_one_period_and_one_cell(layout: PeriodLayout) -> None:
    for period in (0, 3):
        first = layout.first_slot(period)
        of_period = range(first, layout.first_slot(period + 1))
        assert {layout.period(slot) for slot in of_period} == {period}
        many = [layout.cell(slot) for slot in of_period]
        assert {many.count(cell) for cell in range(layout.cells)} == {layout.slots_in_cell}
        assert len(of_period) == layout.slots
    assert layout.cell(layout.first_slot(0)) == 0
    assert layout.period(layout.first_slot(0) - 1) == -1
