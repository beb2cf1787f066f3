"""Reports of a studied fleet are those of devices: their ledgers' slots, their mechanisms' laws."""

from itertools import combinations

import numpy as np
import pytest

from edge_ldp.protocol.ledger import Window
from studies.evaluate.study import Values
from studies.evaluate.sums import laws
from studies.evaluate.sums.fleet import Setting, StudiedHomes, coded, epochs, fleet_of, presence
from studies.evaluate.sums.given import (
    DAYS,
    GROUPS,
    HOUR,
    RANGE,
    WEEKS,
    WHOLE,
    answers_of,
    possible,
    run_given,
    strata_of,
)

READINGS = np.random.default_rng(1).integers(-3, 17, (3, 8))
THERE = np.ones(READINGS.shape, np.bool_)
FLEET = StudiedHomes(READINGS, THERE, -3, 16, 4, 1.0, copies=1)
VALUES = Values("some", np.arange(48) % 17, 0, 16, "W", "counting", homes=2, slots_per_day=4)


def always(shape: tuple[int, int], a_day: int, high: int = 9) -> StudiedHomes:
    """Return homes of zeros that are always there."""
    zeros = np.zeros(shape, np.int64)
    return StudiedHomes(zeros, np.ones(shape, np.bool_), 0, high, a_day, 1.0, copies=1)


@pytest.mark.parametrize("theta", [-2, 5, 16])
def test_a_code_is_drawn_from_the_readings_own_law(theta: int) -> None:
    """Of 40,000 each, within five standard deviations of every code's probability; seeded."""
    setting, n = Setting(FLEET.stream(theta), FLEET.survey, 0.25), 40_000
    rng = np.random.default_rng(theta + 3)
    for reading in (-3, 0, 7, 16):
        codes = coded(setting, np.full(n, reading), rng)
        assert codes.survey.mean() == pytest.approx(0.25, abs=0.02)
        for mechanism, mine in ((setting.stream, ~codes.survey), (setting.survey, codes.survey)):
            law = np.array(mechanism.probabilities(reading), float)
            found = np.bincount(codes.code[mine], minlength=len(law)) / mine.sum()
            assert (np.abs(found - law) <= 5 * np.sqrt(law / mine.sum()) + 1e-12).all()


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0, 8.0])
def test_reports_are_those_of_every_homes_own_ledger_AGG_31(epsilon: float) -> None:
    """AGG_31: k random cells of the period, for ever; of them those slots the home is there in."""
    shape = (40, 4 * 107)
    there = np.random.default_rng(2).random(shape) < 0.9
    readings = np.arange(shape[0] * shape[1]).reshape(shape)
    fleet = StudiedHomes(readings, there, 0, readings.size, 96, epsilon, copies=2)
    assert fleet.window == Window(int(8 / epsilon), 97, 1, 107)
    reports = fleet.drawn(np.random.default_rng(3))
    due = np.zeros((80, 428), np.int64)
    np.add.at(due, (reports.home, reports.slot), 1)
    assert due.max() == 1
    assert not due[:, ~there.any(axis=0)].any()
    assert (reports.value == readings[reports.home % 40, reports.slot]).all()
    cells = due.reshape(80, 4, 107).max(axis=1)
    assert (cells.sum(axis=1) <= fleet.window.reports).all()
    assert (
        due.reshape(80, 4, 107) == cells[:, None] * np.tile(there, (2, 1)).reshape(80, 4, 107)
    ).all()
    assert cells.sum() > 0.98 * 80 * fleet.window.reports
    assert fleet.reports == pytest.approx(there.sum() * 2 * fleet.window.reports / 107)


def test_codes_are_counted_by_stratum_and_none_is_left_out() -> None:
    setting = Setting(FLEET.stream(5), FLEET.survey, 0.5)
    codes = coded(setting, np.full(1000, 4), np.random.default_rng(0))
    found = epochs(setting, codes, np.arange(1000) % 4 - 1, 3)
    assert [np.sum(one.stream.counts) + np.sum(one.survey.counts) for one in found] == [250] * 3
    assert np.sum(found[0].survey.counts) == codes.survey[1::4].sum()


def test_homes_join_leave_and_miss_slots_whatever_they_use() -> None:
    there = presence((400, 28 * 96), 96, np.random.default_rng(1))
    assert 0.75 < there.mean() < 0.92
    assert 0.1 < 1 - there[:, :96].any(axis=1).mean() < 0.3
    assert 0.1 < 1 - there[:, -96:].any(axis=1).mean() < 0.3
    assert presence((1, 28 * 96), 96, np.random.default_rng(1)).mean() > 0.85


