import numpy as np
import pytest

from aggregator.errors import ArgumentError, NoReportsError
from aggregator.estimate import em, resample
from aggregator.estimate.density import density, edges_of
from aggregator.estimate.operator import operator_of
from edge_ldp import SquareWave

WAVE = SquareWave(epsilon=2, low=0, high=63, size=32)
TRUE = density(np.exp(-np.arange(32) / 8) / np.exp(-np.arange(32) / 8).sum(), edges_of(WAVE))
N = 20_000


def counts_of(seed: int) -> np.ndarray:
    law = operator_of(WAVE).apply(TRUE.probabilities)
    return np.random.default_rng(seed).multinomial(N, law)


def test_same_generator_state_same_densities() -> None:
    estimate = em(WAVE, counts_of(0))
    one, two = (resample(WAVE, estimate, rng=np.random.default_rng(5)) for _ in range(2))
    assert len(one) == 32
    for x, y in zip(one, two, strict=True):
        np.testing.assert_array_equal(x.probabilities, y.probabilities)
        assert x.n == N


def test_its_spread_is_the_spread_of_fresh_fleets() -> None:
    """Seeded; 100 means on either side give the ratio to 10 % (one sigma): false alarm 1e-4."""
    fresh = np.std([em(WAVE, counts_of(seed)).mean() for seed in range(100)])
    estimate = em(WAVE, counts_of(1000))
    drawn = resample(WAVE, estimate, rng=np.random.default_rng(1), resamples=100, estimator=em)
    assert np.std([x.mean() for x in drawn]) == pytest.approx(fresh, rel=0.4)


def test_what_cannot_be_resampled_is_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(NoReportsError):
        resample(WAVE, TRUE, rng=rng)  # n is 0
    estimate = em(WAVE, counts_of(0))
    with pytest.raises(ArgumentError, match="resamples"):
        resample(WAVE, estimate, rng=rng, resamples=1)
    with pytest.raises(ArgumentError, match="estimate"):
        resample(SquareWave(epsilon=2, low=0, high=63, size=16), estimate, rng=rng)
