"""Answers: what they cover, who was heard, and how sure they are."""

import json
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from numpy.typing import NDArray

from aggregator import planner
from aggregator.config import StreamTable
from aggregator.curves import Asked
from aggregator.errors import ArgumentError, CountsError
from aggregator.poisoning import largest_shift
from aggregator.query import Answer, Facts, answer
from aggregator.receipts import DeviceState
from aggregator.records import CountRows, Record
from aggregator.views import (
    answer_text,
    answer_view,
    completeness_view,
    status_text,
    table,
    theta_text,
    theta_view,
)
from edge_ldp.mechanisms import Hybrid
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
    utc_offset_s=3600,
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
    return Facts(PLANS, counted, counted, presence, spans, DEVICES + 2), np.array(truth)


FACTS, TRUTH = simulate()
ANSWER = answer(STREAM, FACTS, "hour-of-day")


def empty(facts: Facts) -> Facts:
    none = np.zeros(0, np.int64)
    rows = CountRows(none, none, none, none)
    return replace(
        facts,
        rows=rows,
        totals=rows,
        presence=np.zeros((0, 2), np.int64),
        spans=np.zeros((0, 2), np.int64),
    )


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


def test_groups_are_local_hours_and_add_up_to_the_whole() -> None:
    assert [group.group for group in ANSWER.groups] == list(range(24))
    assert sum(group.n for group in ANSWER.groups) == ANSWER.whole.n
    highest = max(ANSWER.groups, key=lambda group: group.mean or 0.0)
    assert highest.group == 18


def test_devices_heard_and_missing_are_shown() -> None:
    assert (ANSWER.whole.devices, ANSWER.whole.missing) == (DEVICES, 2)
    spans = FACTS.spans.copy()
    spans[0] = FIRST_BUCKET, FIRST_BUCKET + 23  # gone before the sums began
    spans[1] = FIRST_BUCKET + 24, FIRST_BUCKET + 24  # there for one hour: 16 h UTC, 17 h local
    found = answer(STREAM, replace(FACTS, spans=spans), "hour-of-day")
    assert found.whole.devices == DEVICES - 1
    by_hour = {group.group: group.devices for group in found.groups}
    assert by_hour[17] == DEVICES - 1
    assert by_hour[18] == DEVICES - 2


def test_the_density_comes_from_the_surveys_of_the_range() -> None:
    density = ANSWER.density
    assert density is not None
    assert density.n > DEVICES * 4 * 24
    assert density.probabilities.sum() == pytest.approx(1)
    assert density.mean() == pytest.approx(217, abs=60)


def test_densities_and_quantiles_carry_intervals_that_hold() -> None:
    made = view(ANSWER)
    density, quantiles = made["density"], made["quantiles"]
    assert isinstance(density, dict)
    assert isinstance(quantiles, list)
    cells = zip(density["low"], density["probabilities"], density["high"], strict=True)
    assert all(low <= shown <= high for low, shown, high in cells)
    assert density["method"] == "EMS of the surveys, bootstrap bands"
    uniform = [np.arange(2 * mean + 1) for mean in MEANS]
    weights = np.concatenate([np.full(len(u), 1 / len(u)) for u in uniform])
    values = np.concatenate(uniform)
    order = np.argsort(values)
    below = np.cumsum(weights[order]) / weights.sum()
    held = 0
    for row in quantiles:
        assert row["low"] <= row["value"] <= row["high"]
        truth = values[order][np.searchsorted(below, row["share"])]
        held += row["low"] <= truth <= row["high"]
    assert held >= len(quantiles) - 1


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
    both = answer(
        STREAM, replace(FACTS, plans={**PLANS, 3: narrow}, rows=rows, totals=rows), "none"
    )
    assert both.curve is not None
    assert both.curve.method == "posterior of 2 kinds of surveys and of the sums' reports"
    assert both.curve.density.n > 20_000
    low, high = both.curve.quantiles.low, both.curve.quantiles.high
    assert low[2] - 5 <= 204 <= high[2] + 5  # the median of all values
    assert (both.curve.cells.low <= both.curve.density.probabilities).all()
    assert both.whole.mean is not None


