"""The schedule samples day and week well: its design effect, enumerated."""

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from edge_ldp.protocol.ledger import MAX_CELLS, Window, scheduled
from edge_ldp.protocol.schedule import DAYS, WAVES, chosen_period, design_effect
from edge_ldp.sums.forecast import SHIPPED

Floats = npt.NDArray[np.float64]

SLOT_LENGTHS = (60, 300, 600, 900, 1800, 3600)  # seconds
DAY_S = 86_400


def enumerated(period: int, slot_seconds: int, length_s: int, on_s: int) -> Floats:
    """Return the effect for each phase of a wave: every residue, every slot."""
    slots, of = DAYS * DAY_S // slot_seconds, length_s // slot_seconds
    visits = np.zeros((period, of))
    np.add.at(visits, (np.arange(slots) % period, np.arange(slots) % of), 1)
    on = on_s // slot_seconds
    up_to = np.concatenate([np.zeros((period, 1)), np.tile(visits, 2).cumsum(axis=1)], axis=1)
    seen = up_to[:, on : on + of] - up_to[:, :of]
    excess = seen - visits.sum(axis=1, keepdims=True) * (on / of)
    effects: Floats = (excess**2).sum(axis=0) / (slots * (on / of) * (1 - on / of))
    return effects


@pytest.mark.parametrize("slot_seconds", [300, 900, 3600])
@pytest.mark.parametrize("period", [4, 25, 97, 107])
def test_the_effect_is_that_of_all_residues_averaged_over_phases(
    slot_seconds: int, period: int
) -> None:
    means = [enumerated(period, slot_seconds, *wave).mean() for wave in WAVES]
    assert float(design_effect(period, slot_seconds)) == pytest.approx(max(means))


@pytest.mark.parametrize("slot_seconds", SLOT_LENGTHS)
def test_the_shipped_window_samples_day_and_week_in_every_phase_AGG_31(slot_seconds: int) -> None:
    """AGG_31: at most 0.6 of what independent slots have; 97 slots of a quarter hour had 17."""
    for reports in (1, 2, 4, 8):
        window = scheduled(reports, 97, 1, slot_seconds)
        assert 97 <= window.period <= 107
        assert max(enumerated(window.period, slot_seconds, *wave).max() for wave in WAVES) <= 0.6


def test_97_quarter_hours_come_back_at_the_same_time_of_day_for_weeks_AGG_31() -> None:
    """AGG_31: the control."""
    assert design_effect(97, 900) > 16
    assert enumerated(97, 900, DAY_S, DAY_S // 2).max() > 16


def test_the_shipped_window_is_what_is_scheduled() -> None:
    assert scheduled(8, 97, 1, 900) == SHIPPED == Window(8, 97, 1, 107)


@pytest.mark.parametrize("slot_seconds", SLOT_LENGTHS)
@pytest.mark.parametrize("slots", [1, 2, 3, 4, 24, 48, 95, 96, 97, 98, 168, 192, 336, 672])
def test_whatever_window_an_owner_writes_its_slots_are_as_good_as_independent_ones_AGG_31(
    slots: int, slot_seconds: int
) -> None:
    """AGG_31."""
    window = scheduled(1, slots, 1, slot_seconds)
    assert slots <= window.period <= 3 * slots
    assert design_effect(window.period, slot_seconds) <= 1


def test_a_window_that_every_slot_reports_in_keeps_its_length() -> None:
    for slots, streams in ((96, 1), (24, 1), (1, 3), (96, 2)):
        window = scheduled(slots * streams, slots, streams, 900)
        assert window.period == slots
        assert design_effect(slots, 900, reports=slots * streams, streams=streams) == 0


def test_of_several_reports_the_effect_is_less_by_what_a_draw_without_replacement_saves() -> None:
    one = design_effect(97, 900)
    assert design_effect(97, 900, reports=8) == one * Fraction(97 - 8, 96)
    assert design_effect(97, 900, reports=8, streams=2) == one * Fraction(194 - 8, 192)


def test_a_period_has_room_in_a_ledger() -> None:
    assert scheduled(1, MAX_CELLS // 2, 2, 60).period == MAX_CELLS // 2
    assert chosen_period(1, 97, 1, 900, 100) <= 100
    assert scheduled(1, MAX_CELLS, 1, 3600) == Window(1, MAX_CELLS, 1)


def test_waves_shorter_than_a_slot_do_not_count() -> None:
    assert design_effect(2, 8 * DAY_S) == 0
    assert scheduled(1, 7, 1, DAY_S).period == 9
