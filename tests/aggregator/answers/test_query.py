"""Answers: what they cover, who was heard, and how sure they are."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from msgspec.structs import replace as changed
from numpy.typing import NDArray

from aggregator.answers.curves import CurveQuestion, ShownDensity
from aggregator.answers.fleet.completeness import stream_places
from aggregator.answers.fleet.status import COLUMNS
from aggregator.answers.fleet.status_answer import (
    FleetDevices,
    RefusedMessages,
    ServiceState,
    SilentDevice,
    StatusAnswer,
    StreamState,
)
from aggregator.answers.fleet.status_text import status_text
from aggregator.answers.local_time import Grouping
from aggregator.answers.plan_view import HalfWidth, plan_terms, theta_text
from aggregator.answers.query import WHOLE, Answer, Facts, answer, curve_shown, prepare_curve
from aggregator.answers.query_answer import QueryAnswer, query_answer, query_text
from aggregator.answers.sums_answer import SumFigures, SumPart, SumsAnswer
from aggregator.answers.units import text_table
from aggregator.commands.common import one_thread
from aggregator.config import StreamTable
from aggregator.counting.records import Record
from aggregator.counting.reporters import pack_reporters
from aggregator.counting.seen_batches import DeviceState
from aggregator.counting.tally import MOST, CountRows
from aggregator.plans import planner
from aggregator.plans.revision import Revision
from aggregator.store.rows import ReportSum
from edge_ldp.device.errors import ParameterError
from edge_ldp.errors import CountsError
from edge_ldp.mechanisms import Hybrid
from edge_ldp.sums import CodeCounts, Epoch, estimate_mean, estimate_means
from edge_ldp.vectorized import perturb_many

STREAM = StreamTable(
    name="power",
    id=1,
    unit="W",
    ceiling=4095,
    epsilon=Decimal(4),
    horizon=10_000,
    size=64,
    survey_size=64,
)
SURVEY = planner.first_plan("demo", STREAM, epoch=1, now_s=0)
PLANS = {
    1: SURVEY,
    2: replace(
        SURVEY,
        epoch=2,
        share=(4096, 65_536),
        stream_mechanism=Hybrid(epsilon=4, low=0, high=1000, size=64),
    ),
}
FIRST_BUCKET = 475_000  # an hour each; 475000 % 24 == 16
ZONE = timezone(timedelta(hours=1))
DEVICES = 40
DAYS = 10
MEANS = np.where(np.arange(24) == 18, 600, 200)  # W by hour of the day, local


def simulate() -> tuple[Facts, NDArray[np.int64]]:
    """Return facts of a fleet that is surveyed for a day and then asked for sums; and the truth."""
    rng = np.random.default_rng(5)
    rows: list[NDArray[np.int64]] = []
    truth = []
    for bucket in range(FIRST_BUCKET, FIRST_BUCKET + 24 * DAYS):
        plan = PLANS[1 if bucket < FIRST_BUCKET + 24 else 2]
        values = rng.integers(0, 2 * MEANS[(bucket + 1) % 24] + 1, DEVICES * 4)
        coins = rng.integers(0, plan.share[1], len(values)) < plan.share[0]
        codes = perturb_many(plan.stream_mechanism, values, entropy=rng.bytes)
        surveys = perturb_many(plan.survey_mechanism, values, entropy=rng.bytes)
        codes = np.where(coins, surveys + plan.stream_mechanism.code_count, codes)
        found, counts = np.unique(codes, return_counts=True)
        head = np.full_like(found, plan.epoch), np.full_like(found, bucket)
        rows.append(np.stack([*head, found, counts]))
        truth.append(values.sum())
    columns = np.concatenate(rows, axis=1)
    counted = CountRows(*columns)
    buckets = np.arange(FIRST_BUCKET, FIRST_BUCKET + 24 * DAYS)
    presence = np.stack([buckets, np.full_like(buckets, DEVICES * 4)], axis=1)
    spans = np.tile([[int(buckets[0]), int(buckets[-1])]], (DEVICES, 1))
    return Facts(PLANS, counted, presence, spans, DEVICES + 2), np.array(truth)


def ask(
    stream: StreamTable, facts: Facts, by: Grouping = WHOLE, asked: CurveQuestion | None = None
) -> Answer:
    return answer(stream, facts, by, curve=partial(curve_shown, facts.plans, facts.rows, asked))


def density_of(found: Answer) -> ShownDensity:
    assert found.curve is not None
    assert found.curve.density is not None
    return found.curve.density


FACTS, TRUTH = simulate()
ANSWER = ask(STREAM, FACTS, Grouping("hour-of-day", ZONE))


def empty(facts: Facts) -> Facts:
    none = np.zeros(0, np.int64)
    rows = CountRows(none, none, none, none)
    return replace(
        facts, rows=rows, presence=np.zeros((0, 2), np.int64), spans=np.zeros((0, 2), np.int64)
    )


def rows_of(chosen: NDArray[np.bool_]) -> CountRows:
    rows = FACTS.rows
    return CountRows(rows.epoch[chosen], rows.bucket[chosen], rows.code[chosen], rows.count[chosen])


def epochs_of(chosen: NDArray[np.bool_]) -> list[Epoch]:
    """Return the reports of the rows chosen as estimates take them, counted in another way."""
    rows = rows_of(chosen)
    made = []
    for epoch in np.unique(rows.epoch).tolist():
        sums, survey = PLANS[epoch].stream_mechanism, PLANS[epoch].survey_mechanism
        codes = sums.code_count + survey.code_count
        mine = rows.epoch == epoch
        counted = np.bincount(rows.code[mine], rows.count[mine], codes).astype(np.int64)
        streams, surveys = counted[: sums.code_count], counted[sums.code_count :]
        made.append(Epoch(CodeCounts(sums, streams), CodeCounts(survey, surveys)))
    return made


def test_the_total_covers_the_truth_from_the_first_stream_report_on() -> None:
    whole = ANSWER.whole
    assert (ANSWER.first_bucket, ANSWER.last_bucket) == (
        FIRST_BUCKET + 24,
        FIRST_BUCKET + 24 * DAYS - 1,
    )
    assert whole.total is not None
    assert whole.total_low is not None
    assert whole.total_high is not None
    truth = int(TRUTH[24:].sum())
    assert whole.total_low < truth < whole.total_high
    assert abs(whole.total / truth - 1) < 0.1
    assert whole.corrected
    assert whole.device_slots == DEVICES * 4 * 24 * (DAYS - 1)
    assert whole.mean == pytest.approx(whole.total / whole.device_slots)


def test_the_first_surveys_are_in_the_density_and_in_no_mean() -> None:
    late = FACTS.rows.bucket >= FIRST_BUCKET + 24
    found = estimate_mean(epochs_of(late), ceiling=STREAM.ceiling)
    assert found is not None
    whole = ANSWER.whole
    assert (whole.mean, whole.low, whole.high) == (found.mean, found.low, found.high)
    assert (whole.n, whole.surveys, whole.own) == (found.n, found.surveys, 1)
    assert density_of(ANSWER).n == (whole.surveys or 0) + DEVICES * 4 * 24


LOCAL_S = 3600  # of ZONE


def local_hour(bucket: int) -> int:
    return (bucket * 3600 + LOCAL_S) // 3600 % 24


def local_day(bucket: int) -> int:
    """Return the first second (UTC) of the local day."""
    local = datetime.fromtimestamp(bucket * 3600, timezone(timedelta(seconds=LOCAL_S)))
    return int(local.replace(hour=0).timestamp())


def local_week(bucket: int) -> int:
    """Return the first second (UTC) of the local week, which begins on Monday."""
    day = datetime.fromtimestamp(local_day(bucket), timezone(timedelta(seconds=LOCAL_S)))
    return int((day - timedelta(days=day.weekday())).timestamp())


@pytest.mark.parametrize(
    ("by", "group_of", "groups"),
    [("hour-of-day", local_hour, 24), ("day", local_day, 10), ("week", local_week, 3)],
)
def test_groups_are_local_time_and_each_has_the_mean_of_its_stratum(
    by: str, group_of: Callable[[int], int], groups: int
) -> None:
    """Against the same reports sorted by the calendar, and told to the estimate as strata."""
    found = ask(STREAM, FACTS, Grouping(by, ZONE))
    late = FACTS.rows.bucket >= FIRST_BUCKET + 24
    names = np.array([group_of(bucket) for bucket in FACTS.rows.bucket.tolist()])
    expected = np.unique(names[late]).tolist()
    assert [group.group for group in found.groups] == expected
    assert len(expected) == groups
    strata = [epochs_of(late & (names == name)) for name in expected]
    means = estimate_means(strata, ceiling=STREAM.ceiling)
    assert found.spread == means.spread
    assert found.unseen == (means.unseen if groups > 3 else None)
    for group, mean in zip(found.groups, means.strata, strict=True):
        assert mean is not None
        assert (group.mean, group.low, group.high) == (mean.mean, mean.low, mean.high)
        assert (group.n, group.surveys, group.own) == (mean.n, mean.surveys, mean.own)
        assert group.total == pytest.approx(mean.mean * (group.device_slots or 0))
    assert sum(group.n or 0 for group in found.groups) == found.whole.n
    assert sum(group.device_slots or 0 for group in found.groups) == found.whole.device_slots
    whole = means.whole
    assert whole is not None
    assert (found.whole.mean, found.whole.high) == (whole.mean, whole.high)


def test_devices_heard_and_missing_are_shown() -> None:
    assert (ANSWER.whole.devices, ANSWER.whole.missing) == (DEVICES, 2)
    spans = FACTS.spans.copy()
    spans[0] = FIRST_BUCKET, FIRST_BUCKET + 23  # gone before the sums began
    spans[1] = FIRST_BUCKET + 24, FIRST_BUCKET + 24  # there for one hour: 16 h UTC, 17 h local
    found = ask(STREAM, replace(FACTS, spans=spans), Grouping("hour-of-day", ZONE))
    assert found.whole.devices == DEVICES - 1
    by_hour = {group.group: group.devices for group in found.groups}
    assert by_hour[17] == DEVICES - 1
    assert by_hour[18] == DEVICES - 2


def test_surveys_of_several_ranges_give_one_density() -> None:
    rng = np.random.default_rng(6)
    narrow = replace(PLANS[2], epoch=3, survey_mechanism=STREAM.survey(0, 1023))
    offset = narrow.stream_mechanism.code_count
    values = rng.integers(0, 401, 20_000)
    codes = offset + perturb_many(narrow.survey_mechanism, values, entropy=rng.bytes)
    found, counts = np.unique(codes, return_counts=True)
    more = np.stack([np.full_like(found, 3), np.full_like(found, FIRST_BUCKET), found, counts])
    old = FACTS.rows
    rows = CountRows(
        *np.concatenate([np.stack([old.epoch, old.bucket, old.code, old.count]), more], axis=1)
    )
    both = ask(STREAM, replace(FACTS, plans={**PLANS, 3: narrow}, rows=rows))
    density = density_of(both)
    assert both.curve is not None
    assert density.method.startswith("EMS of 2 kinds of surveys and the stream reports, ")
    assert density.n > 20_000
    median = both.curve.quantiles[2]
    assert median.low <= 204 <= median.high
    assert (np.array(density.low) <= density.probabilities).all()
    assert both.whole.mean is not None


def test_few_surveys_are_warned_of() -> None:
    rows = FACTS.rows
    only = rows_of((rows.epoch == 2) & (rows.bucket < FIRST_BUCKET + 26))
    found = ask(STREAM, replace(FACTS, rows=only))
    assert density_of(found).warnings
    assert "warning: fewer than" in query_text(told(found))


def test_without_surveys_the_interval_allows_for_all_that_may_lie_above_theta() -> None:
    """By Markov's inequality: at most mean/θ of the values lie above, none beyond the ceiling."""
    rows = FACTS.rows
    sums = (rows.epoch == 2) & (rows.code < PLANS[2].stream_mechanism.code_count)
    found = ask(STREAM, replace(FACTS, rows=rows_of(sums)))
    whole, full = found.whole, ANSWER.whole
    assert (whole.corrected, whole.bias, whole.surveys) == (False, 0, 0)
    assert whole.n == full.n
    assert whole.low is not None
    assert whole.mean is not None
    assert whole.high is not None
    noise = whole.mean - whole.low
    theta = PLANS[2].theta
    most = (STREAM.ceiling - theta) * (whole.mean + noise) / theta
    assert whole.high == pytest.approx(whole.mean + noise + most)
    assert found.curve is None
    assert (found.groups, found.unseen) == ([], None)
    text = query_text(told(found))
    assert "no surveys: the interval allows for all that may lie above θ" in text
    assert "any distribution" not in text
    assert "need not add up" not in text
    assert "any distribution" in query_text(told(ANSWER))
    assert "groups need not add up to the whole\n" in query_text(told(ANSWER))