def test_few_surveys_are_warned_of() -> None:
    rows = FACTS.rows
    few = (rows.epoch == 2) & (rows.bucket < FIRST_BUCKET + 26)
    only = CountRows(rows.epoch[few], rows.bucket[few], rows.code[few], rows.count[few])
    found = answer(STREAM, replace(FACTS, rows=only), "none")
    assert found.density is not None
    assert found.density.warnings
    assert "warning: fewer than" in answer_text(answer_view(STREAM, found, PLANS, []))


def test_without_surveys_the_answer_says_that_it_is_not_corrected() -> None:
    rows = FACTS.rows
    sums = (rows.epoch == 2) & (rows.code < PLANS[2].stream_mechanism.code_count)
    only = CountRows(rows.epoch[sums], rows.bucket[sums], rows.code[sums], rows.count[sums])
    found = answer(STREAM, replace(FACTS, rows=only, totals=only), "none")
    assert not found.whole.corrected
    assert found.density is None
    assert found.groups == []
    assert "not corrected" in answer_text(answer_view(STREAM, found, PLANS, []))


def test_during_the_first_survey_there_is_a_density_and_no_mean() -> None:
    rows = FACTS.rows
    early = rows.epoch == 1
    only = CountRows(rows.epoch[early], rows.bucket[early], rows.code[early], rows.count[early])
    found = answer(STREAM, replace(FACTS, rows=only, totals=only), "none")
    assert (found.whole.mean, found.whole.n) == (None, 0)
    assert found.density is not None


def test_no_reports_at_all_is_an_answer_too() -> None:
    found = answer(STREAM, empty(FACTS), "hour-of-day")
    assert (found.whole.mean, found.density, found.groups) == (None, None, [])
    assert found.first_bucket is None
    assert answer(STREAM, replace(empty(FACTS), plans={}), "none").density is None
    assert "-" in answer_text(answer_view(STREAM, found, PLANS, []))


def test_the_same_counts_give_the_same_answer() -> None:
    again = answer(STREAM, FACTS, "hour-of-day")
    assert (again.whole, again.groups) == (ANSWER.whole, ANSWER.groups)


def test_buckets_longer_than_an_hour_have_no_hour_of_day() -> None:
    long = replace(STREAM, bucket_slots=8)
    with pytest.raises(ArgumentError, match="hour"):
        answer(long, FACTS, "hour-of-day")
    with pytest.raises(ArgumentError):
        answer(STREAM, FACTS, "weekday")


def test_nothing_is_given_out_of_fewer_devices_than_asked_for_AGG_13() -> None:
    """The crowd is of devices heard in the range, and in each group of it."""
    assert answer(STREAM, replace(FACTS, least=DEVICES), "none").whole == ANSWER.whole
    few = answer(STREAM, replace(FACTS, least=DEVICES + 1), "hour-of-day")
    assert few.curve is None
    for group in (few.whole, *few.groups):
        assert (group.withheld, group.mean, group.total, group.low, group.n) == (
            *(True, None, None),
            *(None, 0),
        )
    assert "withheld" in answer_text(view(few))
    spans = FACTS.spans.copy()
    spans[0] = FIRST_BUCKET + 24, FIRST_BUCKET + 24  # one is heard at 17 h local only
    lone = answer(STREAM, replace(FACTS, spans=spans, least=DEVICES), "hour-of-day")
    assert [group.group for group in lone.groups if not group.withheld] == [17]
    assert lone.whole.mean is not None


