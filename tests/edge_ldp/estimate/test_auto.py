import numpy as np
import pytest

from edge_ldp import SquareWave
from edge_ldp.errors import NoReportsError
from edge_ldp.estimate.held_out import auto, held_out
from edge_ldp.estimate.operator import operator_of

WAVE = SquareWave(epsilon=2, low=0, high=255, size=256)
RAMP = np.linspace(1, 2, 256)
ATOMS = np.isin(np.arange(256), [10, 60, 63, 200]).astype(float)


def counts_of(x: np.ndarray, n: int, seed: int) -> np.ndarray:
    law = operator_of(WAVE).apply(x / x.sum())
    return np.random.default_rng(seed).multinomial(n, law / law.sum())


@pytest.mark.parametrize(
    ("density", "n", "method", "why"),
    [
        (ATOMS, 60_000, "ahead", "mass on few values, so survey by AHEAD next"),
        (RAMP, 100_000, "tuned", "in the logarithm"),
        (RAMP, 300, "ems", "no other smoothing makes held-out reports clearly likelier"),
    ],
)
def test_it_chooses_by_the_density_and_says_why(
    density: np.ndarray, n: int, method: str, why: str
) -> None:
    choice = auto(WAVE, counts_of(density, n, 2), rng=np.random.default_rng(2))
    assert choice.method == method
    assert why in choice.reason
    assert (choice.strength == 0.5) == (method == "ems")


def test_the_density_is_held_outs() -> None:
    counts = counts_of(ATOMS, 5000, 1)
    choice = auto(WAVE, counts, rng=np.random.default_rng(3))
    found = held_out(WAVE, counts, rng=np.random.default_rng(3))
    np.testing.assert_array_equal(choice.density.probabilities, found.density.probabilities)
    assert choice.strength == found.strength
    gain = found.gains[found.strengths.index(found.strength)]
    assert f"likelier by {gain:.1f}" in choice.reason


def test_no_reports_are_an_error() -> None:
    with pytest.raises(NoReportsError):
        auto(WAVE, np.zeros(WAVE.code_count), rng=np.random.default_rng(0))
