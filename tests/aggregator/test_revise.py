"""A look at a stream: which θ and survey follow, what is forgotten, and that it is repeatable."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from numpy.typing import NDArray

from aggregator import planner
from aggregator.config import StreamTable
from aggregator.errors import CountsError
from aggregator.estimate import ems
from aggregator.guard import allowed_codes
from aggregator.records import CountRows
from aggregator.revise import Look, Seen, read_look, revise
from edge_ldp.certify import certify_plan
from edge_ldp.plan import Plan, Policy, judge, parse_plan
from edge_ldp.ratio import floor_ratio
from edge_ldp.vectorized import perturb_many

STREAM = StreamTable(
    name="power",
    id=1,
    unit="W",
    ceiling=49_999,
    epsilon=1,
    horizon=1_000_000,
    size=64,
    survey_size=256,
    survey_share=Decimal("0.25"),
    slot_seconds=900,
    revise_slots=96,
)
DAY = 24  # buckets
FIRST = planner.first_plan("demo", STREAM, epoch=1, now_s=0)
NONE = CountRows(*np.zeros((4, 0), np.int64))

Ints = NDArray[np.int64]


def reports(plan: Plan, values: Ints, seed: int, day: int) -> Ints:
    """Return rows (epoch, bucket, code, count) of a day in which each value is reported once."""
    rng = np.random.default_rng(seed)
    survey = rng.random(len(values)) < plan.share[0] / plan.share[1]
    sums = perturb_many(plan.stream_mechanism, values, entropy=rng.bytes)
    surveys = perturb_many(plan.survey_mechanism, values, entropy=rng.bytes)
    codes = np.where(survey, surveys + plan.stream_mechanism.code_count, sums)
    found, counts = np.unique(codes, return_counts=True)
    return np.stack(
        [np.full_like(found, plan.epoch), np.full_like(found, day * DAY), found, counts]
    )


def values(scale: float, seed: int, n: int = 20_000) -> Ints:
    law = np.random.default_rng(seed).gamma(0.7, scale, n)
    return np.minimum(law.astype(np.int64), STREAM.ceiling)


class Fleet:
    """Plans and counts so far, looked at once a day."""

    def __init__(self, stream: StreamTable = STREAM) -> None:
        self.stream = stream
        self.plan = planner.first_plan("demo", stream, epoch=1, now_s=0)
        self.plans = {1: self.plan}
        self.rows = np.zeros((4, 0), np.int64)
        self.last: Look | None = None
        self.day = 0

    def look(self, *, present: int = 0) -> tuple[Look, Plan | None] | None:
        kept, looked = (self.last.kept_bucket, self.last.looked_bucket) if self.last else (0, 0)
        bucket = self.rows[1]
        seen = Seen(
            CountRows(*self.rows[:, (bucket >= kept) & (bucket < looked)]),
            CountRows(*self.rows[:, bucket >= looked]),
            np.array([[kept, present]]) if present else np.zeros((0, 2), np.int64),
        )
        return revise(self.plan, self.stream, self.plans, seen, self.last, now_s=self.day * 86_400)

    def live(self, scale: float, *, n: int = 20_000, lies: int = 0) -> Look:
        """Report for a day, look at its end and follow the plan."""
        day = reports(self.plan, values(scale, 7 + self.day, n), self.day, self.day)
        if lies:
            top = self.plan.stream_mechanism.code_count + self.plan.survey_mechanism.code_count - 1
            lie = [[self.plan.epoch], [self.day * DAY], [top], [lies]]
            day = np.concatenate([day, np.array(lie)], axis=1)
        self.rows = np.concatenate([self.rows, day], axis=1)
        self.day += 1
        found = self.look()
        assert found is not None
        self.last, following = found
        if following is not None:
            self.plan = following
            self.plans[following.epoch] = following
        return self.last


def test_the_first_look_brings_theta_and_a_narrower_survey_that_devices_accept() -> None:
    fleet = Fleet()
    look = fleet.live(600)
    plan = fleet.plan
    assert (plan.epoch, look.epoch, look.theta) == (2, 2, plan.theta)
    assert 1000 < plan.theta < 20_000
    assert plan.survey_mechanism.high < STREAM.ceiling
    assert plan.survey_mechanism.size == 256
    assert (look.spread or (0, 0, 0))[0] <= plan.theta <= (look.spread or (0, 0, 0))[2]
    assert look.reports == (0, 20_000)
    assert plan.certificate == certify_plan(plan).digest
    policy = Policy("demo", "power", "W", 900, 0, STREAM.ceiling, floor_ratio(1))
    assert judge(parse_plan(plan.to_json()), policy, epoch=1, now_s=plan.issued_s) is None
    assert planner.matches(plan, "demo", STREAM)
    assert len(allowed_codes(plan).possible) == plan.reporter().code_count


def test_the_same_counts_give_the_same_look_and_plan() -> None:
    one, two = Fleet(), Fleet()
    for fleet in (one, two):
        fleet.live(600)
        fleet.live(600)
    assert one.last == two.last
    assert one.plan == two.plan


def test_a_restart_goes_on_from_the_stored_look() -> None:
    through, restarted = Fleet(), Fleet()
    for fleet in (through, restarted):
        fleet.live(600)
    assert restarted.last is not None
    restarted.last = read_look(restarted.last.to_json())
    assert restarted.last == through.last
    assert through.live(600) == restarted.live(600)
    assert through.plan == restarted.plan


def test_surveys_of_different_ranges_and_sums_are_all_evidence() -> None:
    fleet = Fleet()
    fleet.live(600)
    fleet.live(600)
    look = fleet.live(600)
    ranges = {plan.survey_mechanism.high for plan in fleet.plans.values()}
    assert len(ranges) > 1
    assert sum(look.reports) == 60_000
    assert look.reports[0] > 20_000
    assert look.kept_bucket == 0
    assert not look.shifted


def test_after_a_shift_older_reports_are_forgotten_for_good_and_theta_follows() -> None:
    fleet = Fleet()
    fleet.live(600)
    fleet.live(600)
    before = fleet.plan.theta
    look = fleet.live(2400)
    assert look.shifted
    assert look.surprise < 1e-3
    assert look.kept_bucket == 2 * DAY
    assert any("forgotten" in reason for reason in look.reasons)
    fleet.last = read_look(look.to_json())  # the process was restarted
    after = fleet.live(2400)
    assert after.kept_bucket == 2 * DAY
    assert not after.shifted
    assert sum(after.reports) == 40_000
    assert after.theta > 2 * before


def test_theta_stays_while_a_new_one_is_not_worth_it() -> None:
    stubborn = replace(STREAM, hysteresis=Decimal("0.999999"))
    fleet = Fleet(stubborn)
    first = fleet.live(600).theta
    assert fleet.live(900).theta == first


def test_a_look_that_finds_no_numbers_keeps_the_plan_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No reports are known that lead there; those that did are in test_adaptive_atoms."""
    fleet = Fleet()
    fleet.live(600)

    def fails(*_: object, **__: object) -> None:
        raise np.linalg.LinAlgError

    monkeypatch.setattr("aggregator.revise.observe", fails)
    before, plan = fleet.last, fleet.plan
    after = fleet.live(600)
    assert before is not None
    assert fleet.plan is plan
    assert (after.theta, after.survey) == (plan.theta, before.survey)
    assert after.at_s == before.at_s + 86_400
    said = "no estimate: the reports' matrices are singular", "the plan stays"
    assert after.reasons[-2:] == said
    monkeypatch.undo()
    assert sum(fleet.live(600).reports) == 60_000