def test_a_mean_outside_its_interval_is_told_to_be_right_AGG_33() -> None:
    view = told(ANSWER)
    low = view.whole.low
    assert low is not None
    for mean, is_told in ((low - 1, True), (low, False)):
        whole = changed(view.whole, mean=mean)
        text = query_text(changed(view, whole=whole, groups=[]))
        assert ("a mean lies outside its 95 %: it is unbiased" in text) == is_told


def test_hours_without_surveys_have_theirs_by_the_others() -> None:
    """Where a stratum has none of its own, its tail is by all of them, and is less sure."""
    rows = FACTS.rows
    sums = rows.code < PLANS[2].stream_mechanism.code_count
    at_six = (rows.bucket * 3600 + LOCAL_S) // 3600 % 24 == 6
    only = rows_of((rows.epoch == 2) & (sums | ~at_six))
    found = ask(STREAM, replace(FACTS, rows=only), Grouping("hour-of-day", ZONE))
    six = found.groups[6]
    assert (six.group, six.surveys, six.own, six.corrected) == (6, 0, 0, True)
    assert six.high is not None
    assert six.mean is not None
    assert six.high < STREAM.ceiling
    assert all((group.surveys or 0) > 0 for group in found.groups if group.group != 6)


def test_during_the_first_survey_the_mean_is_that_of_the_surveys() -> None:
    """And so it is of a stream that is configured to survey for ever: wide, and as honest."""
    first = FACTS.rows.epoch == 1
    found = ask(STREAM, replace(FACTS, rows=rows_of(first)), Grouping("day", ZONE))
    whole = found.whole
    alone = estimate_mean(epochs_of(first), ceiling=STREAM.ceiling)
    assert alone is not None
    assert (whole.mean, whole.low, whole.high) == (alone.mean, alone.low, alone.high)
    assert (whole.n, whole.surveys, whole.corrected) == (0, DEVICES * 4 * 24, True)
    assert whole.low is not None
    assert whole.high is not None
    assert whole.low < TRUTH[:24].sum() / (DEVICES * 4 * 24) < whole.high
    assert whole.high - whole.low > 2 * ((ANSWER.whole.high or 0.0) - (ANSWER.whole.low or 0.0))
    surveys = [group.surveys for group in found.groups]
    assert sum(one or 0 for one in surveys) == whole.surveys
    assert {group.n for group in found.groups} == {0}
    assert [group.mean is None for group in found.groups] == [n == 0 for n in surveys]
    assert density_of(found).n == whole.surveys
    assert (found.first_bucket, whole.devices) == (FIRST_BUCKET, DEVICES)
    text = query_text(told(found))
    assert "no surveys" not in text
    assert "any distribution" in text


