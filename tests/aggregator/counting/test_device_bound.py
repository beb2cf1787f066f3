"""Marking a device: exact tails, bounded memory, and a rate that no honest device breaks."""

from collections import Counter
from fractions import Fraction
from itertools import count, pairwise
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.counting.code_sets import Watch, watch_mechanism, watch_of
from aggregator.counting.records import Marked
from aggregator.counting.watching import (
    FIRST_LOOK,
    KEPT,
    WatchState,
    from_bytes,
    look,
    upper_tail,
)
from edge_ldp import Hybrid, SquareWave
from edge_ldp.errors import CountsError
from edge_ldp.mechanisms import Tuned
from edge_ldp.vectorized import perturb_many
from tests.aggregator.counting.reference_watch import begin_again, observe
from tests.aggregator.counting.test_code_sets import PLAN, members
from tests.edge_ldp.poisoning.test_crowds import input_law

HYBRID = Hybrid(epsilon=1, low=0, high=1000, size=256)
WATCH = watch_mechanism(HYBRID)
SR_CODE, PM_CODE = 413, 411
CODES = st.lists(st.integers(0, HYBRID.code_count - 1), min_size=1, max_size=60)


def fed(watch: Watch, codes: list[int], kept: WatchState | None = None) -> WatchState:
    return observe(watch, kept or WatchState(), np.array(codes, dtype=np.int64))


def reports_needed(bound: float, level: float) -> int:
    return next(n for n in count(1) if upper_tail(n, n, bound) <= level)


@pytest.mark.parametrize(
    ("code", "alone", "among_many"), [(SR_CODE, 17, 42), (SR_CODE - 1, 17, 42), (PM_CODE, 3, 6)]
)
def test_a_device_that_sends_one_code_only_is_beyond_the_tail_after_so_many(
    code: int, alone: int, among_many: int
) -> None:
    """At 10⁻⁶; and shared out over 10⁶ devices and 414 codes. HM at ε = 1, d = 256."""
    assert reports_needed(WATCH.codes[code], 1e-6) == alone
    assert reports_needed(WATCH.codes[code], 1e-6 / (10**6 * 414)) == among_many


@pytest.mark.parametrize("bound", [Fraction(1, 600), Fraction(4, 9), Fraction(9, 10)])
def test_upper_tails_are_exact_far_out_too(bound: Fraction) -> None:
    for seen, n in ((0, 5), (1, 1), (17, 17), (30, 40), (64, 64), (40, 400), (399, 400)):
        exact = sum(comb(n, k) * bound**k * (1 - bound) ** (n - k) for k in range(seen, n + 1))
        assert upper_tail(seen, n, float(bound)) == pytest.approx(float(exact), rel=1e-9)


def test_nothing_is_certain_at_bound_1_and_everything_beyond_bound_0() -> None:
    assert upper_tail([5, 0, 1], 5, [1.0, 0.0, 0.0]).tolist() == [1, 1, 0]


@given(st.lists(CODES, min_size=1, max_size=12))
def test_tails_are_counted_exactly_however_reports_are_cut_into_frames(
    frames: list[list[int]],
) -> None:
    kept = WatchState()
    for frame in frames:
        kept = fed(WATCH, frame, kept)
    whole = [code for frame in frames for code in frame]
    assert kept.reports == len(whole)
    assert kept.tails == fed(WATCH, whole).tails
    for tail, seen in enumerate(kept.tails):
        inside = set(members(WATCH, tail))
        assert seen == sum(code in inside for code in whole)


@given(st.lists(st.lists(st.integers(0, 40) | st.just(7), max_size=60), max_size=20))
def test_codes_are_never_counted_too_high_nor_too_low_by_more_than_stated(
    frames: list[list[int]],
) -> None:
    kept = WatchState()
    for frame in frames:
        kept = fed(WATCH, frame, kept)
        assert len(kept.codes) <= KEPT
    exact = Counter(code for frame in frames for code in frame)
    known = dict(kept.codes)
    missing = (kept.reports - sum(known.values())) / (KEPT + 1)
    for code, times in exact.items():
        assert times - missing <= known.get(code, 0) <= times
        assert known.get(code, 0) >= (17 * times - kept.reports) / 16