def test_a_stream_configured_to_survey_for_ever_gets_no_plan() -> None:
    fleet = Fleet(replace(STREAM, survey_share=Decimal(1)))
    look = fleet.live(600)
    assert fleet.plan.epoch == look.epoch == 1


@pytest.mark.slow  # tables are made
def test_where_the_mechanism_is_chosen_reports_by_its_table_are_evidence_for_the_next() -> None:
    fleet = Fleet(replace(STREAM, mechanism="chosen"))
    first = fleet.live(600)
    assert any("table: least expected cost" in reason for reason in first.reasons)
    made = fleet.plan.stream_mechanism
    assert made.name == "tuned"
    assert planner.matches(fleet.plan, "demo", fleet.stream)
    policy = Policy("demo", "power", "W", 900, 0, STREAM.ceiling, floor_ratio(1))
    assert judge(parse_plan(fleet.plan.to_json()), policy, epoch=1, now_s=86_400) is None
    second = fleet.live(600)
    assert second.reports[0] > 10_000
    assert not second.shifted
    assert 0.5 < fleet.plan.theta / made.high < 2


def test_theta_for_corrected_sums_is_told_in_the_look_and_survives_a_restart() -> None:
    plain, other = Fleet(), Fleet(replace(STREAM, corrected_sums=True))
    before, look = plain.live(600), other.live(600)
    assert before.correction is None
    assert look.correction is not None
    assert look.theta != before.theta
    assert read_look(look.to_json()) == look
    assert other.live(600).correction is not None


