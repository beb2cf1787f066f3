"""Which plan comes next."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from aggregator.config import StreamTable
from aggregator.plans import planner
from edge_ldp.certify import Certificate, ProvedClaim, certify_plan
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.lattice import bucket_edge
from edge_ldp.estimate.density import Density, density
from edge_ldp.mechanisms import Hybrid
from edge_ldp.protocol.plan import Plan, last_epoch, parse_plan

STREAM = StreamTable(
    name="power",
    id=1,
    unit="W",
    ceiling=9999,
    epsilon=Decimal(1),
    theta="published",
    size=64,
    survey_size=100,
)
NOW_S = 1_700_000_000
VALUES = 100_000  # in the longest query
FIRST = planner.first_plan("demo", STREAM, epoch=1, now_s=NOW_S)


def values_up_to(top: int) -> Density:
    edges = [bucket_edge(k, 0, 9999, 100) for k in range(101)]
    mass = np.array([1.0 if edge < top else 0.0 for edge in edges[:-1]])
    return density(mass / mass.sum(), edges)


def following(plan: Plan, top: int, stream: StreamTable = STREAM) -> Plan | None:
    found = planner.next_plan(plan, stream, values_up_to(top), values=VALUES, now_s=NOW_S + 9)
    return None if found is None else planner.proved(found)


def test_the_first_plan_asks_every_slot_for_a_survey_over_the_whole_range() -> None:
    assert FIRST.share == (65_536, 65_536)
    assert FIRST.theta == FIRST.survey_mechanism.high == 9999
    assert parse_plan(FIRST.to_json()) == FIRST
    assert FIRST.certificate == certify_plan(FIRST).digest
    assert FIRST.expires_s == NOW_S + planner.VALID_S


def test_after_the_first_survey_there_is_always_a_next_plan() -> None:
    plan = following(FIRST, 1000)
    assert plan is not None
    assert plan.epoch == 2
    assert plan.issued_s == NOW_S + 9
    assert plan.share == (4096, 65_536)
    assert 500 < plan.theta == STREAM.least_theta  # what is best lies below what devices admit
    assert plan.survey_mechanism == FIRST.survey_mechanism
    assert isinstance(plan.stream_mechanism, Hybrid)
    assert parse_plan(plan.to_json()) == plan
    assert plan.certificate == certify_plan(plan).digest != FIRST.certificate


def test_theta_stays_while_a_new_one_is_not_worth_it() -> None:
    plan = following(FIRST, 1000)
    assert plan is not None
    assert following(plan, 1000) is None
    close = replace(plan, stream_mechanism=Hybrid(epsilon=1, low=0, high=plan.theta + 1, size=64))
    assert following(close, 1000) is None


def test_theta_moves_when_the_distribution_does() -> None:
    plan = following(FIRST, 1000)
    assert plan is not None
    moved = following(plan, 4000)
    assert moved is not None
    assert moved.epoch == 3
    assert moved.theta > 2000


def test_a_theta_at_the_ceiling_is_left_however_little_it_saves() -> None:
    stubborn = replace(STREAM, hysteresis=Decimal("0.999999"))
    at_ceiling = replace(FIRST, share=(1, 16))
    inside = replace(at_ceiling, stream_mechanism=Hybrid(epsilon=1, low=0, high=9000, size=64))
    assert following(at_ceiling, 1000, stubborn) is not None
    assert following(inside, 1000, stubborn) is None


def test_a_stream_configured_to_survey_for_ever_gets_no_threshold() -> None:
    always = replace(STREAM, survey_share=Decimal(1))
    assert following(FIRST, 1000, always) is None


def test_the_first_survey_is_looked_at_until_it_is_enough_then_every_interval() -> None:
    length = STREAM.revise_slots * STREAM.slot_seconds
    assert planner.is_due(FIRST, STREAM, None, NOW_S)
    assert not planner.is_due(FIRST, STREAM, NOW_S, NOW_S + 1.0)
    later = replace(FIRST, share=(1, 16))
    assert not planner.is_due(later, STREAM, None, NOW_S + length - 1.0)
    assert planner.is_due(later, STREAM, None, NOW_S + length)
    assert not planner.is_due(later, STREAM, float(NOW_S + 9), NOW_S + length)


def test_a_plan_is_renewed_at_half_of_its_time() -> None:
    assert not planner.needs_renewal(FIRST, NOW_S + planner.VALID_S // 2)
    assert planner.needs_renewal(FIRST, NOW_S + planner.VALID_S // 2 + 1)
    again = planner.renewed(FIRST, epoch=2, now_s=NOW_S + 5)
    assert (again.epoch, again.issued_s, again.expires_s) == (
        2,
        NOW_S + 5,
        NOW_S + 5 + planner.VALID_S,
    )
    assert again.theta == FIRST.theta
    assert again.certificate == FIRST.certificate == certify_plan(again).digest


@pytest.mark.parametrize(
    ("stored", "retained", "expected"),
    [
        (None, None, 1),
        (None, 7, 8),
        (3, None, 4),
        (3, 3, 4),
        (3, 9, 10),
        (9, 3, 10),
        (3, last_epoch(NOW_S) - 1, last_epoch(NOW_S)),
        (3, last_epoch(NOW_S), last_epoch(NOW_S) + 1),
        (3, last_epoch(NOW_S) + 1, 4),
        (None, (1 << 32) - 1, 1),
    ],
)
def test_epochs_rise_above_stored_and_believable_retained_ones_PLN_15(
    stored: int | None, retained: int | None, expected: int
) -> None:
    assert planner.next_epoch(stored, retained, NOW_S) == expected


def test_a_stored_plan_matches_its_configuration_whatever_its_theta() -> None:
    plan = following(FIRST, 1000)
    assert plan is not None
    assert planner.matches(FIRST, "demo", STREAM)
    assert planner.matches(plan, "demo", STREAM)
    assert not planner.matches(plan, "other", STREAM)
    assert not planner.matches(replace(plan, ceiling=5000), "demo", STREAM)
    stronger = Hybrid(epsilon=2, low=0, high=plan.theta, size=64)
    assert not planner.matches(replace(plan, stream_mechanism=stronger), "demo", STREAM)


def test_a_stored_plan_without_a_certificate_is_issued_again() -> None:
    assert not planner.matches(replace(FIRST, certificate=None), "demo", STREAM)


def test_a_plan_of_which_a_claim_fails_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Certificate(
        {}, None, {"ratio": None}, (ProvedClaim("ratio", holds=False, proof="e^2"),)
    )
    monkeypatch.setattr("edge_ldp.certify.certify_plan", lambda _: broken)
    other = replace(STREAM, size=63)  # of which no proof is remembered
    with pytest.raises(ParameterError, match="every claim holds"):
        planner.first_plan("demo", other, epoch=1, now_s=NOW_S)


TUNED = replace(STREAM, mechanism="tuned")


def test_theta_rises_with_the_values_that_a_query_adds_up() -> None:
    """Noise grows with the root of their number, what is cut off with the number itself."""
    few, many = (
        planner.next_plan(FIRST, STREAM, values_up_to(4000), values=values, now_s=NOW_S)
        for values in (100, 10_000_000)
    )
    assert few is not None
    assert many is not None
    assert few.theta < many.theta


def test_an_orders_survey_share_and_theta_stand_in_its_plan_and_others_are_refused() -> None:
    stream = replace(STREAM, theta="adaptive")

    def order(
        theta: int = 2200, survey: tuple[int, int] = (0, 4095), share: tuple[int, int] = (1, 8)
    ) -> Plan:
        return planner.ordered(FIRST, stream, theta=theta, survey=survey, share=share, now_s=NOW_S)

    plan = order()
    assert (plan.epoch, plan.theta, plan.share) == (2, 2200, (1, 8))
    assert (plan.survey_mechanism.low, plan.survey_mechanism.high) == (0, 4095)
    assert planner.matches(plan, "demo", stream)
    for theta in (0, stream.least_theta - 1, 10_000):
        with pytest.raises(ParameterError, match="theta"):
            order(theta=theta)
    for survey in ((0, 10_000), (9, 9)):
        with pytest.raises(ParameterError, match="survey"):
            order(survey=survey)
    for share in ((0, 8), (9, 8)):
        with pytest.raises(ParameterError, match="share"):
            order(share=share)
    with pytest.raises(ParameterError, match="whole range"):
        planner.ordered(FIRST, STREAM, theta=2200, survey=(0, 4095), share=(1, 8), now_s=NOW_S)


def test_the_tables_smaller_variance_moves_theta_up() -> None:
    by_hybrid, by_table = (following(FIRST, 4000, stream) for stream in (STREAM, TUNED))
    assert by_hybrid is not None
    assert by_table is not None
    assert by_table.stream_mechanism.unit_variance < by_hybrid.stream_mechanism.unit_variance
    assert by_table.theta >= by_hybrid.theta


def test_from_when_on_devices_take_a_plan_is_by_the_days_of_plans_and_of_thetas() -> None:
    def sums(epoch: int, theta: int, at_s: int) -> Plan:
        made = planner.ordered(FIRST, STREAM, theta=theta, survey=(0, 9999), share=(1, 2), now_s=0)
        return replace(made, epoch=epoch, issued_s=at_s)

    day = 86_400
    second = sums(2, 3000, NOW_S + 2 * day)
    assert planner.taken_from([FIRST], second) == NOW_S + day  # a survey asks for no θ
    renewal = planner.renewed(second, epoch=3, now_s=NOW_S + 5 * day)
    plans = [renewal, FIRST, second]
    assert planner.taken_from(plans, replace(second, share=(1, 4))) == NOW_S + 3 * day
    assert planner.taken_from(plans, sums(4, 2500, NOW_S + 6 * day)) == NOW_S + 9 * day
    last = replace(FIRST, epoch=4, issued_s=NOW_S + 6 * day)
    assert planner.taken_from(plans, last) == NOW_S + 3 * day


def test_a_plan_dated_ahead_keeps_devices_from_the_next_no_longer_than_from_now_PLN_18() -> None:
    day = 86_400
    ahead = replace(FIRST, issued_s=NOW_S + 400 * day)
    ordered = planner.ordered(
        ahead, STREAM, theta=3000, survey=(0, 9999), share=(1, 2), now_s=NOW_S
    )
    assert planner.taken_from([ahead], ordered) == NOW_S + day
    renewed = planner.renewed(ahead, epoch=2, now_s=NOW_S)
    later = replace(ordered, epoch=3, issued_s=NOW_S + 5 * day)
    assert planner.taken_from([ahead, renewed], later) == NOW_S + day


def test_a_plan_is_ahead_by_more_than_clocks_may_differ_PLN_18() -> None:
    assert not planner.is_ahead(FIRST, NOW_S - 300, 300)
    assert planner.is_ahead(FIRST, NOW_S - 301, 300)


def test_a_look_dated_ahead_is_repeated_PLN_18() -> None:
    later = replace(FIRST, share=(1, 2))
    assert planner.is_due(later, STREAM, NOW_S + 400 * 86_400.0, NOW_S + 1.0)
