import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.estimate.pure import norm_sub

NUMBERS = st.lists(st.floats(-5, 5), min_size=1, max_size=12)


@given(NUMBERS, st.floats(0.01, 10))
def test_it_takes_one_number_from_all_and_keeps_what_stays_positive(
    estimates: list[float], total: float
) -> None:
    x = np.array(estimates)
    found = norm_sub(x, total)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total, rel=1e-12)
    taken = (x - found)[found > 0]
    np.testing.assert_allclose(taken, taken[0], atol=1e-9)
    assert (x[found == 0] <= taken[0] + 1e-9).all()  # with that these are the nearest (KKT)


def test_an_estimate_that_is_a_distribution_stays() -> None:
    np.testing.assert_allclose(norm_sub([0.25, 0, 0.75]), [0.25, 0, 0.75], rtol=1e-15)


def test_estimates_below_0_throughout_still_give_probabilities() -> None:
    np.testing.assert_allclose(norm_sub([-3.0, -3.0]), [0.5, 0.5])
    np.testing.assert_allclose(norm_sub([-3.0, -9.0]), [1, 0])
