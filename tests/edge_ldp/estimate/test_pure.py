from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest

from edge_ldp.device.errors import ParameterError
from edge_ldp.errors import CountsError, NoReportsError
from edge_ldp.estimate.pure import integer_counts, supports

OWN, OTHER = Fraction(1, 2), Fraction(1, 5)


def test_supports_at_their_means_give_the_frequencies_back() -> None:
    given = supports([200 * 2 + 600, 200 * 5, 200 * 2], 2000, own=OWN, other=OTHER)
    np.testing.assert_allclose(given.frequencies(), [1, 1, 0], atol=1e-15)
    assert given.size == 3
    assert given.variance == pytest.approx(0.2 * 0.8 / (2000 * 0.3**2))


@pytest.mark.parametrize(
    "counts", [[1.5], [nan], [inf], [-1], ["1"], [2**53 + 1], [2**70], [[1], [1, 2]], [True]]
)
def test_what_cannot_be_counts_is_refused(counts: list[int]) -> None:
    with pytest.raises(CountsError):
        integer_counts(counts)


def test_floats_that_are_whole_are_counts() -> None:
    assert integer_counts([3.0, 0.0]).tolist() == [3, 0]


def test_supports_must_fit_their_reports() -> None:
    for counts in ([5], [], [[1]], 1):
        with pytest.raises(CountsError):
            supports(counts, 4, own=OWN, other=OTHER)
    for n in (-1, 2**53 + 1, 4.0):
        with pytest.raises(ParameterError, match="n"):
            supports([1], n, own=OWN, other=OTHER)  # type: ignore[arg-type] # that is the test
    with pytest.raises(NoReportsError):
        supports([0], 0, own=OWN, other=OTHER)
    for own, other in ((0.2, 0.2), (0.1, 0.2), (1.1, 0.2), (nan, 0.2)):
        with pytest.raises(ParameterError, match="own"):
            supports([0], 1, own=own, other=other)
