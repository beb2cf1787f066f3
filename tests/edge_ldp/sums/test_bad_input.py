"""An honest wide interval or a typed error: never NaN, never narrow by luck."""

from collections.abc import Mapping
from dataclasses import astuple

import numpy as np
import pytest

from edge_ldp import Hybrid, Mechanism, SquareWave
from edge_ldp.device.errors import ParameterError
from edge_ldp.sums import CodeCounts, Epoch, MeanEstimate, estimate_mean, estimate_means
from tests.edge_ldp.sums.laws import expected, mean

CEILING = 43_499
SURVEY = SquareWave(epsilon=1, low=0, high=CEILING, size=128)
STREAM = Hybrid(epsilon=1, low=0, high=8_000)
HOME = {100: 0.4, 500: 0.4, 3000: 0.15, 10_000: 0.05}


def drawn(mechanism: Mechanism, values: Mapping[int, float], n: int, seed: int = 0) -> CodeCounts:
    law = np.asarray(expected(mechanism, values, 1).counts)
    return CodeCounts(mechanism, np.random.default_rng(seed).multinomial(n, law / law.sum()))


def none_of(mechanism: Mechanism) -> CodeCounts:
    return CodeCounts(mechanism, np.zeros(mechanism.code_count, np.int64))


def finite(found: MeanEstimate | None) -> MeanEstimate:
    """Return it, having checked: there is an answer, no NaN, and ends in their order."""
    assert found is not None
    told = [value for value in astuple(found) if isinstance(value, float)]
    assert not np.isnan(told).any()
    assert np.isfinite([found.mean, found.low, found.high]).all()
    assert found.high > found.low
    return found


def honest(found: MeanEstimate | None, truth: float) -> MeanEstimate:
    """Return it, having checked that it is finite and holds the truth (the draws are seeded)."""
    assert finite(found).low <= truth <= finite(found).high
    return finite(found)


def test_without_surveys_the_upper_end_allows_for_all_that_may_lie_above() -> None:
    found = honest(
        estimate_mean([Epoch(drawn(STREAM, HOME, 10**6), none_of(SURVEY))], ceiling=CEILING),
        mean(HOME),
    )
    assert not found.corrected
    far = {0: 0.95, CEILING: 0.05}  # the largest mean of this truncated mean
    honest(
        estimate_mean([Epoch(drawn(STREAM, far, 10**6), none_of(SURVEY))], ceiling=CEILING),
        mean(far),
    )


def test_one_survey_report_hardly_narrows_it() -> None:
    for code in range(0, SURVEY.code_count, 10):
        one = CodeCounts(SURVEY, np.eye(SURVEY.code_count, dtype=int)[code])
        found = honest(
            estimate_mean([Epoch(drawn(STREAM, HOME, 10**4), one)], ceiling=CEILING), mean(HOME)
        )
        assert found.high - found.low > 1000


def test_one_report_of_anything_is_as_wide_as_the_range() -> None:
    for code in range(0, STREAM.code_count, 20):
        one = CodeCounts(STREAM, np.eye(STREAM.code_count, dtype=int)[code])
        found = finite(estimate_mean([Epoch(one, none_of(SURVEY))], ceiling=CEILING))
        assert found.high - found.low > 4 * STREAM.high


