"""A revision: which θ and share of surveys follow, what is told, that it is repeatable."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from aggregator.answers.plan_view import standing_plan, standing_text
from aggregator.config import StreamTable
from aggregator.counting.classes import class_of
from aggregator.counting.refusals import allowed_codes
from aggregator.counting.tally import CountRows, whose_of
from aggregator.plans import planner
from aggregator.plans.revision import RecentCounts, Revision, read_revision, revise
from edge_ldp.certify import certify_plan
from edge_ldp.errors import CountsError
from edge_ldp.estimate import ems
from edge_ldp.protocol.plan import Plan, Policy, judge, parse_plan
from edge_ldp.protocol.schedule import design_effect
from edge_ldp.ratio import floor_ratio
from edge_ldp.sums.forecast import SHARES
from edge_ldp.threshold.choice import SLACK
from edge_ldp.vectorized import perturb_many

STREAM = StreamTable(
    name="power",
    id=1,
    unit="W",
    ceiling=5999,
    epsilon=1,
    size=64,
    survey_size=100,
    slot_seconds=900,
    revise_slots=96,
)
DAY_S = 86_400
FIRST = planner.first_plan("demo", STREAM, epoch=1, now_s=0)

Ints = NDArray[np.int64]


def on_the_grid(plan: Plan) -> Plan:
    """Return a plan as sent, its surveys on a grid that devices admit: 100 buckets are none."""
    sent = parse_plan(plan.to_json())
    return replace(sent, survey_mechanism=replace(STREAM, survey_size=128).survey())


def reports(plan: Plan, values: Ints, seed: int) -> Ints:
    """Return rows (epoch, bucket, code, count) of values that are each reported once."""
    rng = np.random.default_rng(seed)
    survey = rng.random(len(values)) < plan.share[0] / plan.share[1]
    sums = perturb_many(plan.stream_mechanism, values, entropy=rng.bytes)
    surveys = perturb_many(plan.survey_mechanism, values, entropy=rng.bytes)
    codes = np.where(survey, surveys + plan.stream_mechanism.code_count, sums)
    found, counts = np.unique(codes, return_counts=True)
    return np.stack([np.full_like(found, plan.epoch), np.zeros_like(found), found, counts])


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
        self.day = 0

    def revision(self) -> tuple[Revision, Plan | None] | None:
        seen = RecentCounts(CountRows(*self.rows), self.day * DAY_S)
        return revise(self.plan, self.stream, self.plans, seen, now_s=self.day * DAY_S)

    def looked(self) -> tuple[Revision, Plan | None]:
        found = self.revision()
        assert found is not None
        return found

    def live(self, scale: float = 600, *, n: int = 20_000, lies: int = 0) -> Revision:
        """Report for a day, look at its end and follow the plan."""
        day = reports(self.plan, values(scale, 7 + self.day, n), self.day)
        if lies:
            top = self.plan.stream_mechanism.code_count + self.plan.survey_mechanism.code_count - 1
            day = np.concatenate([day, [[self.plan.epoch], [0], [top], [lies]]], axis=1)
        self.rows = np.concatenate([self.rows, day], axis=1)
        self.day += 1
        found = self.looked()
        revision, following = found
        if following is not None:
            self.plan = planner.proved(following)
            self.plans[following.epoch] = self.plan
        return revision


def test_the_first_revision_brings_theta_and_a_share_that_devices_accept() -> None:
    fleet = Fleet()
    revision = fleet.live()
    plan = fleet.plan
    assert (plan.epoch, revision.epoch, revision.theta) == (2, 2, plan.theta)
    assert 600 < plan.theta < STREAM.ceiling
    assert revision.share == plan.share[0] / plan.share[1]
    assert revision.share in SHARES
    assert plan.survey_mechanism == FIRST.survey_mechanism
    assert revision.survey == (0, STREAM.ceiling)
    assert revision.reports == (0, 20_000)
    assert plan.certificate == certify_plan(plan).digest
    policy = Policy("demo", "power", "W", 900, 0, STREAM.ceiling, floor_ratio(1))
    assert judge(on_the_grid(plan), policy, epoch=1, now_s=plan.issued_s) is None
    assert planner.matches(plan, "demo", STREAM)
    assert len(allowed_codes(plan).possible) == plan.reporter().code_count


def test_a_revision_says_what_intervals_to_expect_of_the_horizon_and_of_usual_questions() -> None:
    revision = Fleet().live()
    assert [name for name, _ in revision.forecast] == [
        *("hour-of-day over 28 days", "whole over 28 days", "week over 28 days"),
        "day over 28 days",
    ]
    half = dict(revision.forecast)
    assert revision.least is not None
    assert revision.least <= half["hour-of-day over 28 days"] <= (1 + SLACK) * revision.least
    assert half["whole over 28 days"] < half["week over 28 days"] < half["day over 28 days"]
    assert (
        f"± {half['hour-of-day over 28 days']:,.4g} W expected for hour-of-day"
        in revision.reasons[0]
    )
    numbers = Fleet(replace(STREAM, horizon=1_000_000)).live()
    names = [name for name, _ in numbers.forecast]
    assert names[:2] == ["1,000,000 values as a whole", "whole over 28 days"]
    assert len(names) == 5


def test_the_forecast_goes_by_how_many_reports_came_in_the_time_there_were_any() -> None:
    """One mean's half-width falls with the root of its reports: half the time, twice the rate.

    But for the one observation more that is added to every variance.
    """
    stubborn = replace(STREAM, horizon="whole over 7 days", hysteresis=Decimal("0.999"))
    fleet = Fleet(stubborn)
    fleet.rows, fleet.day = reports(fleet.plan, values(600, 1), 1), 1
    fleet.plan = planner.ordered(
        fleet.plan, stubborn, theta=4000, survey=(0, 5999), share=(1, 2), now_s=9
    )
    whole = fleet.revision()
    seen = RecentCounts(CountRows(*fleet.rows), DAY_S // 2)
    twice = revise(fleet.plan, stubborn, fleet.plans, seen, now_s=DAY_S)
    assert whole is not None
    assert twice is not None
    assert whole[1] is twice[1] is None  # of one plan
    (name, half), (_, longer) = whole[0].forecast[:2]
    assert name == "whole over 7 days"
    assert dict(twice[0].forecast)[name] == pytest.approx(half / 2**0.5, rel=0.01)
    assert longer == pytest.approx(half / 2, rel=0.01)  # 28 days are four times as many


def test_a_schedule_that_walks_badly_is_told_and_widens_what_is_expected_AGG_31() -> None:
    """AGG_31: of devices with 1 report in 97 quarter hours; `plan show` prints the reason."""
    fleet = Fleet()
    fleet.live()
    walks = class_of(Fraction(1, 97), float(design_effect(97, STREAM.slot_seconds)))
    plain_rows = CountRows(*fleet.rows)
    whose = np.full(len(plain_rows.code), whose_of(1, walks))
    spread = [
        revise(fleet.plan, STREAM, fleet.plans, RecentCounts(seen, DAY_S), now_s=DAY_S)
        for seen in (plain_rows, replace(plain_rows, whose=whose))
    ]
    (plain, _), (told, _) = (one for one in spread if one is not None)
    assert dict(told.forecast)["whole over 28 days"] > dict(plain.forecast)["whole over 28 days"]
    words = "homes' schedule: its slots come back at nearly the same times: of on/off loads "
    shown = standing_text(standing_plan("power", fleet.plan, told, None))
    assert words in shown
    assert not any("schedule" in reason for reason in plain.reasons)


def test_the_same_counts_give_the_same_revision_and_plan() -> None:
    one, two = Fleet(), Fleet()
    assert [one.live(), one.live()] == [two.live(), two.live()]
    assert one.plan == two.plan


def test_a_stored_revision_is_read_back_as_it_was() -> None:
    revision = Fleet().live(n=19_000, lies=1000)
    assert revision.screen
    assert revision.forecast
    assert read_revision(revision.to_json()) == revision


def test_a_revision_of_the_version_before_is_read_and_shown() -> None:
    """As it stood in stores: what is no part of a revision any more is passed over."""
    stored = (
        '{"at_s": 9, "epoch": 3, "kept_bucket": 2, "looked_bucket": 8, "theta": 300, '
        '"survey": [0, 512], "reports": [5000, 700], "reasons": ["because"], "spread": %s, '
        '"surprise": 0.25, "shifted": true, "screen": [], "correction": %s}'
    )
    for kept in (("[200, 300, 400]", "[9.5, 1.5]"), ("null", "null")):
        revision = read_revision((stored % kept).encode())
        assert revision == Revision(9, 3, 300, (0, 512), (5000, 700), ("because",))
        assert (revision.share, revision.forecast, revision.least) == (None, (), None)
        shown = standing_text(standing_plan("power", FIRST, revision, None))
        assert "by 5000 stream and 700 survey reports" in shown
        assert "because" in shown


def test_theta_and_share_stay_while_others_are_not_worth_it() -> None:
    """The same reports again: what was chosen stays, another θ only with a large hysteresis."""
    fleet = Fleet(replace(STREAM, hysteresis=Decimal(0)))
    fleet.live()
    best = fleet.plan
    other = fleet.plan = replace(best, stream_mechanism=STREAM.sums(best.theta + 700))
    moved = fleet.looked()
    assert moved[1] is not None
    assert (moved[0].epoch, moved[0].theta) == (3, best.theta) == (3, moved[1].theta)
    fleet.plan = best
    same = fleet.looked()
    assert same[1] is None
    assert (same[0].epoch, same[0].theta, same[0].reasons[-1]) == (2, best.theta, "the plan stays")
    fleet.plan, fleet.stream = other, replace(STREAM, hysteresis=Decimal("0.999"))
    stubborn = fleet.looked()
    revision, following = stubborn
    assert following is None
    assert (revision.theta, revision.share) == (other.theta, other.share[0] / other.share[1])
    assert f"θ = {best.theta}" in revision.reasons[0]  # what would be best
    assert dict(revision.forecast) != dict(
        same[0].forecast
    )  # of what stays, not of what would be best


def test_theta_follows_when_values_are_others() -> None:
    fleet = Fleet()
    fleet.live(300)
    before = fleet.plan.theta
    fleet.rows = fleet.rows[:, :0]  # so long ago that it is forgotten
    revision = fleet.live(2400)
    assert revision.epoch == fleet.plan.epoch == 3
    assert revision.theta > 1.5 * before


def test_a_share_that_is_configured_is_kept_and_one_of_another_plan_is_not() -> None:
    fixed = replace(STREAM, survey_share=Decimal("0.3"))
    fleet = Fleet(fixed)
    revision = fleet.live()
    assert fleet.plan.share == fixed.share
    assert revision.share == fixed.share[0] / fixed.share[1]
    again = fleet.looked()
    assert again[1] is None
    fleet.stream = replace(STREAM, survey_share=Decimal("0.2"))
    fleet.live()
    assert (fleet.plan.epoch, fleet.plan.share) == (3, fleet.stream.share)


def test_a_survey_of_a_part_of_the_range_is_followed_by_one_of_the_whole() -> None:
    """As the version before asked for, or as an operator ordered and did not hold."""
    fleet = Fleet()
    fleet.live()
    share = fleet.plan.share
    narrowed = planner.ordered(
        fleet.plan, STREAM, theta=fleet.plan.theta, survey=(0, 2047), share=share, now_s=9
    )
    fleet.plan = fleet.plans[3] = narrowed
    revision = fleet.live()
    assert revision.epoch == 4
    assert fleet.plan.survey_mechanism == STREAM.survey()
    assert fleet.plan.stream_mechanism.high == revision.theta
    assert sum(revision.reports) == 40_000  # of both ranges, and stream reports


def test_a_stream_configured_to_survey_for_ever_gets_no_plan() -> None:
    fleet = Fleet(replace(STREAM, survey_share=Decimal(1)))
    revision = fleet.live()
    assert fleet.plan.epoch == revision.epoch == 1
    assert (revision.forecast, revision.share) == ((), 1)
    assert revision.reasons == ("configured to survey for ever",)


def test_where_the_mechanism_is_chosen_the_table_of_less_variance_is_and_its_reports_count() -> (
    None
):
    fleet = Fleet(replace(STREAM, mechanism="chosen"))
    fleet.live()
    assert fleet.plan.stream_mechanism.name == "tuned"
    assert planner.matches(fleet.plan, "demo", fleet.stream)
    policy = Policy("demo", "power", "W", 900, 0, STREAM.ceiling, floor_ratio(1))
    assert judge(on_the_grid(fleet.plan), policy, epoch=1, now_s=DAY_S) is None
    assert fleet.live().reports[0] > 1000
    no_table = Fleet(replace(STREAM, mechanism="chosen", epsilon=Decimal("1.01")))
    no_table.live()
    assert no_table.plan.stream_mechanism.name == "hybrid"


def test_too_few_surveys_are_no_revision() -> None:
    fleet = Fleet()
    fleet.rows, fleet.day = reports(fleet.plan, values(600, 1, 100), 1), 1
    assert fleet.revision() is None


@pytest.mark.parametrize("theta", ["adaptive", "published"])
@pytest.mark.parametrize("n", [1, 1000])
def test_AGG_11_reports_of_which_next_to_none_are_left_end_in_a_revision_not_in_an_error(
    theta: str, n: int
) -> None:
    """One report cannot be halved; a thousand of one code are taken out as no honest crowd's."""
    eager = replace(STREAM, min_survey_reports=1, theta=theta)  # type: ignore[arg-type]
    fleet = Fleet(eager)
    code = fleet.plan.stream_mechanism.code_count
    fleet.rows, fleet.day = np.array([[1], [0], [code], [n]]), 1
    found = fleet.looked()
    revision, following = found
    if theta == "adaptive":
        assert following is None
        assert revision.reasons[-2:] == ("no estimate: too few reports are left", "the plan stays")
    assert (revision.theta, revision.reports) == ((following or fleet.plan).theta, (0, n))
    assert [one.rings for one in revision.screen] == ([True] if n == 1000 else [])


