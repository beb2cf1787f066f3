"""Which frames may count: REP-01, REP-03, REP-06..08, REP-13."""

from dataclasses import replace

import numpy as np
import pytest

from aggregator.counting.frames import Arrival, FrameBatch
from aggregator.counting.records import Member
from aggregator.counting.refusals import (
    Codes,
    Reason,
    Rules,
    StreamRules,
    allowed_codes,
    dated,
    judge_all,
)
from edge_ldp.device.frame import Header
from edge_ldp.mechanisms import Hybrid, SquareWave
from edge_ldp.protocol.plan import Plan

SLOT_S = 900
NOW_S = 1_000_000 * SLOT_S
NOW = NOW_S // SLOT_S
DAY = 96
ISSUED_S = (NOW - 60 * DAY) * SLOT_S


def make_plan(*, epsilon: int = 1, share: tuple[int, int] = (1, 16)) -> Plan:
    return Plan(
        fleet="f",
        stream="power",
        stream_id=1,
        unit="W",
        epoch=1,
        issued_s=ISSUED_S,
        expires_s=NOW_S,
        slot_seconds=SLOT_S,
        low=0,
        ceiling=1000,
        share=share,
        stream_mechanism=Hybrid(epsilon=epsilon, low=0, high=200, size=16),
        survey_mechanism=SquareWave(epsilon=1, low=0, high=1000, size=32),
    )


def rules(plan: Plan | None = None) -> Rules:
    codes = allowed_codes(plan or make_plan())
    stream = StreamRules(SLOT_S, 4, {1: codes})
    return Rules(
        streams={1: stream},
        devices=None,
        max_devices=2,
        window_s=35 * 86_400,
        tolerance_s=300,
        now_s=float(NOW_S),
    )


def verdict(  # noqa: PLR0913 (what a frame is judged by)
    slots: list[int],
    codes: list[int],
    *,
    stream: int = 1,
    epoch: int = 1,
    tag: int = 0,
    by: Rules | None = None,
) -> Reason | None:
    head = Header(stream, 1, epoch, slots[0], len(slots), int(tag > 0), tag)
    arrival = Arrival("home", head, np.array(slots), np.array(codes), b"")
    return judge_all(FrameBatch.of([arrival]), by or rules())[0]


def test_of_several_frames_under_one_plan_each_is_judged_by_its_own_codes() -> None:
    codes = [np.array([0]), np.array([0, 0]), np.array([0, 60_000]), np.array([0])]
    arrivals = [
        Arrival(
            "home", Header(1, at, 1, NOW - 5, len(one), 0, 0), np.full(len(one), NOW - 5), one, b""
        )
        for at, one in enumerate(codes)
    ]
    for order, reasons in (([0, 1, 2], [None, None, Reason.RANGE]), ([2, 3], [Reason.RANGE, None])):
        assert judge_all(FrameBatch.of(arrivals[at] for at in order), rules()) == reasons


def test_a_good_frame_may_count() -> None:
    assert verdict([NOW - 2, NOW - 1], [0, 1]) is None


@pytest.mark.parametrize("extra", [0, 1, 65_535 - 200])
def test_a_code_above_those_of_the_plan_is_out_of_range(extra: int) -> None:
    code_count = len(allowed_codes(make_plan()).possible)
    assert verdict([NOW - 1], [code_count - 1]) is None
    assert verdict([NOW - 1], [code_count + extra]) is Reason.RANGE


def test_one_bad_code_refuses_the_whole_frame() -> None:
    slots = list(range(NOW - 50, NOW))
    assert verdict(slots, [0] * 49 + [60_000]) is Reason.RANGE


