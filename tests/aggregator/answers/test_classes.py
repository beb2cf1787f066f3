"""AGG-32, AGG-33: homes weigh by their time, not by their reports, and groups add up to the whole.

Exact: counts are the very numbers that reports are expected to have, so what is estimated is what
is true, but for rounding. How far single draws are off: `python -m studies.schedule.heavy`.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from numpy.typing import NDArray

from aggregator.answers.load_curve import load_curve
from aggregator.answers.local_time import Grouping, Spans
from aggregator.answers.query import WHOLE, Answer, Facts, answer
from aggregator.config import parse_config
from aggregator.counting.classes import (
    CLASS_BITS,
    FEW,
    Weights,
    class_of,
    effect_of,
    effective,
    slots_a_report,
    unweighted,
)
from aggregator.counting.tally import CountRows, merge_epochs, whose_of
from aggregator.plans import planner
from edge_ldp.mechanisms import Mechanism
from edge_ldp.protocol.ledger import MAX_CELLS, scheduled
from edge_ldp.protocol.messages import Status, parse_status
from edge_ldp.sums import CodeCounts, quantile_band, surveys_of
from tests.aggregator.fakes import CONFIG

Ints = NDArray[np.int64]
STREAM = replace(
    parse_config(CONFIG.format(path="a.db", intake=""), "f").streams[0], survey_size=1001
)
FIRST = planner.first_plan("demo", STREAM, epoch=1, now_s=0)
SHARE = Fraction(1, 4)
PLAN = replace(FIRST, epoch=2, stream_mechanism=STREAM.sums(500), share=(1, 4))
PLANS = {1: FIRST, 2: PLAN}
BUCKET = 475_000
ONE, TWO = (class_of(scheduled(8, 97, streams, 900).chance) for streams in (1, 2))
LIGHT, HEAVY = 100, 900  # W: one below θ, one above
SLOTS = 400_000_000_000  # of each bucket that devices of a part are there
# group, class, bucket, W, reports: heavy homes report half as often, and half of them join late
PARTS = (
    (1, ONE, 0, LIGHT, SLOTS // 10),
    (1, ONE, 1, LIGHT, SLOTS // 10),
    (1, TWO, 1, HEAVY, SLOTS // 20),
    (2, ONE, 0, 2 * LIGHT, SLOTS // 10),
    (2, TWO, 0, HEAVY, SLOTS // 20),
    (2, TWO, 1, HEAVY, SLOTS // 20),
)
TRUTH = sum(value for _, _, _, value, _ in PARTS) / len(PARTS)
POOLED = sum(value * n for *_, value, n in PARTS) / sum(n for *_, n in PARTS)


@lru_cache
def law_of(mechanism: Mechanism, value: int) -> NDArray[np.float64]:
    return np.array(mechanism.probabilities(value), np.float64)


def expected(mechanism: Mechanism, value: int, reports: float) -> Ints:
    found: Ints = np.rint(reports * law_of(mechanism, value)).astype(np.int64)
    return found


def rows(shares: Sequence[Fraction | float]) -> CountRows:
    """Return what is expected of PARTS, each with its own share of surveys."""
    columns: list[Ints] = []
    for (group, cls, at, value, n), share in zip(PARTS, shares, strict=True):
        found = np.concatenate(
            [
                expected(PLAN.stream_mechanism, value, n * (1 - float(share))),
                expected(PLAN.survey_mechanism, value, n * float(share)),
            ]
        )
        codes = np.arange(len(found))
        head = (np.full_like(codes, one) for one in (2, BUCKET + at, whose_of(group, cls)))
        columns.append(np.stack([*head, codes, found]))
    epoch, bucket, whose, code, count = np.concatenate(columns, axis=1)
    order = np.lexsort((whose, bucket))
    return CountRows(epoch, bucket, code, count, whose=whose).some(order)


def present(group: int | None = None) -> Ints:
    found = [
        (BUCKET + at, sum(SLOTS for one in PARTS if one[2] == at and group in (None, one[0])))
        for at in (0, 1)
    ]
    return np.array(found, np.int64)


def device_slots() -> dict[int, int]:
    found: dict[int, int] = {}
    for group, cls, *_ in PARTS:
        whose = whose_of(group, cls)
        found[whose] = found.get(whose, 0) + SLOTS
    return found


def asked(counted: CountRows, group: int | None = None, *, weighed: bool = True) -> Answer:
    weights = Weights(counted.whose, counted.count, device_slots()) if weighed else unweighted()
    mine = counted if group is None else counted.some(counted.whose >> CLASS_BITS == group)
    facts = Facts(PLANS, mine, present(group), np.zeros((0, 2), np.int64), 9, weights=weights)
    return answer(STREAM, facts if group is None else replace(facts, within=counted), WHOLE)


def test_a_home_weighs_by_its_time_and_not_by_its_reports_AGG_32() -> None:
    """Streams of a home share its window, and half of the heavy homes joined late."""
    counted = rows([SHARE] * len(PARTS))
    found = asked(counted).whole
    assert found.mean == pytest.approx(TRUTH, rel=1e-7)
    assert found.total == pytest.approx(TRUTH * len(PARTS) * SLOTS, rel=1e-7)
    assert (found.n or 0) + (found.surveys or 0) == pytest.approx(sum(n for *_, n in PARTS))
    pooled = asked(counted, weighed=False).whole
    assert pooled.mean == pytest.approx(POOLED, rel=1e-7)
    assert POOLED / TRUTH - 1 < -0.1


def test_groups_add_up_to_the_whole_whatever_the_coin_gave_them_AGG_33() -> None:
    counted = rows([0.2, 0.3, 0.25, 0.1, 0.4, 0.0])
    whole = asked(counted).whole
    groups = [asked(counted, group).whole for group in (1, 2)]
    assert sum(one.total or 0 for one in groups) == pytest.approx(whole.total, rel=1e-12)
    assert [one.device_slots for one in groups] == [3 * SLOTS, 3 * SLOTS]
    for one in groups:
        assert (one.low or 0) < (one.mean or 0) < (one.high or 0)


def test_hours_weigh_homes_as_the_whole_does_AGG_32() -> None:
    found = answer(
        STREAM,
        Facts(
            PLANS, counted := rows([SHARE] * len(PARTS)), present(), np.zeros((0, 2), np.int64), 9,
            weights=Weights(counted.whose, counted.count, device_slots()),
        ),
        Grouping("hour-of-day", UTC),
    )  # fmt: skip
    means = [
        sum(one[3] for one in PARTS if one[2] == at) / sum(one[2] == at for one in PARTS)
        for at in (0, 1)
    ]
    assert [one.mean for one in found.groups] == pytest.approx(means, rel=1e-7)


def test_a_load_curve_weighs_homes_by_their_time_AGG_32() -> None:
    curve = load_curve(
        PLANS, [], rows([SHARE] * len(PARTS)), present(), Spans(STREAM, "hour", UTC),
        slots=device_slots(),
    )  # fmt: skip
    truncated = [
        np.mean([min(one[3], PLAN.theta) for one in PARTS if one[2] == at]) for at in (0, 1)
    ]
    assert curve.mean.tolist() == pytest.approx(truncated, rel=1e-7)


def asleep() -> tuple[CountRows, dict[int, int]]:
    """Return counts and device-slots where the homes of class TWO send nothing in the first hour.

    Group 1 has as many homes of ONE as of TWO, group 2 of TWO alone.
    """
    parts = ((1, ONE, 0, LIGHT), (1, ONE, 1, LIGHT), (1, TWO, 1, HEAVY), (2, TWO, 1, 2 * LIGHT))
    columns: list[Ints] = []
    slots: dict[int, int] = {}
    for group, cls, at, value in parts:
        whose = whose_of(group, cls)
        slots[whose] = 2 * SLOTS
        n = SLOTS / slots_a_report(cls)
        streams = expected(PLAN.stream_mechanism, value, n * float(1 - SHARE))
        surveys = expected(PLAN.survey_mechanism, value, n * float(SHARE))
        found = np.concatenate([streams, surveys])
        codes = np.arange(len(found))
        head = (np.full_like(codes, one) for one in (2, BUCKET + at, whose))
        columns.append(np.stack([*head, codes, found]))
    epoch, bucket, whose_, code, count = np.concatenate(columns, axis=1)
    order = np.lexsort((whose_, bucket))
    return CountRows(epoch, bucket, code, count, whose=whose_).some(order), slots


def test_meters_that_sleep_at_the_same_hours_count_for_what_they_measured_AGG_32() -> None:
    """They count as there all the time; hours are of those awake, and groups add up."""
    counted, slots = asleep()
    weights = Weights(counted.whose, counted.count, slots)

    def found(group: int | None, by: Grouping) -> Answer:
        each = sum(n for at, n in slots.items() if group in (None, at >> CLASS_BITS)) // 2
        present = np.array([(BUCKET, each), (BUCKET + 1, each)], np.int64)
        rows = counted if group is None else counted.some(counted.whose >> CLASS_BITS == group)
        within = None if group is None else counted
        nobody = np.zeros((0, 2), np.int64)
        facts = Facts(PLANS, rows, present, nobody, 9, weights=weights, within=within)
        return answer(STREAM, facts, by)

    hours = found(None, Grouping("hour-of-day", UTC))
    awake = (LIGHT + HEAVY + 2 * LIGHT) / 3
    assert [one.mean for one in hours.groups] == pytest.approx([LIGHT, awake], rel=1e-7)
    first = (2 * LIGHT + HEAVY) / 3
    assert found(1, WHOLE).whole.mean == pytest.approx(first, rel=1e-7)
    assert hours.whole.mean == pytest.approx((4 * first + 2 * 2 * LIGHT) / 6, rel=1e-7)
    groups = sum(found(group, WHOLE).whole.total or 0 for group in (1, 2))
    assert groups == pytest.approx(hours.whole.total, rel=1e-12)
    curve = load_curve(
        PLANS, [], counted, np.array([(BUCKET, 1), (BUCKET + 1, 1)]), Spans(STREAM, "hour", UTC),
        slots=slots,
    )  # fmt: skip
    truncated = [LIGHT, (LIGHT + PLAN.theta + 2 * LIGHT) / 3]
    assert curve.mean.tolist() == pytest.approx(truncated, rel=1e-7)


def test_densities_and_theta_weigh_homes_by_their_time_AGG_32() -> None:
    """Half of the time is at 900 W, and a third of the reports."""
    counted = rows([SHARE] * len(PARTS))
    weights = Weights(counted.whose, counted.count, device_slots())
    powers = merge_epochs(PLANS, counted, weights)[PLAN.survey_mechanism]
    band = quantile_band(surveys_of([CodeCounts(PLAN.survey_mechanism, *powers)]), [0.45, 0.55])
    assert band.low[0] <= 2 * LIGHT <= band.high[0] < HEAVY - 20 < band.low[1] <= HEAVY
    law = np.mean([law_of(PLAN.survey_mechanism, one[3]) for one in PARTS], axis=0)
    whole = effective(powers)
    np.testing.assert_allclose(whole / whole.sum(), law, rtol=1e-6)
    assert whole.sum() == pytest.approx(powers[1].sum() ** 2 / powers[2].sum())


def test_the_variance_is_that_of_every_class_by_what_its_reports_stand_for_AGG_32() -> None:
    counted = rows([0] * len(PARTS))
    found = asked(replace(counted, count=counted.count // 10**6)).whole
    weights = Weights(counted.whose, counted.count, device_slots())
    decoded = [PLAN.stream_mechanism.decode(at) for at in range(PLAN.stream_mechanism.code_count)]
    rest = 0.0
    for group, cls, _, value, n in PARTS:
        (each,) = weights.each(np.array([whose_of(group, cls)]))
        law = law_of(PLAN.stream_mechanism, value)
        middle = np.mean([min(one[3], PLAN.theta) for one in PARTS])
        rest += each**2 * n / 10**6 * float(law @ (np.array(decoded) - middle) ** 2)
    total = sum(n for *_, n in PARTS) / 10**6
    assert (found.high or 0) > (found.mean or 0)
    half = 1.959964 * rest**0.5 / total
    assert (found.mean or 0) - (found.low or 0) == pytest.approx(half, rel=2e-3)


@pytest.mark.parametrize("streams", [1, 2, 3, 16])
def test_a_class_is_how_often_a_status_says_that_a_slot_reports(streams: int) -> None:
    window = scheduled(8, 97, streams, 900)
    facts = {"reports": 8, "slots": 97, "period": window.period}
    status = Status("online", "test", manifest={"window": facts, "measures": [{}] * streams})
    told = parse_status(status.to_json()).chance
    assert told == window.heard == Fraction(max(8, streams), window.period * streams)
    cls = class_of(told)
    assert abs(slots_a_report(cls) * float(window.heard) - 1) < 0.022
    old = replace(status, manifest={**status.manifest, "window": {"reports": 8, "slots": 97}})
    assert parse_status(old.to_json()).chance == Fraction(max(8, streams), 97 * streams)


@pytest.mark.parametrize(
    ("period", "least", "most"), [(107, 1, 1), (97, 15.8, 22.7), (0, 15.8, 22.7)]
)
def test_a_class_is_how_badly_a_statuss_schedule_walks_too_AGG_31(
    period: int, least: float, most: float
) -> None:
    """AGG_31: 97 quarter hours of an agent that tells no period; √2 too much at most."""
    window = {"reports": 8, "slots": 97} | ({"period": period} if period else {})
    manifest = {"window": window, "measures": [{"slot_seconds": 900}]}
    told = parse_status(Status("online", "test", manifest=manifest).to_json())
    assert told.chance is not None
    cls = class_of(told.chance, told.effect)
    found = effect_of(np.array([whose_of(3, cls)]), np.array([7]))
    assert least <= found <= most
    assert cls < 1 << CLASS_BITS
    assert slots_a_report(cls) == slots_a_report(class_of(told.chance))
    assert effect_of(np.array([cls, ONE]), np.array([1, 3])) == (found + 3) / 4


def test_an_answers_interval_counts_schedules_that_walk_badly_AGG_31() -> None:
    """AGG_31: by the design effect, less what is counted anyway, times the values' variance."""
    counted = rows([SHARE] * len(PARTS))
    counted = counted.some(counted.whose & (1 << CLASS_BITS) - 1 == ONE)
    walk = class_of(Fraction(8, 107), 16.0) ^ class_of(Fraction(8, 107))
    badly = replace(counted, whose=counted.whose | walk)
    well, found = (asked(one, weighed=False).whole for one in (counted, badly))
    assert (found.mean, found.n) == (well.mean, well.n)
    values = np.array([LIGHT, LIGHT, 2 * LIGHT])
    more = 1.959964 * (15 * values.var() / ((found.n or 0) + (found.surveys or 0))) ** 0.5
    halves = [((one.high or 0) - (one.low or 0)) / 2 for one in (well, found)]
    assert halves[1] == pytest.approx(np.hypot(halves[0], more), rel=0.02)
    assert halves[1] > halves[0]


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        {"window": 3, "measures": []},
        {"window": {"reports": 8, "slots": 97}, "measures": []},
        {"window": {"reports": 98, "slots": 97}, "measures": [{}]},
        {"window": {"reports": 8, "slots": 97, "period": 1 << 40}, "measures": [{}]},
        {"window": {"reports": 8, "slots": 97}, "measures": [{}] * 17},
        {"window": {"reports": "8", "slots": 97}, "measures": [{}]},
    ],
)
def test_a_status_without_a_window_is_taken_and_of_no_class(manifest: dict[str, object]) -> None:
    payload = Status("online", "test", manifest=manifest).to_json()
    assert class_of(parse_status(payload).chance) == 0


