import numpy as np
import pytest

from edge_ldp.estimate.pure import supports
from studies.baselines.cfo import cfo, prefers_grr


def test_frequencies_that_are_probabilities_stay() -> None:
    given = supports([260, 140, 200], 1000, own=0.5, other=0.1)
    found = cfo(given, edges=[0, 10, 30, 31])
    np.testing.assert_allclose(found.probabilities, np.array([0.4, 0.1, 0.25]) + 0.25 / 3)
    assert found.n == 1000
    assert found.range(10, 20) == pytest.approx(found.probabilities[1] / 2)  # uniform in a bin


def test_negative_frequencies_become_0() -> None:
    found = cfo(supports([900, 100, 0], 1000, own=0.5, other=0.1))
    assert found.probabilities.tolist() == [1, 0, 0]


def test_the_oracle_of_the_smaller_variance_is_preferred() -> None:
    """Variances of an item that no reporter has, at E = 5: GRR up to 16 bins, then OLH."""
    for bins in range(2, 40):
        p, q = 5 / (4 + bins), 1 / (4 + bins)
        grr_variance = supports([0] * bins, 1, own=p, other=q).variance
        olh_variance = supports([0] * bins, 1, own=5 / 10, other=1 / 6).variance
        assert prefers_grr(bins, 5) == (grr_variance < olh_variance), bins