def test_AGG_11_the_published_rule_stays_where_no_survey_is_of_its_own_mechanism() -> None:
    """The survey's size was configured anew, and what came before still lies in the horizon."""
    fleet = Fleet()
    fleet.live()
    fleet.stream = replace(STREAM, theta="published", survey_size=50)
    fleet.plan = planner.first_plan("demo", fleet.stream, epoch=9, now_s=9)
    fleet.plans[9] = fleet.plan
    found = fleet.looked()
    assert found[1] is None
    assert "no estimate" in found[0].reasons[-2]


def test_a_ceiling_far_above_all_that_was_reported_is_told() -> None:
    far, near = Fleet(replace(STREAM, ceiling=200_000, size=16)), Fleet()
    (said,) = [reason for reason in far.live(150).reasons if "far above" in reason]
    assert "the ceiling, 200000 W" in said
    assert not [reason for reason in near.live(1200).reasons if "far above" in reason]


def test_values_far_above_zero_have_a_low_of_their_own() -> None:
    lifted = replace(STREAM, low=30_000, ceiling=35_999)
    fleet = Fleet(lifted)
    fleet.rows, fleet.day = reports(fleet.plan, 30_000 + values(600, 1), 1), 1
    found = fleet.looked()
    revision, plan = found
    assert plan is not None
    assert 30_500 < revision.theta < 35_999
    assert plan.survey_mechanism.low == 30_000
    assert plan.agrees
    flat = Fleet()
    flat.rows, flat.day = reports(flat.plan, values(600, 1), 1), 1
    same = flat.looked()
    assert revision.theta - 30_000 == pytest.approx(
        same[0].theta, rel=0.2
    )  # other halves were drawn
    assert revision.least == pytest.approx(same[0].least, rel=0.05)


