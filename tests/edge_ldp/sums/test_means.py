"""Means from merged counts: exact on average, whatever changed on the way, and honest ends."""

from collections.abc import Mapping
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_ldp import Hybrid, SquareWave, StochasticRounding
from edge_ldp.device.errors import ParameterError
from edge_ldp.sums import CodeCounts, Epoch, MeanEstimate, estimate_mean, estimate_means
from edge_ldp.vectorized import perturb_many
from tests.edge_ldp.sums.laws import expected, mean

CEILING = 99
SURVEY = SquareWave(epsilon=1, low=0, high=CEILING, size=100)
AT_20 = Hybrid(epsilon=1, low=0, high=20, size=8)
AT_50 = Hybrid(epsilon=1, low=0, high=50, size=8)
QUIET = {2: 0.7, 15: 0.2, 40: 0.1}
TAME = {2: 0.9, 15: 0.1}  # without a tail above 20
LOUD = {10: 0.5, 45: 0.2, 90: 0.3}
Z = NormalDist().inv_cdf(0.975)


def epoch(
    values: Mapping[int, float], reports: float, share: float = 0.25, stream: Hybrid = AT_20
) -> Epoch:
    return Epoch(
        expected(stream, values, reports * (1 - share)),
        expected(SURVEY, values, reports * share),
        share,
    )


def estimated(*epochs: Epoch, ceiling: int = CEILING) -> MeanEstimate:
    found = estimate_mean(epochs, ceiling=ceiling)
    assert found is not None
    return found


@pytest.mark.parametrize("values", [QUIET, LOUD, {0: 1.0}, {99: 1.0}, {19: 0.5, 21: 0.5}])
def test_counts_as_expected_give_the_mean(values: dict[int, float]) -> None:
    found = estimated(epoch(values, 1e9))
    assert found.mean == pytest.approx(mean(values), abs=1e-3)
    assert found.low <= mean(values) <= found.high
    assert found.corrected


@pytest.mark.parametrize(("quiet", "loud"), [((0.05,), (0.6,)), ((0.25,), (0.25, AT_50))])
def test_a_share_or_theta_that_changed_with_the_load_does_not_move_the_mean(
    quiet: Any, loud: Any
) -> None:
    found = estimated(epoch(QUIET, 3e9, *quiet), epoch(LOUD, 1e9, *loud))
    assert found.mean == pytest.approx((3 * mean(QUIET) + mean(LOUD)) / 4, abs=1e-3)
    assert found.total(10) == (10 * found.mean, 10 * found.low, 10 * found.high)


def test_a_survey_mechanism_that_changed_with_the_load_does_not_move_the_mean() -> None:
    other = SquareWave(epsilon=2, low=0, high=CEILING, size=50)
    changed = Epoch(expected(AT_20, LOUD, 1e9), expected(other, LOUD, 1e8), 0.1)
    found = estimated(epoch(QUIET, 3e9), changed)
    wanted = (3 * mean(QUIET) + 1.1 * mean(LOUD)) / 4.1
    assert found.mean == pytest.approx(wanted, abs=0.5)  # cells of two values
    assert found.low <= wanted <= found.high


def test_an_epoch_of_surveys_alone_counts_with_the_others() -> None:
    alone = Epoch(CodeCounts(AT_20, [0] * AT_20.code_count), expected(SURVEY, LOUD, 1e9), 1)
    found = estimated(epoch(QUIET, 3e9), alone)
    assert found.mean == pytest.approx((3 * mean(QUIET) + mean(LOUD)) / 4, abs=1e-3)
    found = estimated(alone)
    assert (found.n, found.surveys, found.noise_se) == (0, 10**9, 0)
    assert found.mean == pytest.approx(mean(LOUD), abs=1e-3)


def test_epochs_of_one_plan_are_one_population_in_any_order() -> None:
    one = estimated(epoch(QUIET, 4e4))
    four = estimated(*[epoch(QUIET, 1e4)] * 4)
    assert (one.mean, one.low, one.high) == pytest.approx((four.mean, four.low, four.high))
    there = estimated(epoch(QUIET, 1e4), epoch(LOUD, 2e4, stream=AT_50))
    back = estimated(epoch(LOUD, 2e4, stream=AT_50), epoch(QUIET, 1e4))
    assert (there.mean, there.low, there.high) == pytest.approx((back.mean, back.low, back.high))


