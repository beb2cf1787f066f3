import numpy as np
import pytest
import scipy

from edge_ldp.device.errors import ParameterError
from studies.baselines.haar import haar_frequencies, haar_hrr, hadamard

OWN = 0.75


def mean_counts(x: np.ndarray, n: int) -> list[np.ndarray]:
    """Counts of (row, bit) on each level, as they are on average for n reports a level."""
    height = (len(x) - 1).bit_length()
    levels = []
    for level in range(height):
        nodes = 1 << (height - 1 - level)
        counts = np.zeros((nodes, 2))
        for value, share in enumerate(x):
            node, sign = value >> (level + 1), value >> level & 1
            for row in range(nodes):
                bit = (row & node).bit_count() % 2 ^ sign
                counts[row, bit] += n * share * OWN / nodes
                counts[row, 1 - bit] += n * share * (1 - OWN) / nodes
        levels.append(np.rint(counts))
    return levels


@pytest.mark.parametrize("size", [2, 3, 7, 8, 13])
def test_mean_counts_give_the_density_back(size: int) -> None:
    x = np.random.default_rng(size).dirichlet(np.ones(size))
    levels = mean_counts(x, 10**12)
    frequencies, n = haar_frequencies(levels, size, own=OWN)
    np.testing.assert_allclose(frequencies, x, atol=1e-9)
    assert n == pytest.approx(len(levels) * 10**12, abs=100)
    assert frequencies.sum() == pytest.approx(1, abs=1e-12)
    found = haar_hrr(levels, size, own=OWN)
    np.testing.assert_allclose(found.probabilities, x, atol=1e-9)
    assert found.n == n


def test_it_is_linear_in_each_levels_reports() -> None:
    """One report of level 1 moves its node's halves by half the coefficient, children by a 4th."""
    levels = [np.zeros((2, 2), int), np.array([[1, 0]])]
    frequencies, _ = haar_frequencies(levels, 4, own=OWN)
    np.testing.assert_allclose(frequencies, [0.75, 0.75, -0.25, -0.25])
    levels = [np.array([[0, 1], [0, 0]]), np.array([[0, 0]])]  # the row of ones: both nodes
    frequencies, _ = haar_frequencies(levels, 4, own=OWN)
    np.testing.assert_allclose(frequencies, [-0.75, 1.25, -0.75, 1.25])


def test_the_transform_is_the_hadamard_matrix() -> None:
    sums = np.array([5, -3, 0, 2, 9, -9, 1, 4])
    np.testing.assert_array_equal(hadamard(sums), scipy.linalg.hadamard(8) @ sums)
    assert hadamard([7]).tolist() == [7]
    for wrong in ([], [1, 2, 3], [[1, 2], [3, 4]]):
        with pytest.raises(ParameterError, match="power of two"):
            hadamard(wrong)