def test_no_reports_at_all_is_an_answer_too() -> None:
    found = ask(STREAM, empty(FACTS), Grouping("hour-of-day", ZONE))
    assert (found.whole.mean, found.curve, found.groups) == (None, None, [])
    assert (found.spread, found.unseen) == (0, None)
    assert found.first_bucket is None
    assert ask(STREAM, replace(empty(FACTS), plans={})).curve is None
    few = ask(STREAM, replace(empty(FACTS), least=10))
    for one in (found, few):
        assert query_text(told(one)).splitlines() == [
            "power, no reports in this range",
            "reports of all time: counted 10, rejected 2, duplicates 1",
        ]


def test_a_curve_made_on_another_thread_is_the_same_to_the_bit() -> None:
    by = Grouping("day", ZONE)
    with one_thread() as begin:
        begin(partial(prepare_curve, FACTS.plans))
        curve = begin(partial(curve_shown, FACTS.plans, FACTS.rows))
        found = answer(STREAM, FACTS, by, curve=curve)
    views = [told(one) for one in (found, ask(STREAM, FACTS, by))]
    assert views[0] == views[1]
    assert views[0].density is not None
    assert views[0].density.probabilities


def test_buckets_longer_than_an_hour_have_no_hour_of_day() -> None:
    long = replace(STREAM, bucket_slots=8)
    with pytest.raises(ParameterError, match="hour"):
        ask(long, FACTS, Grouping("hour-of-day", ZONE))
    assert ask(long, FACTS, Grouping("day", ZONE)).groups
    with pytest.raises(ParameterError, match="week"):
        ask(STREAM, FACTS, Grouping("weekday", ZONE))


