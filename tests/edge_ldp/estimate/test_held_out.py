import numpy as np
import pytest

from edge_ldp import Hybrid, Mechanism, SquareWave
from edge_ldp.errors import CountsError, NoReportsError
from edge_ldp.estimate import ems
from edge_ldp.estimate.held_out import STRENGTHS, held_out
from edge_ldp.estimate.operator import model_of, operator_of
from edge_ldp.gateway.ems import ONE_CODE

WAVE = SquareWave(epsilon=2, low=0, high=255, size=256)


def counts_of(x: np.ndarray, n: int, seed: int, mechanism: Mechanism = WAVE) -> np.ndarray:
    law = np.maximum(operator_of(mechanism).apply(x / x.sum()), 0)
    return np.random.default_rng(seed).multinomial(n, law / law.sum())


def test_the_estimate_is_that_of_the_strength_chosen() -> None:
    counts = counts_of(np.exp(-np.arange(256) / 20), 20_000, 0)
    found = held_out(WAVE, counts, rng=np.random.default_rng(0))
    again = ems(WAVE, counts, strength=found.strength, accelerate=True, early=True)
    np.testing.assert_array_equal(found.density.probabilities, again.probabilities)
    assert found.strengths == STRENGTHS
    at = STRENGTHS.index(found.strength)
    assert found.strength == 0.5 or found.gains[at] > 1.65 * found.errors[at]
    usual = STRENGTHS.index(0.5)
    assert found.gains[usual] == found.errors[usual] == 0


def test_the_gain_is_the_held_out_likelihood_written_out() -> None:
    counts = counts_of(np.exp(-np.arange(256) / 20), 5000, 0)
    found = held_out(WAVE, counts, rng=np.random.default_rng(7), strengths=(0.01, 0.5))
    half = np.random.default_rng(7).binomial(counts, 0.5)
    gain = 0.0
    for fitted, asked in ((half, counts - half), (counts - half, half)):
        laws = [
            operator_of(WAVE).apply(
                ems(WAVE, fitted, strength=s, accelerate=True, early=True).probabilities
            )
            for s in (0.01, 0.5)
        ]
        gain += float(asked @ np.log(laws[0] / laws[1]))
    assert found.gains[0] == pytest.approx(gain)


def test_peaks_get_little_smoothing_and_smooth_densities_much() -> None:
    """Seeded: the peaks speak for strength 0 by 454 ± 27, the ramp for 8 by 6.3 ± 2.2."""
    peaks = np.zeros(256)
    peaks[[10, 60, 61, 200]] = 1
    chosen = held_out(WAVE, counts_of(peaks, 50_000, 1), rng=np.random.default_rng(1)).strength
    assert chosen <= 0.03
    ramp = np.linspace(1, 2, 256)
    smooth = held_out(WAVE, counts_of(ramp, 50_000, 2), rng=np.random.default_rng(2))
    assert smooth.strength >= 1


def test_same_generator_state_same_result() -> None:
    counts = counts_of(np.ones(256), 3000, 3)
    one, two = (held_out(WAVE, counts, rng=np.random.default_rng(4)) for _ in range(2))
    assert one.gains == two.gains


def test_one_report_gets_the_usual_strength() -> None:
    counts = np.zeros(WAVE.code_count, int)
    counts[5] = 1
    found = held_out(WAVE, counts, rng=np.random.default_rng(0))
    assert found.strength == 0.5
    assert set(found.gains) == {0}
    assert found.density.warnings == (ONE_CODE,)


def test_codes_without_probability_do_no_harm() -> None:
    mechanism = Hybrid(epsilon="0.5", low=0, high=30, size=16)  # coin 0: most codes impossible
    counts = counts_of(np.ones(16), 1000, 0, mechanism)
    found = held_out(mechanism, counts, rng=np.random.default_rng(0))
    assert np.isfinite(found.gains).all()


def test_bad_input_is_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(NoReportsError):
        held_out(WAVE, np.zeros(WAVE.code_count), rng=rng)
    with pytest.raises(CountsError):
        held_out(WAVE, np.full(WAVE.code_count, 0.5), rng=rng)


def test_no_strength_is_tried_beyond_one_that_is_clearly_worse() -> None:
    heap = np.full(WAVE.size, 0.2 / WAVE.size)
    heap[WAVE.size // 3] += 0.8
    law = model_of(WAVE).operator.apply(heap)
    counts = np.round(1e6 * law).astype(np.int64)
    found = held_out(WAVE, counts, rng=np.random.default_rng(0))
    alone = {
        strength: held_out(
            WAVE, counts, rng=np.random.default_rng(0), strengths=(strength, 0.5)
        ).gains[0]
        for strength in found.strengths
        if strength != 0.5
    }
    gains = dict(zip(found.strengths, found.gains, strict=True))
    untried = {strength for strength, gain in gains.items() if gain == -np.inf}
    assert untried == {2.0, 4.0, 8.0}
    assert all(gains[s] == pytest.approx(gain) for s, gain in alone.items() if s not in untried)
    assert found.strength == max(alone, key=alone.__getitem__)
    assert all(alone[s] < alone[1.0] < 0 for s in untried)