def test_readings_stand_by_homes_and_each_home_as_often_as_reports_ask_for() -> None:
    fleet = fleet_of(VALUES, 1.0)
    assert fleet.readings.tolist() == VALUES.values.reshape(2, 24).tolist()
    assert fleet.copies > 1000


def test_the_effect_is_the_variance_of_a_runs_mean_over_all_cells_a_home_may_draw_AGG_31() -> None:
    """AGG_31: enumerated for one home of 2 reports in a period; and what they have at 97 slots."""
    readings = np.random.default_rng(4).integers(0, 50, (1, 96))
    fleet = StudiedHomes(readings, readings > 4, 0, 50, 24, 4.0, copies=1)
    window = fleet.window
    off = np.where(fleet.present, readings - readings[fleet.present].mean(), 0)[0]
    cells = [off[first :: window.period].sum() for first in range(window.period)]
    sums = [a + b for a, b in combinations(cells, 2)]
    assert window.reports == 2
    assert fleet.effect == pytest.approx(
        np.var(sums) / (float(window.chance) * (off**2).sum()), rel=1e-12
    )


@pytest.mark.parametrize("name", laws.NAMES)
def test_no_laws_mean_varies_more_than_by_independent_slots_at_any_split_AGG_31(name: str) -> None:
    """AGG_31: exactly, over all cells that homes may draw."""
    values = laws.made_fleet(name)
    assert max(fleet_of(values, epsilon).effect for epsilon in (1.0, 2.0, 4.0, 8.0)) < 0.9


def test_hours_days_and_weeks_are_of_the_run_and_whole() -> None:
    fleet = always((1, 24 * 17), 24)
    times = np.arange(24 * 17)
    hours, count = strata_of(HOUR, times, fleet)
    assert (hours[25], count) == (1, 24)
    days, count = strata_of(DAYS, times, fleet)
    assert (days[25], days[-1], count) == (1, 16, 17)
    weeks, count = strata_of(WEEKS, times + 1000, fleet)
    assert (weeks[0], weeks[-1], count) == (0, -1, 2)
    assert strata_of(WHOLE, times, fleet)[1] == 1
    assert possible(WEEKS, fleet)
    assert not any(possible(name, fleet) for name in GROUPS)


def test_slots_shorter_than_an_hour_are_asked_for_by_hours() -> None:
    fleet = always((1, 96 * 2), 96)
    assert fleet.times.tolist() == [slot // 4 for slot in range(192)]
    assert not possible(HOUR, always((1, 96 * 2), 12))


def test_an_answers_truth_is_of_the_slots_in_which_homes_were_there() -> None:
    """The readings of those there are 1, of the others 0."""
    readings = np.zeros((80, 48), np.int64)
    there = np.random.default_rng(1).random(readings.shape) < 0.5
    readings[there] = 1
    fleet = StudiedHomes(readings, there, 0, 100, 24, 1.0)
    rng = np.random.default_rng(2)
    run = run_given(fleet, rng)
    for horizon in (WHOLE, DAYS, HOUR, RANGE, "group of 30"):
        assert {one.truth for one in answers_of(horizon, fleet, run, rng)} == {1.0}


@pytest.mark.parametrize("name", laws.NAMES)
def test_a_made_fleet_is_always_the_same_and_within_its_range(name: str) -> None:
    found = laws.made_fleet(name)
    assert found.values.min() >= found.low
    assert found.values.max() <= found.ceiling
    assert found.homes == laws.HOMES
    slots = (laws.DAYS * laws.SLOTS, laws.IN_PHASE_DAYS * laws.IN_PHASE_SLOTS)
    assert len(found.values) // laws.HOMES == slots[found.slots_per_day == laws.IN_PHASE_SLOTS]


def test_made_laws_are_what_they_are_called() -> None:
    share = {
        name: laws.made_fleet(name).values for name in ("far-atom", "heap", "two-stuck", "narrow")
    }
    assert ((share["far-atom"] > 34_000) & (share["far-atom"] < 36_000)).mean() == pytest.approx(
        0.003, abs=1e-5
    )
    assert (share["heap"] == laws.CEILING).mean() == pytest.approx(0.01, abs=1e-5)
    assert (share["two-stuck"] == laws.CEILING).mean() == pytest.approx(0.0005, abs=1e-5)
    assert share["narrow"].std() == pytest.approx(20, abs=0.5)
    by_home = share["far-atom"].reshape(laws.HOMES, -1) > 34_000
    assert by_home.any(axis=1).mean() < 0.5  # few homes have it, as with chargers