def test_classes_are_few_and_fit_what_counts_are_kept_by() -> None:
    assert class_of(Fraction(1)) == 1
    assert class_of(Fraction(1, MAX_CELLS)) == 257 < 1 << CLASS_BITS
    assert slots_a_report(0) == 0


def test_parts_of_few_reports_weigh_as_their_class_and_unknown_ones_as_the_average_AGG_32() -> None:
    """A part of few has no weight of its own, which would be noise, and nobody is left out."""
    cells = [(1, ONE, 300, 3000), (2, ONE, FEW - 1, 9), (3, ONE, 1, 391), (1, TWO, 200, 4000)]
    whose = np.array([whose_of(group, cls) for group, cls, _, _ in cells])
    counts = np.array([n for _, _, n, _ in cells])
    slots = {whose_of(group, cls): there for group, cls, _, there in cells}
    assert counts.sum() == 600
    one, few, also, two = Weights(whose, counts, slots).each(whose).tolist()
    assert few == also == pytest.approx(one * (400 / FEW) / 10)
    assert two == pytest.approx(2 * one)
    assert Weights(whose, counts, slots).each(np.array([7])).tolist() == [1]
    unknown = Weights(whose, counts, {at: n for at, n in slots.items() if at != whose[3]})
    assert unknown.each(whose)[3] == 1
    assert not Weights(whose, counts, {}).differ
    some = Weights(np.append(whose, 0), np.append(counts, 150), slots)
    assert (some.untold, unknown.untold, unweighted().untold) == (0.2, 0, 0)
    assert not unweighted().differ
