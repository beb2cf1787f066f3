"""A forecast is arithmetic: what it rests on, what it refuses, and what it must not depend on."""

import itertools
from fractions import Fraction
from math import isfinite

import numpy as np
import pytest

from agent.config.sections import WindowTable
from edge_ldp import Hybrid, ParameterError, SquareWave, Tuned
from edge_ldp.protocol.ledger import Window, scheduled
from edge_ldp.protocol.plan_bounds import PlanBounds, PlanRequest, misshape
from edge_ldp.ratio import floor_ratio
from edge_ldp.sums import (
    EVERY_SLOT,
    SHIPPED,
    Fleet,
    ForecastRow,
    Question,
    forecast,
    half_width,
    homes_law,
    law_in_time,
    law_of,
    splits,
)
from edge_ldp.sums.forecast import (
    NAMES,
    SHARES,
    half_of,
    horizons_of,
    stream_mechanism,
    tried_thresholds,
)
from edge_ldp.sums.law import HOMES, HOMES_CEILING
from edge_ldp.sums.strata import expected_cases
from firmware_stubs.data import load_swiss

HOMES_LAW = homes_law(0, HOMES_CEILING)
Z = 1.959964
GIVEN = {"unit_variance": 4.0, "span": 100.0, "share": 0.5}


def test_the_guess_is_the_bundled_homes() -> None:
    real = law_of(load_swiss().ravel(), 0, HOMES_CEILING, clamp=True)
    assert sum(share for share, _ in HOMES) == 10_000
    assert HOMES_LAW.mean == pytest.approx(real.mean, rel=0.001)
    for theta in (4_000, 8_000, 14_000, 20_000, 30_000):
        ours, theirs = HOMES_LAW.cut(theta), real.cut(theta)
        assert ours.mean == pytest.approx(theirs.mean, rel=0.01)
        assert ours.tail == pytest.approx(theirs.tail, rel=0.02)
        assert ours.variance == pytest.approx(theirs.variance, rel=0.02)
        assert ours.slope == pytest.approx(theirs.slope, rel=0.15)


def test_each_line_of_the_guess_is_the_mean_of_its_share_of_the_bundled_readings() -> None:
    watts = np.sort(load_swiss().ravel().clip(0, HOMES_CEILING))
    ends = np.round(np.cumsum([0, *(share for share, _ in HOMES)]) * len(watts) / 10_000)
    means = [watts[int(a) : int(b)].mean() for a, b in itertools.pairwise(ends)]
    assert [round(mean) for mean in means] == [mean for _, mean in HOMES]


def test_the_guess_grows_with_the_range_or_meets_the_mean_given() -> None:
    assert HOMES_LAW.source == "a guess: 400 Swiss homes in winter"
    assert homes_law(0, HOMES_CEILING, mean=400).source == f"{HOMES_LAW.source}, scaled"
    assert homes_law(0, 10 * HOMES_CEILING).mean == pytest.approx(10 * HOMES_LAW.mean)
    assert homes_law(-500, HOMES_CEILING - 500).mean == pytest.approx(HOMES_LAW.mean - 500)
    assert homes_law(0, HOMES_CEILING, mean=400).mean == pytest.approx(400)


def test_a_law_is_that_of_the_sample() -> None:
    law = law_of([0, 2, 2, 10], 0, 10)
    cut = law.cut(4)
    assert (law.mean, cut.mean, cut.tail) == (3.5, 2.0, 1.5)
    assert cut.variance == pytest.approx(2.0)  # of 0, 2, 2, 4
    assert cut.slope == pytest.approx(10 / 4)  # values above θ over those below, each scaled by 1 %
    assert law.masses([0, 2, 5, 11]).tolist() == [0.25, 0.5, 0.25]


@pytest.mark.parametrize(
    ("readings", "told"),
    [
        ([], "one reading or more"),
        ([[1, 2]], "one reading or more"),
        (["a"], "an array of numbers"),
        ([1.0, float("nan"), float("inf")], "2 of 3 are missing"),
        ([-1, 5, 12], "readings in 0..10; 2 of 3 lie outside"),
    ],
)
def test_readings_that_are_none_are_refused_and_not_shown(readings: object, told: str) -> None:
    with pytest.raises(ParameterError, match=told) as caught:
        law_of(np.array(readings), 0, 10, name="home.csv:power")
    assert caught.value.name == "home.csv:power"


def test_readings_outside_are_clamped_where_that_is_asked_for() -> None:
    assert law_of([-5, 20], 0, 10, clamp=True).values.tolist() == [0, 10]


def test_a_horizon_that_the_days_do_not_hold_is_refused() -> None:
    with pytest.raises(ParameterError, match="one of whole, day, hour-of-day for 13 days"):
        forecast(Fleet(400, 13), HOMES_LAW, horizon="week")
    assert list(horizons_of(Fleet(400, 1, slots_a_day=1))) == ["whole"]
    assert tuple(horizons_of(Fleet(400, 28))) == NAMES


