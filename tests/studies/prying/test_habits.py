"""The study of habits: its attackers are right where they must be, and guess where they must."""

import numpy as np
import pytest

from edge_ldp.period_sums import PeriodLayout, scale_for
from firmware_stubs.data import load_swiss
from studies.prying.gas import heated
from studies.prying.habits import (
    A_DAY,
    DAYS,
    HABITS,
    LONG,
    Attacker,
    Habit,
    Hourly,
    Plan,
    Sums,
    Way,
    alone,
    auc,
    by_others,
    lived,
    on,
    set_back,
    sums_of,
)

HOMES = np.maximum(load_swiss()[::80].astype(np.int64), 0)
NOTHING = Habit("nothing", 0, "always")
BIG = Habit("40 kW more, always", 40_000, "always")


@pytest.mark.parametrize(
    "way",
    [Way(8), Way(0, Sums(28, 1, 8)), Way(2, Sums(1, 1, 6)), Way(0, Sums(28, 24, 64, 4))],
    ids=lambda way: way.name,
)
def test_what_adds_all_is_found_and_what_adds_nothing_is_not(way: Way) -> None:
    plan = Plan(43_470)
    assert alone(HOMES, BIG, plan, way, 1) == by_others(HOMES, BIG, plan, way, 1) == 1
    found = alone(HOMES, NOTHING, plan, way, 1)
    assert found == 0.5 if way.sums is None else 0 <= found <= 1


def test_both_ways_together_tell_what_they_tell_apart_added_up() -> None:
    """The same draws: reports first, then the noise; their logarithms of likelihoods add up."""
    plan, month = Plan(43_470), HOMES[0][: DAYS * A_DAY]
    both, sums = (Attacker(HOMES, HABITS[4], plan, Way(n, Sums(7, 1, 8))) for n in (2, 0))
    reports = Attacker(HOMES, HABITS[4], plan, Way(2))
    rng, again = np.random.default_rng(5), np.random.default_rng(5)
    together = both.told(month, rng)
    first, second = reports.told(month, again), sums.told(month, again)
    for one, two, three in zip(together, first, second, strict=True):
        assert one == pytest.approx(two + three)


def test_every_value_has_a_law_and_codes_are_drawn_from_it() -> None:
    plan = Plan(17_250)
    assert plan.law.sum(axis=1) == pytest.approx(1)
    assert (plan.law > 0).all()
    values = np.full(20_000, 1_000)
    counts = np.bincount(plan.codes(values, np.random.default_rng(1)), minlength=len(plan.law[0]))
    expected = plan.law[plan.index(values[:1])[0]] * len(values)
    squares = ((counts - expected) ** 2 / expected).sum()
    assert squares < len(expected) + 6 * (2 * len(expected)) ** 0.5  # seeded


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.kind)
def test_a_habit_shows_where_it_says(habit: Habit) -> None:
    rng = np.random.default_rng(2)
    month = HOMES[0][: DAYS * A_DAY]
    shows = on(habit, rng)
    runs = {"known": DAYS * 8, "always": DAYS * A_DAY, "away": 7 * A_DAY}
    if habit.kind in runs:
        assert shows.sum() == runs[habit.kind]
    elif habit.kind == "random":
        assert 0 < shows.sum() < DAYS * A_DAY
    else:
        assert 0 < shows.sum() <= DAYS * LONG
        assert shows.sum() % LONG == 0
        assert not shows.reshape(DAYS, A_DAY)[:, 24:80].any()
    changed = lived(month, habit, np.random.default_rng(2)) - month
    assert (changed[~shows] == 0).all()
    if habit.watts:
        assert (changed[shows] == habit.watts).all()


def test_sums_are_over_their_part_of_the_day() -> None:
    month = np.repeat(np.arange(DAYS), A_DAY) * 100 + np.tile(np.arange(A_DAY) // 4, DAYS)
    by_hour = sums_of(month, Sums(7, 24, 8))
    assert by_hour.shape == (4, 24)
    assert by_hour[0, 5] == sum(4 * (100 * day + 5) for day in range(7))


def test_gas_by_the_hour_has_the_devices_noise_and_a_setback_saves() -> None:
    law = scale_for(PeriodLayout(3600, 7), 97, 6_000, 8, 4)
    assert Hourly(7, 1, 8).scale(6_000) / 4 == law
    homes = heated(3)
    assert (homes[:, ::4] == homes[:, 3::4]).all()
    day = set_back(np.full(A_DAY, 400))
    assert day[[0, 24, 50, 90]].tolist() == [100, 800, 400, 100]
    assert day.sum() == A_DAY * 400 - 32 * 300 // 2


def test_pairs_of_scores() -> None:
    assert auc([1.0, 2.0], [0.0, 2.0]) == (2 + 0.5) / 4
