from fractions import Fraction

import numpy as np
import pytest
import scipy

from edge_ldp.device.errors import ParameterError
from edge_ldp.errors import CountsError
from studies.baselines.hadamard import hadamard, hrr_supports


def test_the_transform_is_the_hadamard_matrix() -> None:
    sums = np.array([5, -3, 0, 2, 9, -9, 1, 4])
    np.testing.assert_array_equal(hadamard(sums), scipy.linalg.hadamard(8) @ sums)
    assert hadamard([7]).tolist() == [7]
    for wrong in ([], [1, 2, 3], [[1, 2], [3, 4]]):
        with pytest.raises(ParameterError, match="power of two"):
            hadamard(wrong)


def test_hrrs_supports_are_counted_report_by_report() -> None:
    counts = np.array([[3, 1], [0, 5], [2, 2], [7, 0]])
    given = hrr_supports(counts, 3, own=Fraction(3, 4))
    parity = [[(row & item).bit_count() % 2 for item in range(3)] for row in range(4)]
    expected = [sum(counts[row][parity[row][item]] for row in range(4)) for item in range(3)]
    assert given.counts.tolist() == expected
    assert (given.n, given.own, given.other) == (20, 0.75, 0.5)
    for wrong in ([1, 2], [[1, 2, 3]], [[1, 2]]):
        with pytest.raises(CountsError):
            hrr_supports(wrong, 2, own=0.75)