def test_readings_in_time_have_a_law_of_every_hour_day_and_week() -> None:
    readings = np.arange(2 * 15 * 48).reshape(2, -1) % 1000
    law = law_in_time(np.where(readings == 7, np.nan, readings), 0, 999, 48)
    assert {name: len(parts) for name, parts in law.parts.items()} == {
        "week": 2,
        "day": 15,
        "hour-of-day": 24,
    }
    hours = readings.reshape(2, 15, 24, 2)
    assert law.parts["hour-of-day"][5].mean == pytest.approx(hours[:, :, 5].mean())
    assert law.parts["day"][14].mean == pytest.approx(hours[:, 14].mean())
    assert law.parts["week"][1].mean == pytest.approx(hours[:, 7:14].mean())
    assert law.mean == pytest.approx(readings[readings != 7].mean())


@pytest.mark.parametrize("readings", [[1, 2], [[1, 2, 3]], [[np.nan, np.nan]], [[]]])
def test_readings_that_are_no_whole_days_in_time_are_refused(readings: object) -> None:
    with pytest.raises(ParameterError, match="readings of homes × slots, whole days of 2"):
        law_in_time(np.array(readings), 0, 10, 2)


def test_a_window_only_lowers_the_number_of_reports() -> None:
    half = forecast(Fleet(400, 28, window=Window(1, 2, 1)), HOMES_LAW)
    all_of_half = forecast(Fleet(200, 28, window=EVERY_SLOT), HOMES_LAW)
    assert [row._replace(homes=0) for row in half.rows] == [
        row._replace(homes=0) for row in all_of_half.rows
    ]
    shared = Fleet(400, 28, window=Window(8, 97, 2, 107))
    assert shared.reports == pytest.approx(Fleet(400, 28).reports / 2)
    assert shared.total == Fraction(8)
    assert shared.a_day == pytest.approx(8 * 96 / 107)


def test_theta_and_share_are_the_best_for_the_horizon_asked() -> None:
    fleet = Fleet(400, 28)
    unit_variance = stream_mechanism(Fraction(1)).unit_variance
    for horizon, stratum in horizons_of(fleet).items():
        found = forecast(fleet, HOMES_LAW, horizon=horizon)
        others = [
            half_of(fleet.reports, stratum, HOMES_LAW, unit_variance, share, candidate)
            for candidate in tried_thresholds(fleet, HOMES_LAW)[::8]
            for share in SHARES[::3]
        ]
        assert found.asked.half <= min(others)
        assert found.asked.percent == pytest.approx(100 * found.asked.half / HOMES_LAW.mean)
        assert found.horizon == found.asked.horizon == horizon


def test_hours_that_are_alike_in_time_are_forecast_as_hours_that_do_not_differ() -> None:
    fleet, readings = Fleet(400, 28), np.tile(np.arange(0, 6000, 250), (24, 28))
    alike = np.stack([np.roll(row, at) for at, row in enumerate(readings)])
    law = law_in_time(alike, 0, 20_000, 24)
    found = forecast(fleet, law)
    (made,) = (one for one in tried_thresholds(fleet, law) if one.theta == found.theta)
    for row in found.rows:
        horizon = horizons_of(fleet)[row.horizon]._replace(differ=0.0)
        made = made._replace(cut=made.cut._replace(slope=0.0))
        asked = fleet.reports, horizon, law, stream_mechanism(Fraction(1)).unit_variance
        assert row.half == pytest.approx(half_of(*asked, found.share, made))


def test_hours_in_phase_are_known_as_their_own_readings_let_them() -> None:
    """Readings in time say that an hour's are all alike: what is left is the mechanism's noise."""
    day = np.where(np.arange(24) < 8, 5800, 0)
    readings = np.tile(day, (10, 28))
    fleet = Fleet(400, 28, 8, scheduled(1, 97, 1, 900))
    plain = forecast(fleet, law_of(readings.ravel(), 0, 6000))
    known = forecast(fleet, law_in_time(readings, 0, 6000, 24))
    assert (known.theta, known.share, known.rows[0]) == (plain.theta, plain.share, plain.rows[0])
    assert known.asked.half < 0.5 * plain.asked.half