def told_by(spans: NDArray[np.int64], least: int) -> Facts:
    """Return the facts as of devices that reported in all of their spans."""
    reporters = {}
    for bucket in FACTS.presence[:, 0].tolist():
        who = np.flatnonzero((spans[:, 0] <= bucket) & (bucket <= spans[:, 1])).tolist()
        reporters[bucket] = pack_reporters(who, who)
    rows = replace(FACTS.rows, reporters=reporters)
    return replace(FACTS, rows=rows, spans=spans, least=least)


def test_nothing_is_given_out_of_fewer_devices_than_asked_for_AGG_13() -> None:
    """The crowd is of devices that reported in the range, and in each group of it."""
    assert ask(STREAM, told_by(FACTS.spans, DEVICES)).whole == ANSWER.whole
    few = ask(STREAM, told_by(FACTS.spans, DEVICES + 1), Grouping("hour-of-day", ZONE))
    assert few.curve is None
    for group in (few.whole, *few.groups):
        assert (group.withheld, group.mean, group.total, group.low, group.n) == (
            *(True, None, None),
            *(None, None),
        )
    text = query_text(told(few))
    assert "withheld" in text
    assert "energy kWh" in text
    assert "× slots" not in text
    spans = FACTS.spans.copy()
    spans[0] = FIRST_BUCKET + 24, FIRST_BUCKET + 24  # one is heard at 17 h local only
    lone = ask(STREAM, told_by(spans, DEVICES), Grouping("hour-of-day", ZONE))
    assert all(group.withheld for group in lone.groups)  # the whole less 17 h is of the others
    assert (lone.whole.mean, lone.whole.high) == (ANSWER.whole.mean, ANSWER.whole.high)


