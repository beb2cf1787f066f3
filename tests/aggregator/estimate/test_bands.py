import numpy as np
import pytest

from aggregator.errors import ArgumentError, NoReportsError
from aggregator.estimate import ems
from aggregator.estimate.bands import LIGHT, Bands, bands
from aggregator.estimate.density import density, edges_of
from aggregator.estimate.operator import operator_of
from edge_ldp import SquareWave

WAVE = SquareWave(epsilon=1, low=0, high=255, size=64)
TRUE = density(np.exp(-np.arange(64) / 8) / np.exp(-np.arange(64) / 8).sum(), edges_of(WAVE))
N = 20_000


def counts_of(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).multinomial(N, operator_of(WAVE).apply(TRUE.probabilities))


def hand_made() -> Bands:
    """Three resamples whose mean share of the first cell is 0.3, variance 0.01; estimate 0.25."""
    edges = [0, 10, 20]
    shares = (0.2, 0.3, 0.4)
    return Bands(density([0.25, 0.75], edges), tuple(density([s, 1 - s], edges) for s in shares))


def test_the_half_width_is_of_variance_and_bias_together() -> None:
    half = 1.959963985 * np.sqrt(0.01 + 0.05**2)
    band = hand_made().range(0, 10)
    np.testing.assert_allclose([band.centre[0], band.high[0]], [0.25, 0.25 + half])
    assert band.low[0] == pytest.approx(0.25 - half)
    cells = hand_made().density(level=0.5)
    half = 0.6744897502 * np.sqrt(0.01 + 0.05**2)
    np.testing.assert_allclose(cells.low, [0.25 - half, 0.75 - half])
    np.testing.assert_allclose(cells.high, [0.25 + half, 0.75 + half])


def test_shares_stay_between_0_and_1() -> None:
    for band in (
        hand_made().cdf([0, 10, 20], level=0.9999),
        hand_made().range(10, 20, level=0.9999),
    ):
        assert 0 <= band.low.min() <= band.high.max() <= 1
    ends = hand_made().cdf([0, 20])
    assert ends.low.tolist() == ends.high.tolist() == [0, 1]


def test_quantiles_stay_in_the_range() -> None:
    shares, sure = [0.15, 0.5], 1 - 1e-12
    band = hand_made().quantiles(shares, level=sure)
    free = hand_made().of(lambda x: [x.quantile(p) for p in shares], level=sure)
    assert free.low[0] < 0
    assert free.high[1] > 20
    assert (band.low[0], band.high[1]) == (0, 20)
    np.testing.assert_array_equal(band.low, np.maximum(free.low, 0))
    np.testing.assert_array_equal(band.high, np.minimum(free.high, 20))


def test_the_mean_and_quantiles_are_in_the_unit() -> None:
    made = bands(WAVE, counts_of(0), rng=np.random.default_rng(0), resamples=30)
    assert made.mean().centre.shape == (1,)
    quantiles = made.quantiles([0.1, 0.5, 0.9])
    assert (quantiles.low < quantiles.centre).all()
    assert (np.diff(quantiles.centre) > 0).all()
    assert made.mean().low[0] < TRUE.mean() < made.mean().high[0]
    assert made.cdf([5, 10]).low.shape == (2,)


def test_its_centre_is_the_light_estimate() -> None:
    counts = counts_of(1)
    made = bands(WAVE, counts, rng=np.random.default_rng(0), resamples=5)
    light = ems(WAVE, counts, strength=LIGHT * 64**2, accelerate=True, early=True)
    np.testing.assert_array_equal(made.light.probabilities, light.probabilities)
    np.testing.assert_array_equal(made.density().centre, light.probabilities)
    assert len(made.resampled) == 5
    rough = bands(WAVE, counts, rng=np.random.default_rng(0), resamples=2, strength=0.5)
    early = ems(WAVE, counts, accelerate=True, early=True)
    np.testing.assert_array_equal(rough.light.probabilities, early.probabilities)


def test_same_generator_state_same_bands() -> None:
    one, two = (
        bands(WAVE, counts_of(0), rng=np.random.default_rng(3), resamples=4).density()
        for _ in range(2)
    )
    np.testing.assert_array_equal(one.high, two.high)


def test_bad_arguments_are_refused() -> None:
    rng = np.random.default_rng(0)
    for level in (0, 1, float("nan")):
        with pytest.raises(ArgumentError, match="level"):
            hand_made().mean(level=level)
    with pytest.raises(ArgumentError, match="resamples"):
        bands(WAVE, counts_of(0), rng=rng, resamples=1)
    with pytest.raises(NoReportsError):
        bands(WAVE, np.zeros(WAVE.code_count), rng=rng)


def test_one_report_has_bands_without_nan() -> None:
    counts = np.zeros(WAVE.code_count)
    counts[3] = 1
    made = bands(WAVE, counts, rng=np.random.default_rng(0), resamples=5)
    for band in (made.mean(), made.density(), made.quantiles([0, 0.5, 1]), made.range(0, 9)):
        assert np.isfinite([band.low, band.high]).all()
