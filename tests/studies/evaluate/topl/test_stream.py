"""The stream of the study `topl`, and the exact error of its range sums."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.evaluate.files import built_in
from studies.evaluate.study import Values
from studies.evaluate.topl.stream import (
    HORIZON,
    Stream,
    best,
    least,
    mean_square_of_ranges,
    stream_of,
    unit_variance,
)


def stream(values: list[int], low: int = 0, ceiling: int = 50) -> Stream:
    given = np.array(values, np.int64)
    return stream_of(Values("some", given, low, ceiling, "W", "made"))


def test_short_data_are_mirrored_as_often_as_needed() -> None:
    assert stream([1, 2, 3]).part(0, 14).tolist() == [1, 2, 3, 3, 2, 1, 1, 2, 3, 3, 2, 1, 1, 2]
    assert stream([1, 2, 3]).part(5, 8).tolist() == [1, 1, 2]
    assert stream([7]).part(3, 6).tolist() == [7, 7, 7]


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=12))
def test_the_mean_square_is_that_of_every_query(values: list[int]) -> None:
    ends = combinations(range(len(values) + 1), 2)
    squares = [sum(values[i:j]) ** 2 for i, j in ends]
    assert mean_square_of_ranges(np.array(values)) == pytest.approx(np.mean(squares), abs=1e-9)


def test_the_error_is_noise_over_the_mean_query_and_what_truncation_takes() -> None:
    """Of a constant stream v the truncated part of a query of length L is L·(v − θ)."""
    found = stream([30], low=-10)
    noise = unit_variance() * 20**2 * (HORIZON + 2) / 3  # (θ − low)/2 = 20
    assert found.mse(30) == pytest.approx(noise, rel=1e-12)
    queries = (HORIZON + 1) * HORIZON / 2
    squares = (HORIZON + 1) ** 2 * HORIZON * (HORIZON + 2) / 12  # Σ L² over all queries
    noise = unit_variance() * 19**2 * (HORIZON + 2) / 3
    assert found.mse(28) == pytest.approx(noise + 4 * squares / queries, rel=1e-6)


def test_the_best_threshold_is_the_least_of_its_neighbours_and_of_a_grid() -> None:
    found = stream([0, 1, 2, 3, 5, 8, 13, 21, 34] * 3)
    theta = best(found)
    errors = [found.mse(other) for other in range(1, 50, 7)]
    assert least(found) == found.mse(theta) <= min(errors)
    assert found.mse(theta) <= min(found.mse(theta - 1), found.mse(theta + 1))


@pytest.mark.parametrize(
    ("name", "theta", "error", "zero"),
    [("pos", 45.2, 1.00e9, 1.08e13), ("retail", 45.8, 9.16e8, 2.03e13)],
)
def test_what_is_possible_is_what_the_reference_runs_found(
    name: str, theta: float, error: float, zero: float
) -> None:
    """Theirs over 200 sampled queries a run: a standard error of some 3 %; ours over all."""
    found = stream_of(built_in(name))
    assert best(found) == pytest.approx(theta, abs=2)
    assert least(found) == pytest.approx(error, rel=0.1)
    assert found.zero_mse() == pytest.approx(zero, rel=0.1)