def test_a_part_of_few_devices_takes_the_next_smallest_with_it_PRV_21() -> None:
    """Three homes on the first day, ten more on the second: the whole less later days is of 13."""
    first = FIRST_BUCKET + 24
    spans = FACTS.spans.copy()
    spans[:3, 0], spans[3:13, 0], spans[13:, 0] = first, first + 24, first + 48
    few = answer(STREAM, told_by(spans, 10), Grouping("day", ZONE))
    assert [group.devices for group in few.groups[:3]] == [None, None, DEVICES]
    assert [group.withheld for group in few.groups] == [True, True] + [False] * (DAYS - 2)
    assert not few.whole.withheld
    assert "the whole and the other groups together" in query_text(told(few))


@pytest.mark.parametrize("zone", [ZONE, ZoneInfo("America/New_York")], ids=str)
@pytest.mark.parametrize("by", ["day", "week", "hour-of-day"])
def test_the_whole_less_all_that_is_shown_is_of_a_crowd_PRV_21(by: str, zone: tzinfo) -> None:
    """Random lives of devices, seeded; who was there is counted here by sets."""
    rng = np.random.default_rng(23)
    first, last = (int(bucket) for bucket in FACTS.presence[[24, -1], 0])
    seen = set()
    for _ in range(20):
        spans = np.sort(rng.integers(first, last + 1, (DEVICES, 2)), axis=1)
        spans[rng.random(DEVICES) < 0.7] = first + 30, first + 32  # most for a moment
        found = answer(STREAM, told_by(spans, 10), Grouping(by, zone))
        names = Grouping(by, zone).of_all(STREAM, FACTS.presence[24:, 0])
        hidden = {group.group for group in found.groups if group.withheld}
        told_of = {
            device
            for device, (since, until) in enumerate((spans - first).tolist())
            if hidden & set(names[since : until + 1].tolist())
        }
        assert not hidden or len(told_of) >= 10 or len(hidden) == len(found.groups)
        seen.add((bool(hidden), len(hidden) == len(found.groups)))
    assert (True, False) in seen or by == "week"


