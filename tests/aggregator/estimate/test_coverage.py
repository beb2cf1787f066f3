"""What bands hold, over seeded fleets; figures of the run in each docstring."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import ArrayLike

from aggregator.estimate.bands import Band, Bands, bands
from aggregator.estimate.density import Density, density, edges_of
from aggregator.estimate.model import model_of
from edge_ldp import SquareWave
from firmware_stubs.data import load_swiss

SIZE, N, RUNS, RESAMPLES = 256, 65_536, 100, 50
WAVE = SquareWave(epsilon=1, low=0, high=2**14 - 1, size=SIZE)
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


def beta() -> Density:
    at = (np.arange(SIZE) + 0.5) / SIZE
    return made(at**4 * (1 - at))


def meter() -> Density:
    """Quarter hours of real homes; those outside the range, 0.9 %, are left out."""
    power = load_swiss().ravel()
    inside = power[(power >= 0) & (power < 2**14)]
    return made(np.bincount(inside // (2**14 // SIZE), minlength=SIZE))


def made(mass: np.ndarray) -> Density:
    return density(mass / mass.sum(), edges_of(WAVE))


def held(band: Band, truth: ArrayLike) -> list[bool]:
    true = np.asarray(truth, dtype=np.float64)
    inside: list[bool] = ((band.low <= true) & (true <= band.high)).tolist()
    return inside


def what_is_held(found: Bands, true: Density) -> list[bool]:
    """Mean, five quantiles, the shares below five points, two ranges."""
    at = [true.quantile(p) for p in SHARES]
    return [
        *held(found.mean(), true.mean()),
        *held(found.quantiles(SHARES), at),
        *held(found.cdf(at), true.cdf(at)),
        *held(found.range(at[0], at[2]), true.range(at[0], at[2])),
        *held(found.range(at[2], at[4]), true.range(at[2], at[4])),
    ]


@pytest.mark.parametrize("truth", [beta, meter])
def test_bands_of_95_per_cent_hold_93_to_97(truth: Callable[[], Density]) -> None:
    """100 fleets, 13 figures of each: what of them held on average, and what the worst.

    Beta(5,2): 95.8 % on average (least 95 %), single cells 98.8 %; homes: 95.0 % (92 %), 97.9 %.
    The average's standard error is about 1 %, a single figure's 2.2 %. False alarm with other
    seeds: about one in twenty.
    """
    true, model = truth(), model_of(WAVE)
    law = model.operator.apply(true.probabilities)
    rows, cells = [], []
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        counts = rng.multinomial(N, law / law.sum())
        found = bands(model, counts, rng=rng, resamples=RESAMPLES)
        rows.append(what_is_held(found, true))
        cells.append(np.mean(held(found.density(), true.probabilities)))
    each = np.mean(rows, axis=0)
    assert 0.93 <= each.mean() <= 0.97
    assert each.min() >= 0.85
    assert np.mean(cells) >= 0.95  # cells cannot fall below 0: wider than they need be