def test_reports_of_one_code_are_no_certainty() -> None:
    """No law sends one code alone, and then nothing is known but that something is broken."""
    for code in (0, SURVEY.code_count // 2, SURVEY.code_count - 1):
        same = CodeCounts(SURVEY, 1000 * np.eye(SURVEY.code_count, dtype=int)[code])
        found = finite(estimate_mean([Epoch(drawn(STREAM, HOME, 10**4), same)], ceiling=CEILING))
        assert found.high - found.low > 3 * found.noise_se
    few = CodeCounts(STREAM, 3 * np.eye(STREAM.code_count, dtype=int)[50])
    found = finite(estimate_mean([Epoch(few, none_of(SURVEY))], ceiling=CEILING))
    assert found.high - found.low > STREAM.high


def test_surveys_that_never_reach_theta_correct_nothing() -> None:
    short = SquareWave(epsilon=1, low=0, high=STREAM.high, size=128)
    found = honest(
        estimate_mean(
            [Epoch(drawn(STREAM, HOME, 10**5), drawn(short, HOME, 10**5))], ceiling=CEILING
        ),
        mean(HOME),
    )
    assert not found.corrected


def test_a_theta_at_the_ceiling_needs_no_tail_and_says_so() -> None:
    widest = Hybrid(epsilon=1, low=0, high=CEILING)
    for surveys in (none_of(SURVEY), drawn(SURVEY, HOME, 1000)):
        found = honest(
            estimate_mean([Epoch(drawn(widest, HOME, 10**6), surveys)], ceiling=CEILING), mean(HOME)
        )
        assert found.corrected
        assert found.bias == found.bias_se == 0
    strata = [[Epoch(drawn(widest, HOME, 10**5, at), drawn(SURVEY, HOME, 100))] for at in range(6)]
    for part in estimate_means(strata, ceiling=CEILING).strata:
        honest(part, mean(HOME))


def test_a_ceiling_a_thousand_times_the_data() -> None:
    ceiling = 1_000_000
    values = {200: 0.5, 1000: 0.45, 1500: 0.05}
    survey = SquareWave(epsilon=1, low=0, high=ceiling)
    stream = Hybrid(epsilon=1, low=0, high=2000)
    parts = Epoch(drawn(stream, values, 10**5), drawn(survey, values, 10**4))
    found = honest(estimate_mean([parts], ceiling=ceiling), mean(values))
    assert found.bias_se > 1000  # the surveys are too few; what helps is Markov's inequality
    assert found.high - found.low > 1000


def test_two_meters_stuck_at_the_rating() -> None:
    values = {**{value: 0.998 * share for value, share in HOME.items()}, CEILING: 0.002}
    for seed in range(5):
        parts = Epoch(drawn(STREAM, values, 10**5, seed), drawn(SURVEY, values, 10**5, seed))
        honest(estimate_mean([parts], ceiling=CEILING), mean(values))


def test_a_plan_that_changed_its_range_five_times() -> None:
    ends = ((5_000, 10_000), (8_000, CEILING), (3_000, 20_000), (CEILING, CEILING), (900, 43_000))
    epochs = []
    for seed, (theta, high) in enumerate(ends):
        stream = Hybrid(epsilon=1, low=0, high=theta)
        survey = SquareWave(epsilon=1, low=0, high=high, size=128)
        epochs.append(Epoch(drawn(stream, HOME, 10**5, seed), drawn(survey, HOME, 10**5, seed)))
    honest(estimate_mean(epochs, ceiling=CEILING), mean(HOME))
    for part in estimate_means([[epoch] for epoch in epochs], ceiling=CEILING).strata:
        honest(part, mean(HOME))


def test_a_negative_low() -> None:
    values = {-20_000: 0.3, -100: 0.4, 500: 0.2, 30_000: 0.1}
    survey = SquareWave(epsilon=1, low=-40_000, high=40_000, size=128)
    for theta in (-30_000, -50, 0, 4_000):
        stream = Hybrid(epsilon=1, low=-40_000, high=theta)
        parts = [Epoch(drawn(stream, values, 10**6), drawn(survey, values, 10**6))]
        honest(estimate_mean(parts, ceiling=40_000), mean(values))
        without = [Epoch(parts[0].stream, none_of(survey))]
        honest(estimate_mean(without, ceiling=40_000), mean(values))


def test_nothing_at_all_is_none() -> None:
    assert estimate_mean([], ceiling=CEILING) is None
    assert estimate_mean([Epoch(none_of(STREAM), none_of(SURVEY))], ceiling=CEILING) is None
    found = estimate_means([[], []], ceiling=CEILING)
    assert (found.whole, found.strata) == (None, (None, None))


@pytest.mark.parametrize(
    "share", [2, -1, float("nan"), "a", (1,), (1, 2, 3), (3, 2), (1, 0), (-1, 2), (1.5, 2)]
)
def test_AGG_34_a_share_is_a_chance_or_a_fraction_of_one(share: object) -> None:
    both = none_of(STREAM), none_of(SURVEY)
    assert [Epoch(*both, share=one).share for one in ((1, 2), (1, 1), 0.5)] == [(1, 2), (1, 1), 0.5]
    with pytest.raises(ParameterError, match="share"):
        Epoch(*both, share=share)  # type: ignore[arg-type]


def test_strata_of_very_few_reports_are_wide_and_finite() -> None:
    strata = [
        [Epoch(drawn(STREAM, HOME, n, at), drawn(SURVEY, HOME, m, at))]
        for at, (n, m) in enumerate(
            [(1, 0), (0, 1), (2, 1), (5, 5), (1, 40), (3, 0), (10**5, 10**4)]
        )
    ]
    for part in estimate_means(strata, ceiling=CEILING).strata:
        honest(part, mean(HOME))