def test_quantiles_and_ranges_that_are_asked_for_are_given_with_intervals() -> None:
    asked = CurveQuestion((0.1, 0.5, 0.999), ((0, 100), (100, 4096), (5000, 6000)))
    found = ask(STREAM, FACTS, asked=asked)
    made = told(found)
    quantiles, ranges = made.quantiles, made.ranges
    assert [row.share for row in quantiles] == [0.1, 0.5, 0.999]
    assert all(row.low < row.value < row.high for row in quantiles)
    below, above, nowhere = ranges
    assert below.share + above.share == pytest.approx(1)
    truth = sum(min(100, 2 * mean + 1) / (2 * mean + 1) for mean in MEANS) / 24
    assert below.share_low < truth < below.share_high
    assert (nowhere.share, nowhere.low, nowhere.high) == (0, 5000, 6000)
    assert "99.9 %" in query_text(made)
    assert "from 0 to below 100 W" in query_text(made)


def test_a_damaged_table_is_refused() -> None:
    rows = FACTS.rows
    damaged = CountRows(rows.epoch + 5, rows.bucket, rows.code, rows.count)
    with pytest.raises(CountsError):
        ask(STREAM, replace(FACTS, rows=damaged))


def told(found: Answer, revisions: Sequence[Revision] = ()) -> QueryAnswer:
    nothing = ReportSum(1, None, False, None, 0, 1, 0, 0, 0, 0, 0, 0)
    records = [nothing._replace(counted=7, rejected=2, duplicates=1), nothing._replace(counted=3)]
    facts = replace(FACTS, records=records)
    return query_answer(STREAM, found, facts, revisions, zone=ZONE)


def test_what_reports_alone_tell_stands_beside_sums_too() -> None:
    sums = SumsAnswer(
        whole=SumFigures(mean=2.0, low=1.9, high=2.1), periods=[], parts=[], warnings=[]
    )
    found = query_answer(STREAM, ANSWER, FACTS, zone=ZONE, sums=sums)
    assert (found.mode, found.best.mode) == ("sums", "local")  # they are not of all the time
    text = query_text(found)
    assert (
        text.index("homes' own sums") < text.index("beside, by reports") < text.index("share below")
    )
    hours = query_answer(STREAM, ANSWER, FACTS, zone=ZONE, sums=sums, by="hour-of-day")
    assert hours.mode == "local"  # of which sums of whole days say nothing
    assert query_text(hours).count("\n") > 24
    parts = [SumPart.of(sums.whole, from_day_s=21_600 * at, to_day_s=0) for at in range(4)]
    asked: dict[str, Any] = {"sums": changed(sums, parts=parts), "by": "hour-of-day"}
    for given in (None, "sums"):
        blocks = query_answer(STREAM, ANSWER, FACTS, mode=given, **asked)
        assert (blocks.mode, len(blocks.warnings)) == ("sums", 1)
        assert "blocks of 6 hours" in blocks.warnings[0]