def test_codes_of_a_branch_with_coin_0_are_impossible() -> None:
    """Below ε = 0.61 the hybrid never takes its piecewise branch; a survey-only plan never sums."""
    plan = make_plan(share=(1, 1))
    assert not allowed_codes(plan).possible[: plan.stream_mechanism.code_count].any()
    assert allowed_codes(plan).possible[plan.stream_mechanism.code_count :].all()
    assert allowed_codes(plan).surveys_from == plan.stream_mechanism.code_count
    assert verdict([NOW - 1], [0], by=rules(plan)) is Reason.RANGE
    low = Hybrid(epsilon="0.5", low=0, high=200, size=16)
    possible = allowed_codes(replace(make_plan(), stream_mechanism=low)).possible
    assert possible[: low.code_count].tolist() == [False] * (low.code_count - 2) + [True] * 2


def test_codes_of_the_survey_are_impossible_without_surveys() -> None:
    plan = make_plan(share=(0, 16))
    assert allowed_codes(plan).possible.tolist() == (
        [True] * plan.stream_mechanism.code_count + [False] * plan.survey_mechanism.code_count
    )


def test_an_epoch_never_issued_and_a_stream_the_fleet_lacks_are_refused() -> None:
    assert verdict([NOW - 1], [0], epoch=2) is Reason.FOREIGN
    assert verdict([NOW - 1], [0], by=rules().retiring({1})) is Reason.PLAN
    assert verdict([NOW - 1], [0], stream=2) is Reason.STREAM


@pytest.mark.parametrize(
    ("sent", "known", "reason"),
    [(7, 7, None), (7, 8, Reason.FOREIGN), (0, 8, None), (7, 0, None), (0, 0, None)],
)
def test_of_two_plans_of_one_epoch_only_the_stores_own_counts_NET_27(
    sent: int, known: int, reason: Reason | None
) -> None:
    """Frames v1 name none, and which bytes an older plan was read from may not be known."""
    by = rules()
    ours = replace(by.streams[1], plans={1: replace(by.streams[1].plans[1], tag=known)})
    assert verdict([NOW - 1], [0], tag=sent, by=replace(by, streams={1: ours})) is reason


def test_a_slot_may_have_begun_within_the_tolerance_and_no_later() -> None:
    assert verdict([NOW], [0]) is None
    assert verdict([NOW + 1], [0]) is Reason.EARLY
    assert verdict([NOW + 1], [0], by=replace(rules(), now_s=NOW_S + SLOT_S - 300.0)) is None


@pytest.mark.parametrize("slot", [(1 << 31) - 1, 1 << 31, (1 << 32) - 1])
def test_slots_at_the_edges_of_integers_are_only_early(slot: int) -> None:
    assert verdict([slot], [0]) is Reason.EARLY


def test_a_closed_bucket_takes_nothing_and_slot_0_is_long_closed_AGG_18() -> None:
    last_open = (NOW_S - 35 * 86_400) // SLOT_S - 4
    assert verdict([last_open], [0]) is None
    assert verdict([last_open - 1], [0]) is Reason.LATE
    assert verdict([last_open - 1, NOW - 1], [0, 0]) is Reason.LATE
    assert verdict([0], [0], by=with_plans({1: 0})) is Reason.LATE
    assert verdict([0], [0]) is Reason.CLOCK  # the device's is off, or ours was


def test_a_bucket_that_was_added_up_stays_closed_when_the_window_is_made_longer() -> None:
    bucket = (NOW - 400) // 4
    usual = rules()
    summed = replace(usual, streams={1: replace(usual.streams[1], added_up=bucket)})
    assert verdict([4 * bucket - 1], [0]) is None
    assert verdict([4 * bucket - 1, NOW - 1], [0, 0], by=summed) is Reason.LATE
    assert verdict([4 * bucket], [0], by=summed) is None


def test_a_bucket_that_was_closed_stays_closed_when_the_clock_goes_back_AGG_16() -> None:
    """Nothing is lost by it either: which clock is wrong is seen later."""
    last_open = (NOW_S - 35 * 86_400) // SLOT_S - 4
    ahead = replace(rules(), closed_s=float(NOW_S + 86_400))
    assert verdict([last_open], [0]) is None
    assert verdict([last_open], [0], by=ahead) is Reason.CLOCK
    assert verdict([last_open - 1], [0], by=ahead) is Reason.LATE
    assert verdict([last_open + 96], [0], by=ahead) is None
    assert verdict([NOW + 1], [0], by=ahead) is Reason.EARLY  # the present is the clock's


