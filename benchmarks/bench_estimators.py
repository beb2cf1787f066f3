"""What the issue sets a time for: EMS against matrices, large EMS, trees, bands, OLH, pure Python.

CPU time of the process, 65,536 reports at ε = 1 over 1024 cells (`benchmarks.estimators`) unless
said. Nothing is asserted but that fast and slow answers agree. Figures: docs/results.md.
Errors and times of all estimators: `python -m benchmarks.estimators_table`.
"""

from __future__ import annotations

import time
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pytest

from benchmarks.estimators import ESTIMATORS, SIZE, SMOOTHERS, Fleet, N
from edge_ldp import SquareWave
from edge_ldp.device.channel import Wave
from edge_ldp.estimate import ems
from edge_ldp.estimate.held_out import auto
from edge_ldp.estimate.operator import Model, Operator, branch_of, model_of
from edge_ldp.estimate.pure import PRIME, olh_counts
from edge_ldp.gateway import ems as pure_ems
from edge_ldp.ratio import floor_ratio
from edge_ldp.sums import CodeCounts, Surveys, cdf_band, surveys_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from pytest_benchmark.fixture import BenchmarkFixture

    Floats = NDArray[np.float64]

Result = TypeVar("Result")

WAVE = Fleet("meter").survey


@pytest.mark.benchmark(group="EMS to its stop", timer=time.process_time)
def test_ems_dense(benchmark: BenchmarkFixture) -> None:
    """The iteration with matrices, by the same rule: so many multiplications as it needs."""
    counts = Fleet("beta").counts(WAVE)
    found = _time(benchmark, partial(_dense, counts.astype(np.float64)), rounds=1)
    plain = ems(WAVE, counts)
    np.testing.assert_allclose(found, plain.probabilities, atol=1e-9)
    benchmark.extra_info["iterations"] = plain.iterations


@pytest.mark.parametrize("how", SMOOTHERS[1:4])
@pytest.mark.benchmark(group="EMS to its stop", timer=time.process_time)
def test_ems(benchmark: BenchmarkFixture, how: str) -> None:
    _time(benchmark, ESTIMATORS[how](Fleet("beta")), rounds=30)


@pytest.mark.parametrize("accelerate", [False, True], ids=["plain", "leaps"])
@pytest.mark.benchmark(group="EMS, 65,536 cells", timer=time.process_time)
def test_ems_of_65536_cells(benchmark: BenchmarkFixture, accelerate: bool) -> None:  # noqa: FBT001
    model, law = _large()
    counts = np.random.default_rng(0).multinomial(N, law / law.sum())
    estimate = partial(ems, model, counts, accelerate=accelerate, early=accelerate)
    found = _time(benchmark, estimate, rounds=1)
    benchmark.extra_info["iterations"] = found.iterations


@pytest.mark.parametrize("how", ["AHEAD", "HH-ADMM"])
@pytest.mark.benchmark(group="trees", timer=time.process_time)
def test_tree(benchmark: BenchmarkFixture, how: str) -> None:
    _time(benchmark, ESTIMATORS[how](Fleet("spiky")), rounds=10)


@pytest.mark.benchmark(group="EMS in pure Python, 256 cells", timer=time.process_time)
def test_pure_ems(benchmark: BenchmarkFixture) -> None:
    """A spike, a heap and a tail: some 600 iterations."""
    at = np.arange(256)
    mass = np.exp(-at / 20) + 3 * (at == 128)
    survey = SquareWave(epsilon=1, low=0, high=2**14 - 1, size=256)
    law = model_of(survey).operator.apply(mass / mass.sum())
    counts = np.random.default_rng(0).multinomial(N, law / law.sum()).tolist()
    found = _time(benchmark, partial(pure_ems, survey, counts), rounds=10)
    np.testing.assert_allclose(found.probabilities, ems(survey, counts).probabilities, atol=1e-9)
    benchmark.extra_info["iterations"] = found.iterations


@pytest.mark.benchmark(group="bands, 1,024 points", timer=time.process_time)
def test_bands(benchmark: BenchmarkFixture) -> None:
    """The mechanism's own part, a second at most, is kept from the first call on."""
    counts = CodeCounts(WAVE, Fleet("meter").counts(WAVE))

    def asked() -> Surveys:
        surveys = surveys_of([counts])
        cdf_band(surveys, surveys.points)
        return surveys

    asked()
    _time(benchmark, asked, rounds=5)


@pytest.mark.benchmark(group="the chooser", timer=time.process_time)
def test_auto(benchmark: BenchmarkFixture) -> None:
    counts = Fleet("meter").counts(WAVE)
    _time(benchmark, partial(auto, WAVE, counts, rng=np.random.default_rng(0)), rounds=1)


@pytest.mark.benchmark(group="OLH, a million reports, 1024 items", timer=time.process_time)
def test_olh(benchmark: BenchmarkFixture) -> None:
    rng = np.random.default_rng(0)
    fields = (
        rng.integers(1, PRIME, 10**6),
        rng.integers(0, PRIME, 10**6),
        rng.integers(0, 3, 10**6),
    )
    _time(benchmark, partial(olh_counts, np.stack(fields, axis=1), SIZE, 3), rounds=1)


def _time(benchmark: BenchmarkFixture, function: Callable[[], Result], rounds: int) -> Result:
    timed: Result = benchmark.pedantic(  # type: ignore[no-untyped-call] # it has no annotations
        function, rounds=rounds, warmup_rounds=min(rounds - 1, 2)
    )
    return timed


def _dense(counts: Floats) -> Floats:
    """Run EMS with matrices until the log-likelihood changes by less than 10⁻³."""
    channel = WAVE.waves[0]
    code, index = np.arange(channel.code_count)[:, None], np.arange(SIZE)[None, :]
    near = (index <= code) & (code <= index + 2 * channel.c)
    matrix = np.where(near, channel.r_num, channel.r_den) / channel.total
    rows = np.eye(SIZE) / 2 + np.eye(SIZE, k=1) / 4 + np.eye(SIZE, k=-1) / 4
    rows[0, :2], rows[-1, -2:] = (2 / 3, 1 / 3), (1 / 3, 2 / 3)
    x: Floats = np.full(SIZE, 1 / SIZE)
    law = matrix @ x
    before = -np.inf
    while True:
        x = rows @ (x * (matrix.T @ (counts / law)))
        x /= x.sum()
        law = matrix @ x
        after = float(counts @ np.log(law))
        if abs(after - before) < 1e-3:
            return x
        before = after


def _large() -> tuple[Model, Floats]:
    """Return a wave of 65,536 inputs, a likelihood like any other, and the law of its codes."""
    size, ratio = 2**16, floor_ratio(1)
    c = WAVE.waves[0].c * size // SIZE
    near = (2 * c + 1) * ratio.num
    total = near + (size - 1) * ratio.den
    channel = Wave(size, c, ratio.num, ratio.den, size + 2 * c, near, total)
    branch = branch_of(Fraction(1), channel, size)
    codes = channel.code_count
    operator = Operator(size, codes, np.ones(codes, bool), (branch,), (0, codes))
    x: Floats = np.exp(-np.arange(size) * 12 / size)
    edges = np.arange(size + 1, dtype=np.float64)
    return Model(operator, edges, lattice=False, max_ratio=2.7), operator.apply(x / x.sum())
