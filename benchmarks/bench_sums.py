"""What a mean with its interval costs: the design of a survey once, then each query.

The design is solved anew in each round. Nothing is asserted: machines differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from edge_ldp import Hybrid, SquareWave
from edge_ldp.sums import CodeCounts, Epoch, Means, design_of, estimate_means
from edge_ldp.sums.functionals import _designed

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from edge_ldp.sums import SurveyDesign

CEILING = 43_499
STREAM = Hybrid(epsilon=1, low=0, high=8000)
HOURS = 24


@pytest.mark.benchmark(group="sums")
@pytest.mark.parametrize("size", [256, 1024])
def test_a_design(benchmark: BenchmarkFixture, size: int) -> None:
    survey = SquareWave(epsilon=1, low=0, high=CEILING, size=size)

    def solve() -> SurveyDesign:
        _designed.cache_clear()
        return design_of(survey)

    assert len(benchmark(solve).edges) == size + 1


@pytest.mark.benchmark(group="sums")
def test_means_of_hours(benchmark: BenchmarkFixture) -> None:
    survey = SquareWave(epsilon=1, low=0, high=CEILING)
    rng = np.random.default_rng(0)
    strata = [
        [
            Epoch(
                CodeCounts(STREAM, rng.poisson(100, STREAM.code_count)),
                CodeCounts(survey, rng.poisson(5, survey.code_count)),
            )
        ]
        for _ in range(HOURS)
    ]

    def query() -> Means:
        return estimate_means(strata, ceiling=CEILING)

    assert len(benchmark(query).strata) == HOURS
