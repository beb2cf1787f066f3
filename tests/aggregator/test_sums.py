from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.errors import ArgumentError, CountsError, NoReportsError
from aggregator.sums import CodeCounts, average, estimate_mean, estimate_tail
from edge_ldp import Hybrid, Mechanism, SquareWave, StochasticRounding
from tests.aggregator.homes import Setting, estimates, power_w, truths

LOWER = Hybrid(epsilon=1, low=-5, high=20, size=4)
UPPER = Hybrid(epsilon=1, low=-5, high=50, size=8)
SURVEY = SquareWave(epsilon=1, low=-5, high=94, size=20)


def reports(mechanism: Mechanism, seed: int, n: int = 1000) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.multinomial(n, rng.dirichlet(np.ones(mechanism.code_count)))


def survey_of(n: int) -> CodeCounts:
    """Surveys of values that are mostly at the low end."""
    law = np.array([float(p) for p in SURVEY.probabilities(0)])
    tail = np.array([float(p) for p in SURVEY.probabilities(70)])
    return CodeCounts(SURVEY, np.rint(n * (0.8 * law + 0.2 * tail)).astype(np.int64))


@given(st.integers(0, 2**32))
def test_the_average_is_that_of_the_decoded_codes_exactly(seed: int) -> None:
    parts = [(LOWER, reports(LOWER, seed, 700)), (UPPER, reports(UPPER, seed + 1, 300))]
    exact = sum(
        (m.decode_exact(code) * int(count) for m, c in parts for code, count in enumerate(c)),
        Fraction(0),
    )
    part = average([CodeCounts(m, c) for m, c in parts])
    assert part.mean == pytest.approx(float(exact / 1000), rel=1e-12, abs=1e-9)
    assert part.n == 1000
    assert part.truncation.thetas == (20, 50)
    assert part.truncation.shares == (0.7, 0.3)


def test_noise_is_the_empirical_variance_within_each_mechanism() -> None:
    parts = [(LOWER, reports(LOWER, 1, 700)), (UPPER, reports(UPPER, 2, 300))]
    variance = 0.0
    for m, counts in parts:
        decoded = np.repeat([m.decode(code) for code in range(m.code_count)], counts)
        largest = m.worst_variance + (m.high - m.low) ** 2 / 4
        variance += (decoded.var() * len(decoded) + largest) / 1000**2
    assert average([CodeCounts(m, c) for m, c in parts]).se == pytest.approx(variance**0.5)


def test_order_and_epochs_without_reports_do_not_matter() -> None:
    parts = [CodeCounts(LOWER, reports(LOWER, 1)), CodeCounts(UPPER, reports(UPPER, 2))]
    empty = CodeCounts(Hybrid(epsilon=1, low=-5, high=9, size=4), np.zeros(LOWER.code_count, int))
    one, two = average(parts), average([empty, *reversed(parts)])
    assert one.mean == pytest.approx(two.mean, rel=1e-14)
    assert one.se == pytest.approx(two.se, rel=1e-14)
    halves = [CodeCounts(p.mechanism, np.asarray(p.counts) * k) for p in parts for k in (1, 2)]
    assert average(halves).mean == pytest.approx(one.mean, rel=1e-13)


def test_a_few_equal_reports_are_not_certain() -> None:
    mechanism = StochasticRounding(epsilon=1, low=0, high=10)
    part = estimate_mean([CodeCounts(mechanism, [0, 3])])
    assert part.high - part.low > 10
    assert estimate_mean([CodeCounts(mechanism, [1, 0])]).n == 1


def test_without_a_tail_the_mean_is_labelled_and_is_of_truncated_values() -> None:
    part = CodeCounts(UPPER, reports(UPPER, 3))
    plain = average([part])
    told = estimate_mean([part])
    assert not told.corrected
    assert (told.mean, told.bias, told.bias_se) == (plain.mean, 0, 0)
    assert told.high - told.mean == pytest.approx(1.959964 * plain.se)
    assert told.mean - told.low == pytest.approx(1.959964 * plain.se)


def test_with_a_tail_the_interval_is_wider_and_reaches_up() -> None:
    streams = [CodeCounts(LOWER, reports(LOWER, 4, 50_000))]
    tail = estimate_tail([survey_of(50_000)], streams, rng=np.random.default_rng(0))
    plain, told = estimate_mean(streams), estimate_mean(streams, tail)
    assert told.corrected
    assert told.bias > 0
    assert told.mean == plain.mean + told.bias
    assert told.low >= plain.low
    assert told.high - told.mean > plain.high - plain.mean
    narrow = estimate_mean(streams, tail, level=0.5)
    assert told.low < narrow.low < narrow.mean == told.mean < narrow.high < told.high


def test_a_total_is_mean_times_values() -> None:
    told = estimate_mean([CodeCounts(UPPER, reports(UPPER, 3))])
    total = told.total(400)
    assert total == (told.mean * 400, told.low * 400, told.high * 400)
    assert (total.estimate, total.low, total.high) == total


