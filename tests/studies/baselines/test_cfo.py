import numpy as np
import pytest

from edge_ldp.estimate.pure import supports
from studies.baselines.grr import cfo


def test_frequencies_that_are_probabilities_stay() -> None:
    given = supports([260, 140, 200], 1000, own=0.5, other=0.1)
    found = cfo(given, edges=[0, 10, 30, 31])
    np.testing.assert_allclose(found.probabilities, np.array([0.4, 0.1, 0.25]) + 0.25 / 3)
    assert found.n == 1000
    assert found.range(10, 20) == pytest.approx(found.probabilities[1] / 2)  # uniform in a bin


def test_negative_frequencies_become_0() -> None:
    found = cfo(supports([900, 100, 0], 1000, own=0.5, other=0.1))
    assert found.probabilities.tolist() == [1, 0, 0]
