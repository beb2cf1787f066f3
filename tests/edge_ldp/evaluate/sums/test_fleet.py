"""What reports of a fleet are counted from is exact: against each reading's own law."""

import numpy as np
import pytest

from edge_ldp.evaluate.study import Values
from edge_ldp.evaluate.sums import laws
from edge_ldp.evaluate.sums.fleet import HOMES, INDEPENDENT, Setting, StudiedHomes, fleet_of
from edge_ldp.evaluate.sums.given import (
    DAYS,
    GROUPS,
    HOUR,
    WEEKS,
    WHOLE,
    group,
    possible,
    strata_of,
)

READINGS = np.random.default_rng(1).integers(-3, 17, (3, 8))
FLEET = StudiedHomes(READINGS, -3, 16, 4, 1.0)
VALUES = Values("some", np.arange(48) % 17, 0, 16, "W", "counting", homes=2, slots_per_day=4)


@pytest.mark.parametrize("theta", [-2, 5, 16])
def test_expected_counts_are_the_sums_of_every_readings_law(theta: int) -> None:
    setting = Setting(FLEET.stream(theta), FLEET.survey, 0.25)
    cells = FLEET.by_home(theta)
    assert cells.sums.tolist() == READINGS.sum(axis=1).tolist()
    assert cells.n.tolist() == [8, 8, 8]
    found = cells.expected(setting, 2)
    for mechanism, share, counts in zip(
        (setting.stream, setting.survey), (0.75, 0.25), found, strict=True
    ):
        for home, told in zip(READINGS.tolist(), counts, strict=True):
            law = np.sum([np.array(mechanism.probabilities(v), float) for v in home], axis=0)
            np.testing.assert_allclose(told, 2 * share * law, rtol=1e-9, atol=1e-12)


def test_strata_are_the_sums_of_times_and_none_is_left_out_twice() -> None:
    cells = FLEET.by_time(5)
    assert len(cells.n) == 8
    assert cells.sums.tolist() == READINGS.sum(axis=0).tolist()
    merged = cells.merged(np.array([0, 0, 1, 1, -1, 1, 0, -1]), 2)
    assert merged.n.tolist() == [9, 9]
    assert merged.sums[0] == READINGS[:, [0, 1, 6]].sum()
    assert cells.part(2, 4).n.tolist() == [3, 3]


def test_readings_stand_by_homes_or_are_the_same_ones_in_any_order() -> None:
    homes, drawn = (fleet_of(VALUES, mode, 1.0) for mode in (HOMES, INDEPENDENT))
    assert homes.readings.tolist() == VALUES.values.reshape(2, 24).tolist()
    assert sorted(drawn.readings.ravel().tolist()) == sorted(VALUES.values.tolist())
    assert drawn.readings.tolist() != homes.readings.tolist()
    assert homes.copies > 1000


def test_hours_days_and_weeks_are_of_the_run_and_whole() -> None:
    fleet = StudiedHomes(np.zeros((1, 24 * 17), np.int64), 0, 9, 24, 1.0)
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
    fleet = StudiedHomes(np.zeros((1, 96 * 2), np.int64), 0, 9, 96, 1.0)
    assert fleet.times.tolist() == [slot // 4 for slot in range(192)]
    assert not possible(HOUR, StudiedHomes(fleet.readings, 0, 9, 12, 1.0))


def test_a_group_is_that_many_homes() -> None:
    fleet = StudiedHomes(np.zeros((80, 2), np.int64), 0, 9, 1, 1.0)
    chosen = group("group of 30", fleet, np.random.default_rng(0))
    assert (chosen == 0).sum() == 30


@pytest.mark.parametrize("name", laws.NAMES)
def test_a_made_fleet_is_always_the_same_and_within_its_range(name: str) -> None:
    found = laws.made_fleet(name)
    assert found.values.min() >= found.low
    assert found.values.max() <= found.ceiling
    assert found.homes == laws.HOMES
    assert len(found.values) == laws.HOMES * laws.DAYS * laws.SLOTS


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
