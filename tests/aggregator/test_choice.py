"""θ and the share of surveys: aggregator.choice."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from aggregator.choice import (
    LOWEST,
    PER_OCTAVE,
    SLACK,
    Aim,
    Outlook,
    _density,
    _halves,
    candidates,
    outlook,
)
from aggregator.errors import ArgumentError, CountsError, NoReportsError
from aggregator.estimate.joint import Evidence, cells, view_of
from aggregator.threshold import bias
from edge_ldp import Mechanism, SquareWave, Tuned
from edge_ldp.sums import Question

Floats = NDArray[np.float64]
Counts = dict[Mechanism, Floats]

CEILING = 1023
SURVEY = SquareWave(epsilon=1, low=0, high=CEILING, size=64)
AIM = Aim(0, CEILING, 4.0, SURVEY, Question(1e6, 24), shares=(0.25, 0.5, 0.75))
EDGES = cells(0, CEILING)


def expected(
    masses: Floats,
    reports: int,
    mechanism: Mechanism = SURVEY,
    edges: NDArray[np.int64] = EDGES,
) -> Floats:
    """Return the counts of so many reports, to the nearest report."""
    law = view_of(mechanism, edges).apply(masses)
    counts: Floats = (reports * law / law.sum()).round()
    return counts


def falling(mean: float, edges: NDArray[np.int64] = EDGES) -> Floats:
    masses = -np.diff(np.exp(-edges / mean))
    return np.asarray(masses / masses.sum(), np.float64)


class Coins(np.random.Generator):
    """Coins that put what they are told into the first half, whatever there is."""

    def __init__(self, *first: Floats) -> None:
        super().__init__(np.random.PCG64(0))
        self.first = list(first)

    def binomial(self, *_: object, **__: object) -> NDArray[np.int64]:  # type: ignore[override]
        return self.first.pop(0).astype(np.int64)


def made(halves: list[list[float]], missed: list[list[float]]) -> Outlook:
    none = np.zeros(2)
    return Outlook(np.array([10, 20]), (0.25, 0.5), np.array(halves), np.array(missed), none, none)


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**12))
def test_candidates_rise_evenly_from_a_thousandth_of_the_range_to_the_ceiling(
    low: int, span: int
) -> None:
    thetas = candidates(low, low + span)
    away = (thetas - low).astype(float)
    assert thetas[-1] == low + span
    assert away[0] == max(1, round(span / LOWEST))
    assert (np.diff(thetas) > 0).all()
    assert len(thetas) <= np.log2(LOWEST) * PER_OCTAVE + 2
    coarse = away[1:] / away[:-1] > 2 ** (1 / PER_OCTAVE) * 1.001
    assert (np.diff(away)[coarse] <= 0.13 * away[:-1][coarse] + 1).all()  # rounded to integers


def test_of_choices_about_as_narrow_the_one_whose_truncated_sums_err_least_is_taken() -> None:
    near, far = 1 + 0.9 * SLACK, 1 + 1.1 * SLACK
    found = made([[1.0, near], [far, 5.0]], [[3.0, 2.0], [1.0, 0.0]]).best()
    assert found == (10, 0.5, near, 1.0)
    assert made([[far, near], [1.0, 5.0]], [[0.0, 2.0], [3.0, 0.0]]).best().theta == 10


def test_the_narrowest_is_taken_where_no_other_is_near_or_all_err_alike() -> None:
    assert made([[2.0, 2.0], [2.0, 1.0]], [[0.0, 0.0], [0.0, 9.0]]).best() == (20, 0.5, 1.0, 1.0)
    assert made([[1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]).best() == (10, 0.25, 1.0, 1.0)


def test_a_half_width_between_candidates_lies_between_theirs() -> None:
    found = made([[1.0, 2.0], [3.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]])
    assert found.half(10, 0.25) == 1.0
    assert found.half(20, 0.5) == 4.0
    assert found.half(15, 0.375) == 2.5


@given(st.lists(st.integers(0, 10**15), min_size=2, max_size=2), st.integers(0, 2**32))
def test_halves_are_disjoint_and_add_up_however_many_reports_there_are(
    many: list[int], seed: int
) -> None:
    tuned = Tuned(epsilon=1, low=0, high=200)
    counts: Counts = {SURVEY: np.full(SURVEY.code_count, 7.0), tuned: np.zeros(tuned.code_count)}
    counts[tuned][:2] = many
    first, second = _halves(counts, np.random.default_rng(seed))
    for a, b, (mechanism, whole) in zip(first, second, counts.items(), strict=True):
        assert a.mechanism == b.mechanism == mechanism
        assert np.min([a.counts, b.counts]) >= 0
        assert np.array_equal(np.add(a.counts, b.counts), whole)


def test_a_tail_counts_as_far_as_the_half_that_shows_less_of_it() -> None:
    counts: Counts = {SURVEY: expected(falling(60), 20_000)}
    found = outlook(AIM, counts, np.random.default_rng(5))
    densities = [_density(AIM, half) for half in _halves(counts, np.random.default_rng(5))]
    each = [bias(density, found.thetas) for density in densities]
    assert np.array_equal(found.tails, np.maximum(np.minimum(*each), 0))
    assert (np.diff(found.tails) <= 0).all()


@pytest.mark.parametrize("stream", [None, Tuned(epsilon=1, low=0, high=200)])
@pytest.mark.parametrize("times", [10, 100])
def test_AGG_29_a_phantom_in_one_half_moves_the_forecast_of_no_threshold(
    times: int, stream: Tuned | None
) -> None:
    ceiling = CEILING * times
    survey = SquareWave(epsilon=1, low=0, high=ceiling, size=256)
    aim = replace(AIM, ceiling=ceiling, survey=survey)
    edges = cells(0, ceiling)
    body = falling(60, edges)
    phantom = 0.99 * body + 0.01 * falling(ceiling / 3, edges)  # at ×100 six times the mean
    mechanisms: list[Mechanism] = [survey] if stream is None else [survey, stream]
    real = {m: expected(body, 100_000, m, edges) for m in mechanisms}
    seen = real | {survey: expected(phantom, 100_000, survey, edges)}

    without = outlook(aim, {m: 2 * n for m, n in real.items()}, Coins(*real.values()))
    planted = outlook(aim, {m: n + seen[m] for m, n in real.items()}, Coins(*seen.values()))

    alone = bias(_density(aim, [Evidence(m, n) for m, n in seen.items()]), without.thetas)
    assert alone[0] > 1.1 * without.tails[0]  # one half believes in it
    assert np.array_equal(planted.tails, without.tails)
    assert np.allclose(planted.halves, without.halves, rtol=1e-3)
    assert planted.best()[:2] == without.best()[:2]


def test_the_same_reports_and_coins_give_the_same_forecast() -> None:
    counts: Counts = {SURVEY: expected(falling(60), 20_000)}
    one, other = (outlook(AIM, counts, np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(one.halves, other.halves)
    assert one.best() == other.best()


def test_the_choice_is_about_as_narrow_as_can_be_and_never_wider_than_it_says() -> None:
    found = outlook(AIM, {SURVEY: expected(falling(60), 20_000)}, np.random.default_rng(1))
    best = found.best()
    assert best.theta in found.thetas
    assert best.share in AIM.shares
    assert best.least == found.halves.min() <= best.half <= (1 + SLACK) * best.least
    assert best.half == found.half(best.theta, best.share)


@pytest.mark.parametrize("counts", [{}, {SURVEY: np.zeros(SURVEY.code_count)}])
def test_without_reports_there_is_no_forecast(counts: Counts) -> None:
    with pytest.raises(NoReportsError):
        outlook(AIM, counts, np.random.default_rng(0))


def test_one_report_is_too_few_to_be_in_two_halves() -> None:
    one = np.zeros(SURVEY.code_count)
    one[5] = 1
    for seed in range(4):  # in the first half or in the second
        with pytest.raises(NoReportsError):
            outlook(AIM, {SURVEY: one}, np.random.default_rng(seed))


def test_reports_of_one_code_give_a_forecast() -> None:
    alike = np.zeros(SURVEY.code_count)
    alike[-1] = 1000
    found = outlook(AIM, {SURVEY: alike}, np.random.default_rng(0))
    assert np.isfinite(found.halves).all()
    assert AIM.low < found.best().theta <= AIM.ceiling


@pytest.mark.parametrize("ceiling", [0, -5])
def test_a_low_at_or_above_the_ceiling_is_refused(ceiling: int) -> None:
    with pytest.raises(ArgumentError, match="low"):
        outlook(replace(AIM, ceiling=ceiling), {}, np.random.default_rng(0))


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_what_are_no_counts_is_refused(bad: float) -> None:
    counts = expected(falling(60), 20_000)
    counts[3] = bad
    with pytest.raises(CountsError):
        outlook(AIM, {SURVEY: counts}, np.random.default_rng(0))