def test_quantiles_and_ranges_that_are_asked_for_are_given_with_intervals() -> None:
    asked = Asked((0.1, 0.5, 0.999), ((0, 100), (100, 4096), (5000, 6000)))
    found = answer(STREAM, FACTS, "none", asked)
    made = view(found)
    quantiles, ranges = made["quantiles"], made["ranges"]
    assert isinstance(quantiles, list)
    assert isinstance(ranges, list)
    assert [row["share"] for row in quantiles] == [0.1, 0.5, 0.999]
    assert all(row["low"] < row["value"] < row["high"] for row in quantiles)
    below, above, nowhere = ranges
    assert below["share"] + above["share"] == pytest.approx(1)
    truth = sum(min(100, 2 * mean + 1) / (2 * mean + 1) for mean in MEANS) / 24
    assert below["share_low"] < truth < below["share_high"]
    assert (nowhere["share"], nowhere["low"], nowhere["high"]) == (0, 5000, 6000)
    assert "99.9 %" in answer_text(made)
    assert "from 0 to below 100 W" in answer_text(made)


def test_a_damaged_table_is_refused() -> None:
    rows = FACTS.rows
    damaged = CountRows(rows.epoch + 5, rows.bucket, rows.code, rows.count)
    with pytest.raises(CountsError):
        answer(STREAM, replace(FACTS, rows=damaged), "none")


def view(found: Answer) -> dict[str, object]:
    records = [Record(counted=7, rejected=2, duplicates=1), Record(counted=3)]
    made = answer_view(STREAM, found, PLANS, records)
    assert json.loads(json.dumps(made)) == made
    return made


def test_the_json_has_the_documented_keys() -> None:
    made = view(ANSWER)
    assert list(made) == [
        *("stream", "unit", "from_s", "to_s", "whole", "groups", "density", "quantiles"),
        *("ranges", "theta", "counts"),
    ]
    numbers = {
        *("mean", "low", "high", "total", "total_low", "total_high", "n", "bias"),
        *("corrected", "devices", "missing", "device_slots", "withheld"),
    }
    whole, groups, density = made["whole"], made["groups"], made["density"]
    assert isinstance(whole, dict)
    assert isinstance(groups, list)
    assert isinstance(density, dict)
    assert set(whole) == numbers
    assert set(groups[0]) == {*numbers, "group"}
    assert set(density) == {
        *("edges", "probabilities", "low", "high", "n", "iterations", "method", "warnings"),
    }
    assert len(density["edges"]) == len(density["probabilities"]) + 1
    assert made["theta"] == [
        {
            "epoch": epoch,
            "theta": theta,
            "issued_s": 0,
            "survey_share": share,
            "survey_low": 0,
            "survey_high": 4095,
            "influence": PLANS[epoch].stream_mechanism.influence,
            "shift_per_percent": largest_shift(PLANS[epoch].stream_mechanism, 0.01),
        }
        for epoch, theta, share in ((1, 4095, 1.0), (2, 1000, 0.0625))
    ]
    assert made["counts"] == {"counted": 10, "rejected": 2, "duplicates": 1}
    assert (made["from_s"], made["to_s"]) == (
        (FIRST_BUCKET + 24) * 3600,
        (FIRST_BUCKET + 24 * DAYS) * 3600,
    )


def test_tables_are_for_people() -> None:
    text = answer_text(view(ANSWER))
    assert "devices heard 40, missing 2" in text
    assert "18 h" in text
    assert table(["a", "b"], [["x", "10"], ["long", "2"]]).splitlines() == [
        "a      b",
        "x     10",
        "long   2",
    ]
    assert "4095" in theta_text("W", theta_view(PLANS))


def test_completeness_adds_up_for_every_record() -> None:
    record = Record(DeviceState(highest=9), None, 50, 4, 3, 2, 60, 1, 2, 11, 5)
    row = completeness_view(("home", 1), record, {1: "power"})
    assert row["created"] == row["counted"] + row["rejected"] + row["expired"] + row["pending"]
    assert row["pending"] == 60 - 49 - 1
    status = {
        "fleet": "demo",
        "last_commit_s": None,
        "devices": {"enrolled": 1, "online": 0},
        "streams": [{"stream": "power", "unit": "W", "plan": None}],
        "completeness": [row],
        "curated": [],
        "refused": [{"reason": "late", "stream": None, "messages": 1, "reports": 2}],
    }
    assert "home power" in status_text(status)
    assert "no plan yet" in status_text(status)