def test_a_slot_that_was_over_an_hour_before_its_plan_was_issued_stays_open_REP_07_PLN_18() -> None:
    """Nobody can have drawn it under a plan that was not there: its clock is wrong, or was ours."""
    issued = NOW - 10
    by = with_plans({1: issued * SLOT_S})
    assert verdict([issued - 5], [0], by=by) is None  # devices take what is an hour ahead
    assert verdict([issued - 6], [0], by=by) is Reason.CLOCK
    assert not Reason.CLOCK.is_final


@pytest.mark.parametrize("days", [1, 400])
def test_a_report_under_a_plan_dated_ahead_is_kept_and_counts_once_it_is_dated_anew_PLN_18(
    days: int,
) -> None:
    """Whatever the clock of the service says: as wrong as it was, or right again."""
    ahead_s = NOW_S + days * 86_400
    wrong = with_plans({1: ahead_s})
    for now_s in (ahead_s, NOW_S):
        assert verdict([NOW - 1], [0], by=replace(wrong, now_s=float(now_s))) is Reason.CLOCK
    renewed = with_plans({1: ahead_s, 2: NOW_S + 1000})
    assert verdict([NOW - 1], [0], by=renewed) is None
    assert verdict([NOW - 1], [0], epoch=2, by=renewed) is None  # within the hour
    assert verdict([NOW - 5], [0], epoch=2, by=renewed) is Reason.CLOCK


def with_plans(issued: dict[int, int]) -> Rules:
    """Return the rules where one stream has these plans, dated as they say."""
    possible = rules().streams[1].plans[1].possible
    plans = {epoch: Codes(possible, at_s) for epoch, at_s in issued.items()}
    return replace(rules(), streams={1: StreamRules(SLOT_S, 4, dated(plans))})


def test_only_refusals_that_time_cannot_cure_are_final() -> None:
    assert {reason for reason in Reason if reason.is_final} == {
        Reason.PLAN,
        Reason.RANGE,
        Reason.LATE,
        Reason.SPAN,
        Reason.PERIOD,
    }


def test_the_marks_rate_is_shared_by_every_device_stream_and_law() -> None:
    """A number, not a formula: what divides the rate must not shrink unnoticed."""
    two = {1: rules().streams[1], 2: rules().streams[1]}
    assert replace(rules(), max_devices=10, streams=two).triples == 320
    listed = frozenset({"home-1", "home-2", "home-3"})
    assert replace(rules(), max_devices=10, streams=two, devices=listed).triples == 96
    assert replace(rules(), devices=frozenset(), streams={}).triples == 16


def test_a_plan_and_a_stream_that_nothing_is_said_of_are_watched_for_nothing() -> None:
    codes = Codes(np.ones(2, bool), 5)
    assert (codes.watch, codes.surveys_from, codes.tag) == (None, 65_536, 0)
    assert StreamRules(900, 4, {}) == StreamRules(900, 4, {}, added_up=0, is_retired=False)


def test_enrolment_is_open_up_to_a_cap_or_a_list() -> None:
    assert rules().enrols("any", 1)
    assert not rules().enrols("any", 2)
    assert not replace(rules(), is_open=False).enrols("any", 0)
    listed = replace(rules(), devices=frozenset({"home-1"}))
    assert listed.enrols("home-1", 2)
    assert not listed.enrols("home-2", 0)


def test_a_revoked_device_is_not_heard_nor_is_one_that_no_list_names() -> None:
    listed = replace(rules(), devices=frozenset({"home-1"}))
    for by, device, heard in (
        (rules(), "any", True),
        (listed, "home-1", True),
        (listed, "x", False),
    ):
        assert by.hears(device, None) == by.hears(device, Member(held=True)) == heard
        assert not by.hears(device, Member(revoked=True))