def test_of_sixteen_codes_all_are_counted_exactly() -> None:
    tuned = Tuned(epsilon=1, low=0, high=1000)
    codes = perturb_many(tuned, np.full(5000, 700))
    kept = observe(watch_mechanism(tuned), WatchState(), codes)
    assert dict(kept.codes) == Counter(codes.tolist())


def test_looks_come_when_reports_have_doubled() -> None:
    kept, looked = WatchState(), []
    for code in [0, 100, 200, 411, 412, 413] * 200:
        before, (kept, _) = kept.looks, look(WATCH, fed(WATCH, [code], kept), rate=0.01, devices=9)
        looked += [kept.reports] * (kept.looks - before)
    assert looked[0] == FIRST_LOOK
    assert all(b == 2 * a for a, b in pairwise(looked))


@pytest.mark.parametrize("code", [SR_CODE, PM_CODE, 0, 100])
def test_REP_10_a_device_that_floods_one_code_is_marked_within_a_day(code: int) -> None:
    """96 reports in frames of 8, among 10⁶ devices, at 10⁻⁶ for all of them and ever."""
    kept, marks = WatchState(), list[Marked]()
    for _ in range(12):
        kept, found = look(WATCH, fed(WATCH, [code] * 8, kept), rate=1e-6, devices=10**6)
        marks += found
    assert f"code {code}" in {mark.name for mark in marks}
    assert all(mark.chance <= 1e-6 and mark.seen <= mark.reports for mark in marks)


def test_a_liar_who_keeps_to_the_highest_codes_is_marked_by_a_tail() -> None:
    """No code comes often: only their sum gives him away."""
    rng = np.random.default_rng(0)
    kept = WatchState()
    marks: tuple[Marked, ...] = ()
    while not marks:
        frame = rng.integers(PM_CODE - 63, PM_CODE + 1, 50)
        kept, marks = look(WATCH, observe(WATCH, kept, frame), rate=1e-6, devices=10**6)
        assert kept.reports <= 100
    assert {mark.name for mark in marks} <= {f"{2**k} highest stream codes" for k in range(8)}


@pytest.mark.parametrize("frames", [100, pytest.param(700, marks=pytest.mark.slow)])
def test_a_liar_who_follows_the_protocol_with_the_highest_value_is_not_marked(frames: int) -> None:
    """What no statistic sees: his reports are those of an honest device with that value.

    700 frames of 50 are a year of quarter hours.
    """
    rng = np.random.default_rng(4)
    kept = WatchState()
    for frame in rng.choice(HYBRID.code_count, (frames, 50), p=input_law(HYBRID)):
        kept, marks = look(WATCH, observe(WATCH, kept, frame), rate=1e-6, devices=1)
        assert not marks
    assert kept.reports == 50 * frames


def test_a_new_start_keeps_the_number_of_looks_so_the_rate_holds() -> None:
    """Look 1 has half of the rate, look 2 a sixth: 16 reports of one SR code lie between them."""
    flood = [SR_CODE] * FIRST_LOOK
    kept, marks = look(WATCH, fed(WATCH, flood), rate=0.003, devices=1)
    assert marks
    again = begin_again(kept)
    assert again == WatchState(looks=1)
    again, marks = look(WATCH, fed(WATCH, flood, again), rate=0.003, devices=1)
    assert (again.looks, marks) == (2, ())


@given(CODES)
def test_what_is_kept_survives_its_bytes(codes: list[int]) -> None:
    kept = fed(WATCH, codes)
    assert from_bytes(kept.to_bytes()) == kept
    assert from_bytes(WatchState().to_bytes()) == WatchState()


@given(st.binary(max_size=400))
def test_other_bytes_are_read_or_refused(given: bytes) -> None:
    try:
        kept = from_bytes(given)
    except CountsError:
        return
    assert kept.to_bytes() == given


def test_the_largest_plan_keeps_little_of_a_device() -> None:
    wide = SquareWave(epsilon=2, low=0, high=2**20 - 1, size=32_768)
    kept = observe(watch_mechanism(wide), WatchState(), np.arange(50) * 700)
    assert len(kept.tails) == 34
    assert len(kept.to_bytes()) <= 4 * (4 + 2 * 17 + 2 * KEPT)
    assert len(fed(watch_of(PLAN), [0, 1, 2]).to_bytes()) < 412
