"""EM and EMS by cumulative sums against the same iterations with a dense matrix.

CPU time of the process (BLAS may use every core), d = 1024, 100,000 square-wave reports at ε = 1.
Nothing is asserted: ratios belong into README.md, machines differ.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pytest

from edge_ldp import SquareWave
from edge_ldp.estimate import Density, em, ems
from edge_ldp.estimate.operator import operator_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from pytest_benchmark.fixture import BenchmarkFixture

    Floats = NDArray[np.float64]

Result = TypeVar("Result")

SIZE = 1024
ITERATIONS = 200
WAVE = SquareWave(epsilon=1, low=0, high=43_470, size=SIZE)


def _counts() -> Floats:
    x = np.exp(-np.arange(SIZE) / 50)
    law = operator_of(WAVE).apply(x / x.sum())
    return np.random.default_rng(0).multinomial(100_000, law).astype(np.float64)


def _matrix() -> Floats:
    wave = WAVE.waves[0]
    code, index = np.arange(wave.code_count)[:, None], np.arange(SIZE)[None, :]
    near = (index <= code) & (code <= index + 2 * wave.c)
    return np.where(near, wave.r_num, wave.r_den) / wave.total


def _smoothing() -> Floats:
    rows = np.eye(SIZE) / 2 + np.eye(SIZE, k=1) / 4 + np.eye(SIZE, k=-1) / 4
    rows[0, :2] = 2 / 3, 1 / 3
    rows[-1, -2:] = 1 / 3, 2 / 3
    return rows


def _dense(matrix: Floats, counts: Floats, rows: Floats | None) -> Floats:
    """Run the text-book loop: as many mat-vecs as the estimator has cumulative sums."""
    x = np.full(SIZE, 1 / SIZE)
    law = matrix @ x
    for _ in range(ITERATIONS):
        x = x * (matrix.T @ (counts / law))
        x = x if rows is None else rows @ x
        x /= x.sum()
        law = matrix @ x
        counts @ np.log(law)
    return x


@pytest.mark.benchmark(group=f"EM, {ITERATIONS} iterations", timer=time.process_time)
def test_em_dense(benchmark: BenchmarkFixture) -> None:
    _time(benchmark, _dense, (_matrix(), _counts(), None), rounds=8)


@pytest.mark.benchmark(group=f"EM, {ITERATIONS} iterations", timer=time.process_time)
def test_em(benchmark: BenchmarkFixture) -> None:
    found = _time(benchmark, _fixed(em), (_counts(),))
    _agree(found, _dense(_matrix(), _counts(), None))


@pytest.mark.benchmark(group=f"EMS, {ITERATIONS} iterations", timer=time.process_time)
def test_ems_dense(benchmark: BenchmarkFixture) -> None:
    _time(benchmark, _dense, (_matrix(), _counts(), _smoothing()), rounds=8)


@pytest.mark.benchmark(group=f"EMS, {ITERATIONS} iterations", timer=time.process_time)
def test_ems(benchmark: BenchmarkFixture) -> None:
    found = _time(benchmark, _fixed(ems), (_counts(),))
    _agree(found, _dense(_matrix(), _counts(), _smoothing()))


@pytest.mark.benchmark(group="a whole estimate", timer=time.process_time)
def test_em_to_its_stop(benchmark: BenchmarkFixture) -> None:
    _time(benchmark, em, (WAVE, _counts()))


@pytest.mark.benchmark(group="a whole estimate", timer=time.process_time)
def test_ems_to_its_stop(benchmark: BenchmarkFixture) -> None:
    _time(benchmark, ems, (WAVE, _counts()))


@pytest.mark.benchmark(group="a whole estimate", timer=time.process_time)
def test_ems_accelerated(benchmark: BenchmarkFixture) -> None:
    _time(benchmark, _accelerated, (_counts(),))


def _time(
    benchmark: BenchmarkFixture,
    function: Callable[..., Result],
    arguments: tuple[object, ...],
    rounds: int = 100,
) -> Result:
    """Return what the function returns, having timed it; short ones in many rounds.

    So each has about a second to meet the machine at its best: compare the column `min`.
    """
    timed: Result = benchmark.pedantic(  # type: ignore[no-untyped-call] # it has no annotations
        function, arguments, rounds=rounds, warmup_rounds=3
    )
    return timed


def _accelerated(counts: Floats) -> Density:
    return ems(WAVE, counts, accelerate=True)


def _fixed(estimator: Callable[..., Density]) -> Callable[[Floats], Density]:
    def run(counts: Floats) -> Density:
        return estimator(WAVE, counts, tolerance=0, max_iterations=ITERATIONS)

    return run


def _agree(found: Density, dense: Floats) -> None:
    np.testing.assert_allclose(found.probabilities, dense, rtol=0, atol=1e-9)