def test_with_endless_reports_a_survey_cells_width_is_left() -> None:
    """A quarter of the 43 W of a cell, in the share of values that lie above the truncated mean."""
    fleet = Fleet(400, 28)
    whole = horizons_of(fleet)["whole"]
    for made in tried_thresholds(fleet, HOMES_LAW)[10::20]:
        left = made.cut.mean / made.theta * (HOMES_CEILING // 1024) / 4
        assert half_of(1e30, whole, HOMES_LAW, 4.0, 0.5, made) == pytest.approx(left, rel=1e-4)


def test_a_group_stands_by_its_own_reports() -> None:
    found = forecast(Fleet(400, 28, group=100), HOMES_LAW)
    whole, *_, group = found.rows
    assert (group.homes, group.strata) == (100, 1)
    assert group.reports == whole.reports / 4
    # not quite twice as wide: a tail that is hardly seen moves the upper end only
    assert 1.5 * whole.half < group.half < 2 * whole.half


def test_more_homes_days_and_budget_never_make_an_interval_wider() -> None:
    def asked(fleet: Fleet) -> float:
        return forecast(fleet, HOMES_LAW).asked.half

    start = asked(Fleet(400, 28))
    assert asked(Fleet(500, 28)) < start
    assert asked(Fleet(400, 35)) < start
    assert asked(Fleet(400, 28, epsilon="1.5")) < start
    assert asked(Fleet(400, 28, window=Window(9, 97, 1, 107))) < start


def test_splits_keep_the_windows_epsilon_and_what_was_asked() -> None:
    fleet = Fleet(400, 28)
    found = splits(fleet)
    assert fleet in found
    assert all(each.total == fleet.total for each in found)
    assert [each.window.reports for each in found] == [1, 2, 4, 8, 16, 32, 64]
    assert splits(Fleet(400, 28, window=EVERY_SLOT)) == (Fleet(400, 28, window=EVERY_SLOT),)
    three = Window(3, 97, 1, 107)
    assert three in [each.window for each in splits(Fleet(400, 28, 1, three))]


def test_one_report_tells_no_more_than_its_epsilon() -> None:
    odds = forecast(Fleet(400, 28, epsilon=2), HOMES_LAW).guess
    assert odds / (1 - odds) == pytest.approx(np.exp(2))


def test_few_reports_are_said() -> None:
    """Below a hundred of a kind, exactly."""

    def few(fleet: Fleet) -> list[str]:
        return [row.horizon for row in forecast(fleet, HOMES_LAW).rows if row.few]

    assert few(Fleet(400, 28)) == []
    assert few(Fleet(3, 28)) == ["week", "day", "hour-of-day"]
    for homes, is_few in ((399, True), (400, False)):
        found = forecast(Fleet(homes, 1, 1, EVERY_SLOT, 1), HOMES_LAW, horizon="whole")
        assert (found.share, found.asked.few) == (0.75, is_few)  # a quarter are of the stream


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(3, 7)])
def test_a_profile_is_of_a_power_of_two_values_from_0_on(epsilon: Fraction) -> None:
    mechanism = stream_mechanism(epsilon)
    assert (mechanism.low, mechanism.high) == (0, 1 << 14)


@pytest.mark.parametrize(("homes", "group"), [(1, 1), (30, 30), (10**8, 1)])
def test_a_group_is_of_one_home_to_all_of_them_and_homes_are_a_hundred_million_at_most(
    homes: int, group: int
) -> None:
    assert Fleet(homes, 1, group=group).group == group
    for wrong in ((10**8 + 1, group), (homes, 0), (homes, homes + 1)):
        with pytest.raises(ParameterError):
            Fleet(wrong[0], 1, group=wrong[1])


def test_a_mean_of_zero_has_no_percent() -> None:
    balanced = law_of([-100, 100], -1000, 1000)
    assert [row.percent for row in forecast(Fleet(10, 1), balanced).rows] == [None, None]


@pytest.mark.parametrize("epsilon", ["0.05", "0.3", "10"])
@pytest.mark.parametrize(
    ("low", "ceiling", "readings"),
    [
        (0, 1, [0, 1]),
        (0, 10**9, [100, 200, 300]),
        (-20_000, 0, [-500, -1]),
        (0, 43_470, [43_470]),
        (5, 50, [5, 5]),
    ],
)
def test_any_law_and_budget_have_a_finite_forecast(
    low: int, ceiling: int, readings: list[int], epsilon: str
) -> None:
    law = law_of(readings, low, ceiling)
    for homes in (1, 10**6):
        rows: tuple[ForecastRow, ...] = forecast(Fleet(homes, 14, epsilon), law).rows
        assert all(isfinite(row.half) and row.half > 0 for row in rows)


def counted(reports: float, tail_sd: float, reach: float = 0) -> tuple[float, float, float, float]:
    """Return a stratum's noise and its own tail's variance by GIVEN, then as they are printed.

    Each has one more observation, of the largest variance that there may be.
    """
    half = reports / 2
    noise, tail = 4 * 50**2 / half, tail_sd**2 / half
    more = (4 * 50**2 + 50**2) / half**2, (tail_sd**2 + (reach / 2) ** 2) / half**2
    return noise, tail, noise + more[0], tail + more[1]