def test_half_widths_expected_stand_with_the_plan_that_a_revision_is_about() -> None:
    forecast = (("whole over 7 days", 12.5), ("day over 7 days", 40.0))
    revisions = [
        Revision(at_s, 2, 1000, (0, 4095), (5, 6), (why,), 0.0625, forecast[:many], 11.0)
        for at_s, why, many in ((8, "before", 1), (9, "since", 2))
    ]
    first, second = plan_terms(PLANS, revisions)
    assert (first.forecast, first.reasons) == (None, None)
    assert second.reasons == ["since"]
    assert second.forecast == [
        HalfWidth(question="whole over 7 days", half_width=12.5),
        HalfWidth(question="day over 7 days", half_width=40.0),
    ]
    assert told(ANSWER, revisions).theta == [first, second]
    ordered = plan_terms({3: PLANS[2]}, revisions)  # after the revision, by an operator
    assert ordered[0].forecast is None


def test_tables_are_for_people() -> None:
    text = query_text(told(ANSWER))
    assert "devices heard 40, missing 2" in text
    assert "18 h" in text
    beyond = f"between groups, what lies above θ differs by {ANSWER.spread:,.1f} W beyond noise"
    assert beyond in text
    assert beyond not in query_text(told(ask(STREAM, FACTS, Grouping("week", ZONE))))
    assert "2024-03-16" in query_text(told(ask(STREAM, FACTS, Grouping("day", ZONE))))
    assert text_table(["a", "b"], [["x", "10"], ["long", "2"]]).splitlines() == [
        "a      b",
        "x     10",
        "long   2",
    ]
    assert "4095" in theta_text("W", plan_terms(PLANS))


def test_completeness_adds_up_for_every_record() -> None:
    record = Record(DeviceState(highest=9), None, 50, 4, 3, 2, 60, 1, 2, 11, 5)
    row = stream_places(("home", 1), record, {1: "power"})
    assert row.created == 50 + row.rejected + (row.expired or 0) + (row.pending or 0)
    assert row.pending == 60 - 49 - 1
    sums = {name: getattr(row, name) for name in COLUMNS}
    stream = StreamState(stream="power", unit="W", plan=None, look=None, retired_s=None, **sums)
    late = RefusedMessages(reason="late", stream=None, messages=1, reports=2)
    nobody = ServiceState(runs=False, workers=[], is_late=False, last_commit_age_s=None)
    devices = FleetDevices(
        revoked=[],
        held=[],
        refusing=[],
        degraded=[],
        enrolled=1,
        online=0,
        offline=1,
        unknown=0,
        silent=1,
        longest_silent=SilentDevice(device="home", seen_s=100, age_s=900),
    )
    status = StatusAnswer(
        fleet="demo",
        now_s=1000,
        service=nobody,
        last_commit_s=None,
        streams=[stream],
        refused=[late],
        devices=devices,
        curated_streams=0,
        completeness=[row],
        curated=[],
        marked=[],
        is_fast=False,
    )
    text = status_text(status)
    assert "no plan yet" in text
    assert "0 never heard; 1 silent for a day or ever\n" in text
    assert "1 silent for a day of real time or ever\n" in status_text(changed(status, is_fast=True))
    assert "oldest status message: home, 1970-01-01 00:01 UTC (15 min ago)" in text
    assert "NO SERVICE RUNS ON THIS STORE" in text
    assert ("not counted" in text, "duplicate:" in text) == (True, False)
    assert "not counted" not in status_text(changed(status, refused=[]))
    again = RefusedMessages(reason="duplicate", stream="power", messages=1, reports=2)
    told = "duplicate: sent again by the device, and counted already"
    assert told in status_text(changed(status, refused=[again])).splitlines()
    busy = status_text(changed(status, service=changed(nobody, runs=True)))
    assert "NO SERVICE" not in busy


def test_no_answer_is_given_of_a_count_at_the_integers_end_AGG_23() -> None:
    counts = FACTS.rows.count.copy()
    counts[3] = MOST
    with pytest.raises(CountsError, match="the largest there is"):
        answer(STREAM, replace(FACTS, rows=replace(FACTS.rows, count=counts)))
