"""θ and the share of surveys, chosen together: of a forecast by hand, and of one by reports."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edge_ldp import Hybrid, Mechanism, SquareWave
from edge_ldp.device.errors import ParameterError
from edge_ldp.errors import NoReportsError
from edge_ldp.sums import Question, half_width, tail_sds
from edge_ldp.sums.forecast import SHARES
from edge_ldp.threshold.choice import SLACK, Aim, Choice, Outlook, candidates, outlook

LOW, CEILING = -100, 1899
SURVEY: Mechanism = SquareWave(epsilon=1, low=LOW, high=CEILING, size=50)
AIM = Aim(
    low=LOW,
    ceiling=CEILING,
    unit_variance=Hybrid(epsilon=1, low=LOW, high=CEILING).unit_variance,
    survey=SURVEY,
    question=Question(1e6, 24),
)

Counts = NDArray[np.float64]


def by_hand(halves: list[list[float]], missed: list[list[float]]) -> Outlook:
    """Return the forecast of θ 10, 20, 40 and of shares 1/4, 1/2."""
    tails, variances = np.array([8.0, 4.0, 0.001]), np.array([9.0, 16.0, 25.0])
    thetas = np.array([10, 20, 40])
    return Outlook(thetas, (0.25, 0.5), np.array(halves), np.array(missed), tails, variances)


PLAIN = by_hand([[9, 12], [8, 11], [8.1, 14]], [[90, 80], [70, 60], [50, 40]])


def counts(shares: dict[int, float], n: int, mechanism: Mechanism = SURVEY) -> Counts:
    """Return the reports of n values as expected, in integers: `shares` of the values."""
    law = np.zeros(mechanism.code_count)
    for value, share in shares.items():
        law += share * np.array([float(p) for p in mechanism.probabilities(value)])
    return np.rint(n * law)


def test_of_choices_nearly_as_narrow_the_one_whose_truncated_sums_err_least_is_taken() -> None:
    """8.1 is within SLACK of 8, and its sums err by 50, not 70; 40 has the least error of all."""
    best = PLAIN.best()
    assert best == Choice(40, 0.25, 8.1, 8)
    beyond = 8 * (1 + SLACK) + 0.001
    narrower = by_hand([[9, 12], [8, 11], [beyond, 14]], PLAIN.missed.tolist())
    assert narrower.best() == Choice(20, 0.25, 8, 8)


def test_a_theta_and_share_in_force_are_kept_until_they_are_worse_by_the_hysteresis() -> None:
    assert PLAIN.keeps(40, 0.25, 0.0)
    assert not PLAIN.keeps(20, 0.25, 0.0)  # as narrow, but sums err by 70, not 50
    assert PLAIN.keeps(20, 0.25, 0.2)  # 1.2² · 50 = 72
    assert not PLAIN.keeps(20, 0.25, 0.18)  # 69.6
    assert not PLAIN.keeps(20, 0.5, 0.3)  # 11 > 1.3 · 1.02 · 8
    assert PLAIN.keeps(20, 0.5, 0.35)  # 11.016, and 60 < 91


def test_between_what_was_compared_it_is_a_straight_line() -> None:
    assert PLAIN.half(15, 0.25) == 8.5
    assert PLAIN.half(15, 0.375) == 10
    assert PLAIN.half(20, 0.5) == 11


@pytest.mark.parametrize(("theta", "share"), [(9, 0.25), (40, 0.2), (40, 0.51)])
def test_what_an_operator_ordered_outside_of_that_is_not_kept(theta: int, share: float) -> None:
    """The nearest that was compared says nothing of it: a share of 1/1000 is no share of 1/4."""
    assert not PLAIN.keeps(theta, share, 0.99)


def test_reach_is_where_next_to_nothing_is_seen_above() -> None:
    assert PLAIN.reach() == 40  # 0.001 is less than a thousandth of 8
    assert replace(PLAIN, tails=np.array([8.0, 4.0, 0.1])).reach() == 40  # the last there is
    assert replace(PLAIN, tails=np.array([8.0, 0.001, 0.0])).reach() == 20
    assert replace(PLAIN, tails=np.zeros(3)).reach() == 10


@pytest.mark.parametrize(("low", "ceiling"), [(0, 1), (-5, 4), (0, 43_470), (30_000, 1 << 40)])
def test_candidates_rise_from_near_low_to_the_ceiling_itself(low: int, ceiling: int) -> None:
    thetas = candidates(low, ceiling)
    assert thetas[-1] == ceiling
    assert thetas[0] > low
    assert (np.diff(thetas) > 0).all()
    ratios = (thetas[1:] - low) / (thetas[:-1] - low)
    assert ratios[thetas[:-1] - low > 20].max(initial=1) < 2 ** (1 / 6)
    assert thetas[0] - low <= max(1, (ceiling - low) // 1000)


def test_the_forecast_is_that_of_sums_with_the_tail_that_both_halves_show() -> None:
    """Reports of two values only, as many as expected: both halves show about their tail."""
    reports = {SURVEY: counts({0: 0.9, 1000: 0.1}, 4_000_000)}
    found = outlook(AIM, reports, np.random.default_rng(0))
    at = int(np.searchsorted(found.thetas, 400))
    theta = int(found.thetas[at])
    assert found.tails[at] == pytest.approx(0.1 * (1000 - theta), rel=0.1)
    assert found.tails[-1] == 0
    assert (np.diff(found.tails) <= 0).all()
    share = SHARES[4]
    wanted = half_width(
        AIM.question,
        unit_variance=AIM.unit_variance,
        span=float(theta - LOW),
        share=share,
        tail_sd=float(tail_sds(SURVEY, [theta])[0]),
        reach=float(CEILING - theta),
        tail=float(found.tails[at]),
        variance=float(found.variances[at]),
    )
    assert found.halves[at, 4] == pytest.approx(wanted.half)
    assert found.half(theta, share) == pytest.approx(wanted.half)
    assert found.asked(AIM, AIM.question, theta, share) == pytest.approx(wanted.half)
    longer = Question(4 * AIM.question.reports, AIM.question.strata)
    assert found.asked(AIM, longer, theta, share) < wanted.half


def test_AGG_31_a_schedule_that_walks_badly_counts_values_variance_as_often_as_it_says() -> None:
    reports = {SURVEY: counts({0: 0.9, 1000: 0.1}, 100_000)}
    found, worse = (
        outlook(replace(AIM, effect=effect), reports, np.random.default_rng(0))
        for effect in (0.3, 16.0)
    )
    np.testing.assert_allclose(worse.variances, 16 * found.variances)
    assert (worse.halves > found.halves).all()


def test_the_choice_is_the_narrowest_but_for_its_slack_and_within_the_shares_asked_for() -> None:
    reports = {SURVEY: counts({0: 0.9, 300: 0.1}, 100_000)}
    free = outlook(AIM, reports, np.random.default_rng(0)).best()
    assert free.least <= free.half <= (1 + SLACK) * free.least
    assert free.share in SHARES
    fixed = replace(AIM, shares=(1 / 50,))
    told = outlook(fixed, reports, np.random.default_rng(0)).best()
    assert told.share == 1 / 50
    assert told.half > free.half


class Split(np.random.Generator):
    """Draws nothing: the first half of the reports is the one given."""

    def __init__(self, first: Counts) -> None:
        super().__init__(np.random.PCG64(0))
        self._first = first.astype(np.int64)

    def binomial(self, *_: object) -> Any:
        return self._first


def test_AGG_29_what_only_one_half_shows_moves_nothing() -> None:
    honest = counts({0: 1.0}, 4000)
    phantom = counts(dict.fromkeys(range(0, 1900, 20), 1 / 95), 2000)
    alone = outlook(AIM, {SURVEY: 2 * honest}, Split(honest))
    whole = {SURVEY: 2 * honest + phantom}
    for first in (honest, honest + phantom):
        found = outlook(AIM, whole, Split(first))
        np.testing.assert_array_equal(found.tails, alone.tails)
        assert found.reach() == alone.reach()
    both = outlook(AIM, {SURVEY: 2 * (honest + phantom)}, Split(honest + phantom))
    at = int(np.searchsorted(alone.thetas, 1000))
    assert both.tails[at] > 40 > alone.tails[at]


def test_AGG_29_values_behind_empty_cells_are_seen_unless_they_may_be_a_phantom() -> None:
    """At ε = 4 the cells between heaps are surely empty; a hundred reports tell of no heap."""
    survey = SquareWave(epsilon=4, low=LOW, high=CEILING, size=200)
    aim = replace(AIM, survey=survey, question=Question(1e5, 24))
    heaps = {0: 0.6, 20: 0.3, 1200: 0.1}
    found = outlook(aim, {survey: counts(heaps, 20_000, survey)}, np.random.default_rng(0))
    below, above = np.searchsorted(found.thetas, [600, 1300])
    theta = int(found.thetas[below])
    assert found.tails[below] == pytest.approx(0.1 * (1200 - theta), rel=0.1)
    assert found.tails[above] < 0.001 * found.tails[0]
    few = outlook(aim, {survey: counts(heaps, 100, survey)}, np.random.default_rng(0))
    assert few.tails[below] == 0


def test_stream_reports_tell_of_values_too_and_order_does_not_matter() -> None:
    sums = Hybrid(epsilon=1, low=LOW, high=500, size=32)
    law = {0: 0.5, 100: 0.5}
    some: dict[Mechanism, Counts] = {SURVEY: counts(law, 100_000), sums: counts(law, 100_000, sums)}
    one = outlook(AIM, some, np.random.default_rng(0))
    two = outlook(AIM, some, np.random.default_rng(0))
    np.testing.assert_array_equal(one.halves, two.halves)
    assert one.best() == two.best()
    without = outlook(AIM, {SURVEY: some[SURVEY]}, np.random.default_rng(0))
    assert (one.variances != without.variances).any()


def test_AGG_11_reports_that_do_not_fill_two_halves_are_no_forecast() -> None:
    one = np.zeros(SURVEY.code_count)
    one[3] = 1
    for reports in ({}, {SURVEY: 0 * one}, {SURVEY: one}):
        with pytest.raises(NoReportsError):
            outlook(AIM, reports, np.random.default_rng(0))
    for first in (0 * one, one):
        with pytest.raises(NoReportsError):
            outlook(AIM, {SURVEY: one}, Split(first))
    assert outlook(AIM, {SURVEY: 2 * one}, Split(one)).best().theta > LOW


def test_a_country_of_homes_is_halved_as_well() -> None:
    """10¹³ reports, as one count and over all codes."""
    many = counts({0: 0.9, 1000: 0.1}, 10**13)
    found = outlook(AIM, {SURVEY: many}, np.random.default_rng(0))
    assert found.tails[0] > 0
    assert np.isfinite(found.halves).all()


def test_a_range_of_nothing_is_refused() -> None:
    with pytest.raises(ParameterError, match="low"):
        outlook(replace(AIM, ceiling=LOW), {}, np.random.default_rng(0))
