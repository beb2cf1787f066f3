import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.device.channel import wave
from edge_ldp.device.errors import ParameterError
from studies.baselines.grr import grr
from tests.edge_ldp.estimate.dense import iterate, wave_matrix

COUNTS = st.lists(st.integers(0, 40), min_size=2, max_size=9).filter(any)


@given(COUNTS, st.integers(2, 60))
def test_no_other_density_is_likelier(counts: list[int], ratio: int) -> None:
    """The conditions of Karush, Kuhn and Tucker, which suffice: the likelihood is concave."""
    channel = wave(len(counts), 0, ratio, 1)
    found = grr(channel, counts)
    matrix, n = wave_matrix(channel), np.array(counts, float)
    slope = matrix.T @ (n / (matrix @ found.probabilities))
    np.testing.assert_allclose(slope[found.probabilities > 0], n.sum(), rtol=1e-9)
    assert slope.max() <= n.sum() * (1 + 1e-9)
    law = matrix @ found.probabilities
    assert found.log_likelihood == pytest.approx(n[n > 0] @ np.log(law[n > 0]))
    assert found.n == n.sum()


def test_it_is_where_em_ends() -> None:
    channel = wave(6, 0, 3, 1)
    counts = np.array([30.0, 22, 9, 1, 0, 12])
    dense = iterate(wave_matrix(channel), counts, 20_000)
    np.testing.assert_allclose(grr(channel, counts).probabilities, dense, atol=1e-6)


def test_edges_are_the_categories_unless_given() -> None:
    channel = wave(2, 0, 3, 1)
    assert grr(channel, [3, 1]).edges.tolist() == [0, 1, 2]
    assert grr(channel, [3, 1], edges=[-5, 0, 9]).edges.tolist() == [-5, 0, 9]
    with pytest.raises(ParameterError, match="edges"):
        grr(channel, [3, 1], edges=[0, 1])


def test_one_report_and_one_category_are_enough() -> None:
    assert grr(wave(3, 0, 3, 1), [0, 1, 0]).probabilities.tolist() == [0, 1, 0]
    assert grr(wave(3, 0, 3, 1), [0, 10**15, 0]).probabilities.tolist() == [0, 1, 0]