def test_noise_is_that_of_the_decoded_codes() -> None:
    counts = np.arange(AT_20.code_count)
    found = estimated(Epoch(CodeCounts(AT_20, counts), expected(SURVEY, QUIET, 1e4)))
    drawn = np.repeat([AT_20.decode(code) for code in range(AT_20.code_count)], counts)
    largest = AT_20.worst_variance + 20 * 20 / 4
    assert found.noise_se == pytest.approx(
        ((drawn.var() + largest / len(drawn)) / len(drawn)) ** 0.5
    )


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_the_lower_end_is_never_below_the_truncated_means_own(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = {int(v): 0.25 for v in rng.choice(100, 4, replace=False)}
    streams = rng.multinomial(500, np.asarray(expected(AT_20, values, 1).counts))
    surveys = rng.multinomial(100, np.asarray(expected(SURVEY, values, 1).counts))
    found = estimated(Epoch(CodeCounts(AT_20, streams), CodeCounts(SURVEY, surveys)))
    decoded = float(streams @ [AT_20.decode(code) for code in range(AT_20.code_count)]) / 500
    assert decoded - Z * found.noise_se <= found.low + 1e-9
    assert found.mean == pytest.approx(decoded + found.bias)  # it may lie outside


def test_strata_have_their_own_means_and_the_whole_theirs_together() -> None:
    loads = [QUIET, LOUD, QUIET, LOUD, QUIET]
    found = estimate_means([[epoch(values, 1e9)] for values in loads], ceiling=CEILING)
    assert found.whole is not None
    assert found.whole.mean == pytest.approx((3 * mean(QUIET) + 2 * mean(LOUD)) / 5, abs=1e-3)
    for values, part in zip(loads, found.strata, strict=True):
        assert part is not None
        assert part.mean == pytest.approx(mean(values), abs=0.01)
        assert part.low <= mean(values) <= part.high


def test_strata_under_different_thetas_with_equal_loads_differ_by_nothing() -> None:
    thetas = [AT_20, AT_50, AT_20, AT_50, AT_20, AT_50]
    strata = [[epoch(LOUD, 1e6, stream=theta)] for theta in thetas]
    found = estimate_means(strata, ceiling=CEILING)
    assert found.spread == pytest.approx(0, abs=1e-3)
    assert all(part is not None and abs(part.mean - mean(LOUD)) < 0.05 for part in found.strata)


def test_a_stratum_of_surveys_alone_stands_by_itself_and_one_without_reports_is_none() -> None:
    alone = Epoch(CodeCounts(AT_20, [0] * AT_20.code_count), expected(SURVEY, LOUD, 1e5), 1)
    empty = Epoch(
        CodeCounts(AT_20, [0] * AT_20.code_count), CodeCounts(SURVEY, np.zeros(SURVEY.code_count))
    )
    found = estimate_means(
        [[alone], [], [empty], *([epoch(QUIET, 1e5)] for _ in range(5))], ceiling=CEILING
    )
    assert found.strata[1] is found.strata[2] is None
    by_itself = estimated(alone)
    assert found.strata[0] == by_itself
    assert by_itself.own == 1


def test_values_at_the_ends_of_wide_cells_are_within_the_interval() -> None:
    coarse = SquareWave(epsilon=1, low=0, high=CEILING, size=4)
    for values in ({24: 0.5, 49: 0.3, 99: 0.2}, {0: 0.5, 25: 0.3, 75: 0.2}, {22: 1.0}):
        found = estimated(Epoch(expected(AT_20, values, 1e9), expected(coarse, values, 1e9)))
        assert found.low <= mean(values) <= found.high


def test_surveys_that_contradict_stream_reports_leave_what_these_allow() -> None:
    """All at 0 say the ones, all at the ceiling the others: no tail so large is possible."""
    found = estimated(Epoch(expected(AT_20, {0: 1.0}, 1e6), expected(SURVEY, {99: 1.0}, 1e6)))
    noise = Z * found.noise_se
    assert noise > 0
    assert found.low == pytest.approx(-noise)
    assert found.high == pytest.approx(noise + noise * (99 - 20) / 20)  # Markov's inequality


def test_a_cell_that_begins_above_theta_hides_what_so_many_values_can_reach_and_no_more() -> None:
    """Half a cell of 25 for each value at 24 or more, by Markov's inequality: 5 / 24 of them."""
    coarse, at_24 = (
        SquareWave(epsilon=1, low=0, high=CEILING, size=4),
        Hybrid(epsilon=1, low=0, high=24),
    )
    found = estimated(Epoch(expected(at_24, {5: 1.0}, 1e12), expected(coarse, {5: 1.0}, 1e12)))
    assert found.high == pytest.approx(5 + 12 * 5 / 24, abs=1e-3)
    assert found.low == pytest.approx(5, abs=1e-3)


def test_what_surveys_could_not_reach_is_allowed_for() -> None:
    short = SquareWave(epsilon=1, low=0, high=60, size=61)
    for far in (61, 99, 999):
        values = {5: 0.9, far: 0.1}
        found = estimated(
            Epoch(expected(AT_20, values, 1e9), expected(short, values, 1e9)), ceiling=999
        )
        assert found.low <= mean(values) <= found.high


def test_a_narrow_survey_tells_nothing_of_a_theta_outside_it() -> None:
    for low, high in ((0, 20), (30, 99)):
        narrow = SquareWave(epsilon=1, low=low, high=high, size=10)
        found = estimated(Epoch(expected(AT_20, LOUD, 1e9), expected(narrow, LOUD, 1e9)))
        assert not found.corrected
        assert found.low <= mean(LOUD) <= found.high


@pytest.mark.parametrize("level", [0, 1, -1, 2])
def test_a_level_is_between_0_and_1(level: float) -> None:
    with pytest.raises(ParameterError, match="level"):
        estimate_mean([epoch(QUIET, 100)], ceiling=CEILING, level=level)


@pytest.mark.parametrize(
    "counts",
    [[1, 2], [[1] * 10], [-1.0] + [1] * (AT_20.code_count - 1), [np.nan] * AT_20.code_count],
)
def test_what_are_no_counts_is_refused(counts: list[float]) -> None:
    bad = Epoch(CodeCounts(AT_20, counts), expected(SURVEY, QUIET, 10))
    with pytest.raises(ParameterError, match="counts"):
        estimate_mean([bad], ceiling=CEILING)


def test_another_mechanism_of_sums_will_do() -> None:
    rounding = StochasticRounding(epsilon=1, low=0, high=20)
    found = estimated(Epoch(expected(rounding, LOUD, 1e9), expected(SURVEY, LOUD, 1e9)))
    assert found.mean == pytest.approx(mean(LOUD), abs=1e-3)


def parted(groups: int, seed: int) -> tuple[list[Epoch], Epoch]:
    """Return the epochs of groups that partition a fleet of tame homes, and that of all of them."""
    rng = np.random.default_rng(seed)
    laws = [np.asarray(expected(of, TAME, 1).counts) for of in (AT_20, SURVEY)]
    drawn = [rng.multinomial(250, law / law.sum(), groups) for law in laws]

    def epoch_of(*counts: Any) -> Epoch:
        return Epoch(CodeCounts(AT_20, counts[0]), CodeCounts(SURVEY, counts[1]), 0.5)

    parts = [epoch_of(*pair) for pair in zip(*drawn, strict=True)]
    return parts, epoch_of(*(counts.sum(axis=0) for counts in drawn))


@given(st.integers(0, 2**32), st.integers(2, 13))
@settings(max_examples=25)
def test_AGG_33_groups_that_partition_add_up_to_the_whole(seed: int, groups: int) -> None:
    """To rounding, where the coin gave each the same share of surveys."""
    parts, whole = parted(groups, seed)
    total = sum(estimated(part).total(500).estimate for part in parts)
    assert total == pytest.approx(estimated(whole).total(500 * groups).estimate)


def test_AGG_33_a_sum_of_small_groups_is_unbiased() -> None:
    """Over 2,000 groups the sum is off by noise alone; with tails clipped at 0 it is far above."""
    found = [estimated(part) for seed in range(200) for part in parted(10, seed)[0]]
    means = np.array([one.mean for one in found])
    error = means.std() / len(means) ** 0.5
    clipped = np.mean([one.mean - min(0.0, one.bias) for one in found])
    assert abs(means.mean() - mean(TAME)) < 4 * error
    assert clipped > 1.5 * mean(TAME)


@pytest.mark.parametrize("epsilon", [1, 8])
@pytest.mark.parametrize("values", [[2, 15], [2, 15, 40], [90]])
def test_AGG_33_hours_of_as_many_surveys_add_up_to_the_whole(
    epsilon: int, values: list[int]
) -> None:
    """A tail must not weigh by an error that is low where it is: the mean came out low so."""
    rng = np.random.default_rng(9)
    stream = Hybrid(epsilon=epsilon, low=0, high=20, size=8)
    survey = SquareWave(epsilon=epsilon, low=0, high=CEILING, size=100)

    def drawn(of: Hybrid | SquareWave, reports: int) -> CodeCounts:
        codes = perturb_many(of, rng.choice(values, reports), entropy=rng.bytes)
        return CodeCounts(of, np.bincount(codes, minlength=of.code_count))

    hours = [[Epoch(drawn(stream, 90), drawn(survey, 30), 0.25)] for _ in range(24)]
    found = estimate_means(hours, ceiling=CEILING)
    biases = [one.bias for one in found.strata if one]
    assert len(set(biases)) > 1
    assert found.whole is not None
    assert np.mean(biases) == pytest.approx(found.whole.bias, abs=1e-9)