def test_the_alarm_rings_before_theta_is_chosen_and_the_revision_says_so() -> None:
    honest, poisoned = Fleet(), Fleet()
    wanted = honest.live().theta
    revision = poisoned.live(n=19_000, lies=1000)
    (found,) = revision.screen
    assert found.rings
    assert abs(found.share - 0.05) < 0.02
    assert "ALARM" in revision.reasons[0]
    assert wanted / 2 < revision.theta < wanted * 2  # of 5999; the least lies in a wide valley


def test_the_published_rule_goes_by_the_surveys_and_the_values_of_the_horizon() -> None:
    published = replace(STREAM, theta="published", horizon=1_000_000)
    fleet = Fleet(published)
    revision = fleet.live()
    rows = CountRows(*fleet.rows)
    surveys = np.bincount(
        rows.code - FIRST.stream_mechanism.code_count,
        rows.count,
        minlength=FIRST.survey_mechanism.code_count,
    )
    density = ems(FIRST.survey_mechanism, surveys)
    wanted = planner.next_plan(FIRST, published, density, values=1_000_000, now_s=DAY_S)
    assert wanted is not None
    assert fleet.plan == planner.proved(wanted)
    assert fleet.plan.share == (4096, 65_536)
    assert (revision.forecast, revision.least) == ((), None)
    assert "published rule" in revision.reasons[0]
    assert fleet.live().reports[1] > 20_000