def test_too_few_surveys_are_no_look() -> None:
    fleet = Fleet()
    fleet.rows = reports(fleet.plan, values(600, 1, 100), 1, 0)
    fleet.day = 1
    assert fleet.look() is None


def test_slots_that_give_no_report_raise_theta_less_than_they_raise_noise() -> None:
    """Inclusion: with one report in ten slots, noise counts ten times, so θ is lower."""
    fleet = Fleet()
    fleet.rows = reports(fleet.plan, values(600, 1), 1, 0)
    fleet.day = 1
    every, some = fleet.look(present=20_000), fleet.look(present=200_000)
    assert every is not None
    assert some is not None
    assert some[0].theta < every[0].theta


def test_values_far_above_zero_have_a_low_of_their_own() -> None:
    lifted = replace(STREAM, low=30_000)
    fleet = Fleet(lifted)
    day = reports(fleet.plan, 30_000 + np.minimum(values(600, 1), 19_999), 1, 0)
    fleet.rows, fleet.day = day, 1
    found = fleet.look()
    assert found is not None
    look, plan = found
    assert plan is not None
    assert 30_500 < look.theta < 45_000
    assert plan.survey_mechanism.low >= 30_000
    assert plan.agrees


def test_the_alarm_rings_before_theta_is_chosen_and_the_look_says_so() -> None:
    honest, poisoned = Fleet(), Fleet()
    wanted = honest.live(600).theta
    look = poisoned.live(600, n=19_000, lies=1000)
    (found,) = look.screen
    assert found.rings
    assert abs(found.share - 0.05) < 0.02
    assert "ALARM" in look.reasons[0]
    assert abs(look.theta / wanted - 1) < 0.3
    assert read_look(look.to_json()).screen == look.screen


def test_the_published_rule_surveys_the_whole_range_and_can_be_chosen() -> None:
    published = replace(STREAM, theta="published")
    fleet = Fleet(published)
    look = fleet.live(600)
    rows = CountRows(*fleet.rows)
    surveys = np.bincount(
        rows.code - FIRST.stream_mechanism.code_count,
        rows.count,
        minlength=FIRST.survey_mechanism.code_count,
    )
    density = ems(FIRST.survey_mechanism, surveys)
    assert fleet.plan == planner.next_plan(FIRST, published, density, now_s=86_400)
    assert fleet.plan.survey_mechanism == FIRST.survey_mechanism
    assert look.spread is None
    assert "published rule" in look.reasons[0]
    again = fleet.live(600)
    assert again.reports[1] > 20_000


def test_a_narrowed_survey_is_not_what_the_published_rule_asks_for() -> None:
    plan = planner.following(FIRST, STREAM, STREAM.sums(5000), (1024, 16_384), now_s=9)
    assert plan is not None
    assert (plan.survey_mechanism.low, plan.survey_mechanism.high) == (1024, 16_384)
    assert planner.matches(plan, "demo", STREAM)
    published = replace(STREAM, theta="published")
    assert not planner.matches(plan, "demo", published)
    beyond = replace(plan, survey_mechanism=STREAM.survey(0, 60_000))
    assert not planner.matches(beyond, "demo", STREAM)
    assert planner.following(plan, STREAM, plan.stream_mechanism, (1024, 16_384), now_s=10) is None


def test_a_narrow_survey_has_a_bucket_for_each_value() -> None:
    assert STREAM.survey(0, 99).size == 100
    assert STREAM.survey(0, 4999).size == 256


@pytest.mark.parametrize("payload", [b"", b"[]", b"{}", b'{"screen": []}', b'{"screen": 3}'])
def test_AGG_12_a_damaged_look_is_refused(payload: bytes) -> None:
    with pytest.raises(CountsError):
        read_look(payload)
