"""What an estimate holds at its peak grows with the number of cells, not with its square."""

import tracemalloc
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from edge_ldp import Mechanism, SquareWave
from edge_ldp.estimate import Density, em, ems

FEW, MANY = 1024, 32_768
FLOATS = 40  # of 8 bytes a cell, at most; measured 15 to 23


def peak_bytes(estimator: Callable[..., Density], wave: Mechanism) -> int:
    """Most bytes held at once, the mechanism's model and the result included."""
    counts = np.arange(wave.code_count) % 7
    tracemalloc.start()
    try:
        estimator(wave, counts)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "estimator",
    [
        partial(em, max_iterations=5),
        partial(ems, max_iterations=5),
        partial(ems, accelerate=True, max_iterations=5),
    ],
    ids=["em", "ems", "leaps"],
)
def test_memory_is_a_few_numbers_a_cell(estimator: Callable[..., Density]) -> None:
    few, many = (
        peak_bytes(estimator, SquareWave(epsilon=1, low=0, high=10**6, size=size))
        for size in (FEW, MANY)
    )
    assert many <= FLOATS * 8 * MANY
    assert many <= 1.25 * MANY / FEW * few