def test_the_tail_adds_equal_surveys_and_depends_on_counts_and_seed_only() -> None:
    half = survey_of(10_000)
    whole = CodeCounts(SURVEY, 2 * np.asarray(half.counts))
    one = estimate_tail([half, half], rng=np.random.default_rng(1))
    two = estimate_tail([whole], rng=np.random.default_rng(1))
    np.testing.assert_array_equal(one.probabilities, two.probabilities)
    np.testing.assert_array_equal(one.resampled, two.resampled)
    assert one.n == 0
    assert one.resampled.shape[1] == len(one.values)


def test_surveys_of_a_part_of_the_range_tell_of_the_tail_too() -> None:
    """A narrowed survey puts what lies above into its top bucket: adaptive θ asks for such."""
    narrow = SquareWave(epsilon=1, low=-5, high=10, size=16)
    law = 0.8 * np.array([float(p) for p in narrow.probabilities(0)])
    law += 0.2 * np.array([float(p) for p in narrow.probabilities(70)])
    more = CodeCounts(narrow, np.rint(200_000 * law).astype(np.int64))
    few = survey_of(5_000)
    cuts = []
    for surveys in ([few], [few, more], [more, few]):
        tail = estimate_tail(surveys, rng=np.random.default_rng(1))
        above = tail.values > 12
        cuts.append((tail.probabilities[above].sum(), tail.resampled[:, above].sum(axis=1).std()))
    assert abs(cuts[1][0] - 0.2) < 0.04
    assert abs(cuts[2][0] - 0.2) < 0.04
    assert cuts[1][1] < 0.5 * cuts[0][1]


def test_AGG_11_no_reports_are_no_result() -> None:
    nothing = CodeCounts(UPPER, np.zeros(UPPER.code_count, np.int64))
    for streams in ([], [nothing]):
        with pytest.raises(NoReportsError):
            estimate_mean(streams)
    with pytest.raises(NoReportsError):
        estimate_tail([CodeCounts(SURVEY, [0] * SURVEY.code_count)], rng=np.random.default_rng(0))


def test_AGG_11_one_report_and_one_survey_give_finite_figures() -> None:
    one = CodeCounts(UPPER, np.bincount([3], minlength=UPPER.code_count))
    survey = CodeCounts(SURVEY, np.bincount([9], minlength=SURVEY.code_count))
    told = estimate_mean([one], estimate_tail([survey], [one], rng=np.random.default_rng(0)))
    assert np.isfinite([told.mean, told.low, told.high, told.bias, told.bias_se]).all()
    assert told.low < told.mean < told.high


def test_AGG_12_damaged_counts_are_refused() -> None:
    for damaged in (-1, np.nan):
        bad = np.full(UPPER.code_count, 1.0)
        bad[2] = damaged
        with pytest.raises(CountsError):
            estimate_mean([CodeCounts(UPPER, bad)])
    with pytest.raises(CountsError):
        estimate_mean([CodeCounts(UPPER, [1, 2])])
    with pytest.raises(CountsError):
        estimate_tail([CodeCounts(SURVEY, [1, 2])], rng=np.random.default_rng(0))


def test_levels_that_are_no_probability_are_refused() -> None:
    for level in (0.0, 1.0, float("nan")):
        with pytest.raises(ArgumentError):
            estimate_mean([CodeCounts(UPPER, reports(UPPER, 3))], level=level)


def missed(setting: Setting, seed: int) -> tuple[list[bool], float, float]:
    """Return which of 24 hours and the whole run are missed; mean half-widths over the mean."""
    values = power_w()
    true, told = truths(values), estimates(values, setting, seed)
    misses = [not m.low <= truth <= m.high for m, truth in zip(told, true, strict=True)]
    widths = [(m.high - m.low) / 2 / true[-1] for m in told]
    return misses, float(np.mean(widths[:24])), widths[24]


def test_hourly_intervals_hold_on_real_homes() -> None:
    """One seeded run. Of 40 seeds none missed more than 3 of 24 hours: false alarm below 1e-3."""
    misses, hour_width, run_width = missed(Setting(1 / 4, 78_800, 1e-5), seed=1)
    assert sum(misses[:24]) <= 6
    assert hour_width < 0.12
    assert run_width < 0.07


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting",
    [
        Setting(1 / 4, 78_800, 1e-5),
        Setting(1 / 16, 78_800, 1e-5),
        Setting(1 / 16, 78_800, 1e-4),  # θ about 9 kW: a bias of 10 %, seen by surveys only
        Setting(1 / 16, 78_800, 0),  # θ about 20 kW: noise, hardly a bias
    ],
    ids=str,
)
def test_intervals_cover_on_real_homes(setting: Setting) -> None:
    """24 seeded runs × 24 hours. 14 of them measured 92.9 (third setting) to 96.7 %.

    Hours of one run share the tail's error; the standard error of such a coverage is about 1.3 %:
    false alarm about 1e-3.
    """
    runs = [missed(setting, seed)[0] for seed in range(24)]
    assert np.mean([hours[:24] for hours in runs]) <= 0.09
    assert sum(hours[24] for hours in runs) <= 6
