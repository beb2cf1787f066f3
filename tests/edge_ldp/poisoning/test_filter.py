"""The filter: what it takes out of expected counts, exactly, and of drawn ones."""

import numpy as np
import pytest

from edge_ldp import Hybrid, Mechanism, SquareWave
from edge_ldp.errors import CountsError, NoReportsError
from edge_ldp.mechanisms import Tuned
from edge_ldp.poisoning.alarm import Alarm, alarm
from edge_ldp.poisoning.filter import FILTERED, NOWHERE, QUIET, UNEXPLAINED, WIDE, Cleaned, clean
from edge_ldp.vectorized import decode_table
from tests.edge_ldp.poisoning.test_crowds import at_code, honest_law

N = 65_536
HYBRID = Hybrid(epsilon=1, low=0, high=10_000, size=64)
WAVE = SquareWave(epsilon=1, low=0, high=1023, size=128)
TUNED = Tuned(epsilon=2, low=0, high=1000)
POISONED = [(HYBRID, -3), (WAVE, -1), (TUNED, -1)]
LOUD = Alarm(misfit=1e3, misfit_p=1e-3, excess=9.0, excess_p=1e-3, limit=4.0, false_alarm=0.01)
SILENT = Alarm(misfit=1.0, misfit_p=0.5, excess=9.0, excess_p=0.5, limit=4.0, false_alarm=0.01)


def cleaned(mechanism: Mechanism, counts: np.ndarray) -> Cleaned:
    return clean(mechanism, counts, alarm(mechanism, counts, rng=np.random.default_rng(1)))


def honest_mean(mechanism: Mechanism) -> float:
    return float(honest_law(mechanism) @ decode_table(mechanism))


@pytest.mark.parametrize(("mechanism", "code"), POISONED)
@pytest.mark.parametrize("share", [0.05, 0.1])
def test_the_share_of_liars_with_one_code_is_found(
    mechanism: Mechanism, code: int, share: float
) -> None:
    counts = N * ((1 - share) * honest_law(mechanism) + share * at_code(mechanism, code))
    found = clean(mechanism, counts, LOUD)
    assert found.warnings == (FILTERED,)
    assert found.share == pytest.approx(share, abs=0.1 * share)
    [atom] = found.atoms
    assert (atom.first, atom.last) == (mechanism.code_count + code,) * 2
    shift = counts @ decode_table(mechanism) / N - honest_mean(mechanism)
    assert abs(found.mean - honest_mean(mechanism)) < 0.1 * shift


def test_what_is_taken_out_and_what_is_left_are_all_the_reports() -> None:
    counts = N * (0.95 * honest_law(WAVE) + 0.05 * at_code(WAVE, -1))
    found = clean(WAVE, counts, LOUD)
    assert found.counts.sum() == pytest.approx((1 - found.share) * N, rel=1e-3)
    assert (found.counts <= counts).all()
    assert found.counts.min() >= 0
    assert found.density.n == round(found.counts.sum())
    assert FILTERED in found.density.warnings


def test_liars_spread_over_a_stretch_of_codes_are_found_by_few_atoms() -> None:
    law = 0.95 * honest_law(WAVE)
    law[-24:] += 0.05 / 24
    found = clean(WAVE, N * law, LOUD)
    assert found.share == pytest.approx(0.05, abs=0.005)
    assert len(found.atoms) <= 5


def test_without_an_alarm_nothing_is_taken_out() -> None:
    counts = N * (0.95 * honest_law(WAVE) + 0.05 * at_code(WAVE, -1))
    found = clean(WAVE, counts, SILENT)
    assert found.warnings == (QUIET,)
    assert (found.share, found.atoms) == (0, ())
    assert found.counts.tolist() == counts.tolist()


def test_honest_counts_lose_nothing_even_after_a_false_alarm() -> None:
    found = clean(WAVE, N * honest_law(WAVE), LOUD)
    assert found.warnings == (NOWHERE,)
    assert found.share == 0
    assert found.mean == pytest.approx(honest_mean(WAVE))


def test_counts_that_no_number_of_atoms_explains_carry_a_warning() -> None:
    counts = np.zeros(WAVE.code_count)
    counts[::5] = 1000  # every fifth code: more stretches than there are atoms
    assert UNEXPLAINED in clean(WAVE, counts, LOUD).warnings


def test_a_share_from_a_stretch_that_honest_reports_fill_too_carries_a_warning() -> None:
    """Liars who never take one branch of the mixture: their codes are half of all there are."""
    law = 0.8 * honest_law(HYBRID)
    law[:-2] += 0.2 / (HYBRID.code_count - 2)
    assert WIDE in clean(HYBRID, N * law, LOUD).warnings


def test_all_reports_of_one_code_leave_finite_figures() -> None:
    found = cleaned(WAVE, 1000 * at_code(WAVE, -1))
    assert np.isfinite([found.mean, found.share]).all()
    assert found.density.probabilities.sum() == pytest.approx(1)


def test_damaged_counts_are_typed_errors() -> None:
    with pytest.raises(NoReportsError):
        clean(WAVE, np.zeros(WAVE.code_count), LOUD)
    with pytest.raises(CountsError):
        clean(WAVE, np.ones(3), LOUD)