def test_a_narrowed_survey_is_not_what_the_published_rule_asks_for() -> None:
    plan = planner.ordered(FIRST, STREAM, theta=1300, survey=(1024, 2047), share=(1, 4), now_s=9)
    assert planner.matches(plan, "demo", STREAM)
    assert not planner.matches(plan, "demo", replace(STREAM, theta="published"))
    beyond = replace(plan, survey_mechanism=replace(STREAM, ceiling=60_000).survey())
    assert not planner.matches(beyond, "demo", STREAM)


def test_what_would_ask_the_same_is_no_plan() -> None:
    plan = planner.following(FIRST, STREAM, STREAM.sums(900), share=(1, 2), now_s=9)
    assert plan is not None
    after = partial(planner.following, plan, STREAM, plan.stream_mechanism, now_s=10)
    assert after(share=plan.share) is None
    assert after(share=(1, 4)) is not None


def test_a_narrow_survey_has_a_bucket_for_each_value() -> None:
    assert STREAM.survey(0, 49).size == 50
    assert STREAM.survey(0, 499).size == 100


@pytest.mark.parametrize(
    "payload",
    [b"", b"[]", b"{}", b'{"screen": []}', b'{"screen": 3}', b'{"screen": [], "forecast": [[1]]}'],
)
def test_AGG_12_a_damaged_revision_is_refused(payload: bytes) -> None:
    with pytest.raises(CountsError):
        read_revision(payload)