@pytest.mark.parametrize("reach", [0, 3000])
def test_the_whole_is_the_formula_of_two_variances_where_its_tail_is_large(reach: float) -> None:
    found = half_width(Question(1000), **GIVEN, tail_sd=400, reach=reach, tail=1e6, variance=25)
    noise, _, told, own = counted(1000, 400, reach)
    assert (found.noise, found.tail) == pytest.approx((noise + 25 / 500, own))
    assert found.half == pytest.approx(Z * (told + 25 / 500 + own) ** 0.5)


def test_an_unseen_tail_widens_the_upper_half_only() -> None:
    """With no tail the estimate is as often below 0 as above: half of what it adds is printed."""
    found = half_width(Question(1000), **GIVEN, tail_sd=400)
    _, _, told, own = counted(1000, 400)
    assert found.half == pytest.approx(Z * (told**0.5 + (told + own) ** 0.5) / 2)


def test_without_a_tail_to_estimate_only_noise_is_left() -> None:
    found = half_width(Question(1000), **GIVEN, tail_sd=0)
    assert found.half == pytest.approx(Z * counted(1000, 0)[2] ** 0.5)


def with_a_tail(mean: float, square: float, extra: float) -> float:
    """Return E max(0, T + extra) for a normal tail T, by summing over it."""
    tails = np.linspace(-12, 12, 200_001) * square**0.5 + mean
    law = np.exp(-((tails - mean) ** 2) / 2 / square)
    return float(np.maximum(0, tails + extra) @ law / law.sum())


@pytest.mark.parametrize(("differ", "slope"), [(0.0, 0.0), (0.25, 0.3), (1.5, 1.0)])
@pytest.mark.parametrize("tail", [5.0, 20.0, 1e6])
def test_a_stratums_width_is_the_mean_over_how_far_it_leans_on_its_own_tail(
    differ: float, slope: float, tail: float
) -> None:
    found = half_width(
        Question(24_000, 24), **GIVEN, tail_sd=400, tail=tail, slope=slope, differ=differ
    )
    noise, varies, told, own = counted(1000, 400)
    spread = (differ * tail) ** 2
    cases = expected_cases(24, (varies + spread) / own - 1)
    halves = []
    steep = (own + spread) / 22  # the line's slope comes from noise too
    for put, lean in zip(*cases, strict=True):
        square = varies * (lean**2 + (1 - lean**2) * 2 / 24) + spread
        carried = told * (1 + (1 - lean) * slope) ** 2 + (1 - lean) ** 2 * steep
        extra = Z * ((carried + own * put) ** 0.5 - told**0.5)
        ends = [with_a_tail(tail, square, by) for by in (extra, -extra)]
        halves.append(Z * told**0.5 + (ends[0] - ends[1]) / 2)
    assert found.half == pytest.approx(np.mean(halves), rel=1e-5)
    assert found.noise == pytest.approx(noise)
    assert found.tail == pytest.approx(own * cases[0].mean())


def test_many_strata_borrow_the_tail_and_three_do_not() -> None:
    def tail(strata: int) -> float:
        return half_width(Question(1000.0 * strata, strata), **GIVEN, tail_sd=400).tail

    assert tail(3) == pytest.approx(tail(1))
    assert tail(24) < tail(4) < tail(1)


def test_strata_lean_on_their_own_tails_as_these_differ() -> None:
    means = [expected_cases(24, spread2)[1].mean() for spread2 in (-1.0, 0.0, 0.5, 4.0)]
    assert means == sorted(means)
    assert (means[1] < 0.2, means[-1] > 0.7) == (True, True)
    assert [found.tolist() for found in expected_cases(3, 0.0)] == [[1.0], [1.0]]


def test_what_ships_is_what_is_forecast_by_default() -> None:
    ships = WindowTable()
    assert Fleet(1, 1).window == SHIPPED == scheduled(ships.reports, ships.slots, 1, 900)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(2), Fraction(8)])
def test_no_theta_is_forecast_that_devices_refuse_by_default_PLN_14(epsilon: Fraction) -> None:
    """A law of which all lies far below its ceiling: the best θ would be about its mean."""
    low, ceiling = -100, 20_000
    found = forecast(Fleet(400, 28, epsilon), law_of(np.full(500, 7), low, ceiling))
    sums = {made.name: made for made in (Tuned, Hybrid)}[found.mechanism]
    survey = SquareWave(epsilon=epsilon, low=low, high=ceiling, size=1024)

    def refused(theta: int) -> bool:
        made = sums(epsilon=epsilon, low=low, high=theta)
        asked = PlanRequest(low, ceiling, floor_ratio(epsilon), made, survey, (1, 2))
        return misshape(asked, PlanBounds()) is not None

    assert not refused(found.theta)
    assert refused(found.theta - 1) == (epsilon <= 2)  # at 8 the best is higher anyway
