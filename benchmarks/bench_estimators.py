"""Every estimator on the same fleets: time, and the error it leaves (`extra_info` of each run).

CPU time of the process. 65,536 reports at ε = 1 over 1024 cells of three densities: Beta(5,2), an
income-like mixture with round figures, and quarter-hourly power of real homes below 16,384 W.
Nothing is asserted but that fast and slow answers agree: ratios belong into README.md.
"""

from __future__ import annotations

import time
from fractions import Fraction
from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pytest

from aggregator.estimate import Density, em, ems
from aggregator.estimate.admm import hh_admm
from aggregator.estimate.auto import auto
from aggregator.estimate.bands import bands
from aggregator.estimate.branches import branch_of
from aggregator.estimate.cfo import cfo
from aggregator.estimate.density import density
from aggregator.estimate.grr import grr
from aggregator.estimate.haar import haar_frequencies, haar_hrr
from aggregator.estimate.held_out import held_out
from aggregator.estimate.hierarchy import hh, hh_levels
from aggregator.estimate.model import Model, model_of
from aggregator.estimate.olh import PRIME, olh_counts
from aggregator.estimate.operator import Operator
from aggregator.evaluate import Masses, ks, range_error, w1
from edge_ldp import SquareWave
from edge_ldp.device.channel import Wave, wave
from edge_ldp.ratio import floor_ratio
from firmware_stubs.data import load_swiss
from tests.aggregator.estimate.fleets import ahead_run, cfo_supports, haar_counts, hh_supports

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from pytest_benchmark.fixture import BenchmarkFixture

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Estimate = Callable[[], Density | Masses]

Result = TypeVar("Result")

SIZE, N, EPSILON = 1024, 65_536, 1
WAVE = SquareWave(epsilon=EPSILON, low=0, high=2**14 - 1, size=SIZE)
SEEDS = 8
EDGES = np.arange(0, 16 * SIZE + 1, 16, dtype=np.float64)


@cache
def values(name: str) -> Ints:
    """Cells of N values; seeded."""
    rng = np.random.default_rng(12345)
    if name == "beta":
        return np.minimum((rng.beta(5, 2, N) * SIZE).astype(np.int64), SIZE - 1)
    if name == "meter":
        power = np.clip(load_swiss().ravel(), 0, 2**14 - 1)
        return rng.choice(power, N).astype(np.int64) * SIZE // 2**14
    income = rng.lognormal(10.5, 0.8, 3 * N)
    income = income[income < 2**19][:N]
    habit = rng.random(N)
    exact = np.where(habit < 0.75, np.round(income / 10_000) * 10_000, np.floor(income))
    income = np.where(habit < 0.6, np.round(income / 1000) * 1000, exact)
    return np.minimum(income * SIZE / 2**19, SIZE - 1).astype(np.int64)


def truth(name: str) -> Density:
    return density(np.bincount(values(name), minlength=SIZE) / N, EDGES)


def wave_counts(name: str, seed: int) -> Ints:
    law = model_of(WAVE).operator.apply(truth(name).probabilities)
    return np.random.default_rng(seed).multinomial(N, law / law.sum())


def _smoothed(name: str, seed: int, how: str) -> Estimate:
    counts, model = wave_counts(name, seed), model_of(WAVE)
    rng = np.random.default_rng(seed)
    smoothers: dict[str, Estimate] = {
        "EM": partial(em, model, counts),
        "EMS": partial(ems, model, counts),
        "EMS, leaps to the plain stop": partial(ems, model, counts, accelerate=True, early=True),
        "EMS, leaps to the fixed point": partial(ems, model, counts, accelerate=True),
        "EMS, held out": lambda: held_out(model, counts, rng=rng).density,
    }
    return smoothers[how]


def _binned(name: str, seed: int, bins: int) -> Estimate:
    items = np.bincount(values(name) * bins // SIZE, minlength=bins)
    given = cfo_supports(items, EPSILON, np.random.default_rng(seed))
    return partial(cfo, given, edges=np.linspace(0, EDGES[-1], bins + 1))


def _grr(name: str, seed: int) -> Estimate:
    ratio = floor_ratio(EPSILON)
    channel = wave(SIZE, 0, ratio.num, ratio.den)
    rng = np.random.default_rng(seed)
    far = channel.r_den / channel.total
    mixed = far + (channel.r_num / channel.total - far) * truth(name).probabilities
    return partial(grr, channel, rng.multinomial(N, mixed / mixed.sum()), edges=EDGES)


def _tree(name: str, seed: int, how: str) -> Estimate:
    rng = np.random.default_rng(seed)
    if how.startswith("HaarHRR"):
        levels, own = haar_counts(values(name), SIZE, EPSILON, rng)
        if how == "HaarHRR, signed":
            return lambda: Masses(EDGES, haar_frequencies(levels, SIZE, own=own)[0])
        return partial(haar_hrr, levels, SIZE, own=own, edges=EDGES)
    supports = hh_supports(values(name), SIZE, EPSILON, rng)
    if how == "HH, signed":
        return lambda: Masses(EDGES, hh_levels(supports, SIZE)[-1][:SIZE])
    return partial(hh if how == "HH" else hh_admm, supports, SIZE, edges=EDGES)


def _ahead(name: str, seed: int) -> Estimate:
    """AHEAD with its fleet: rounds depend on one another, so simulating it is in the time too."""
    rng = np.random.default_rng(seed)
    return lambda: ahead_run(values(name), SIZE, EPSILON, rng).density(edges=EDGES)


METRICS: dict[str, Callable[[Density, Density | Masses], float]] = {
    "W1": w1,
    "KS": ks,
    "range 0.1": partial(range_error, alpha=0.1),
    "range 0.4": partial(range_error, alpha=0.4),
}
SMOOTHERS = [
    "EM",
    "EMS",
    "EMS, leaps to the plain stop",
    "EMS, leaps to the fixed point",
    "EMS, held out",
]
ESTIMATORS: dict[str, Callable[[str, int], Estimate]] = {
    **{how: partial(_smoothed, how=how) for how in SMOOTHERS},
    **{f"CFO, {bins} bins": partial(_binned, bins=bins) for bins in (16, 32, 64)},
    "GRR, most likely": _grr,
    **{
        how: partial(_tree, how=how)
        for how in ("HH", "HH, signed", "HH-ADMM", "HaarHRR", "HaarHRR, signed")
    },
    "AHEAD": _ahead,
}


@pytest.mark.parametrize("name", ["beta", "spiky", "meter"])
@pytest.mark.parametrize("how", ESTIMATORS)
@pytest.mark.benchmark(timer=time.process_time)
def test_estimator(benchmark: BenchmarkFixture, how: str, name: str) -> None:
    benchmark.group = f"one estimate, {name}"
    true = truth(name)
    found = [ESTIMATORS[how](name, seed)() for seed in range(SEEDS)]
    for label, metric in METRICS.items():
        errors = [metric(true, x) for x in found]
        benchmark.extra_info[label] = [float(np.mean(errors)), float(np.std(errors))]
    _time(benchmark, ESTIMATORS[how](name, 0), rounds=5)


@pytest.mark.benchmark(group="EMS to its stop", timer=time.process_time)
def test_ems_dense(benchmark: BenchmarkFixture) -> None:
    """The iteration with matrices, by the same rule: so many multiplications as it needs."""
    counts = wave_counts("beta", 0)
    found = _time(benchmark, partial(_dense, counts.astype(np.float64)), rounds=1)
    plain = ems(WAVE, counts)
    np.testing.assert_allclose(found, plain.probabilities, atol=1e-9)
    benchmark.extra_info["iterations"] = plain.iterations


@pytest.mark.parametrize("how", SMOOTHERS[1:4])
@pytest.mark.benchmark(group="EMS to its stop", timer=time.process_time)
def test_ems(benchmark: BenchmarkFixture, how: str) -> None:
    _time(benchmark, _smoothed("beta", 0, how), rounds=30)


@pytest.mark.parametrize("accelerate", [False, True], ids=["plain", "leaps"])
@pytest.mark.benchmark(group="EMS, 65,536 cells", timer=time.process_time)
def test_ems_of_65536_cells(benchmark: BenchmarkFixture, accelerate: bool) -> None:  # noqa: FBT001
    model, law = _large()
    counts = np.random.default_rng(0).multinomial(N, law / law.sum())
    estimate = partial(ems, model, counts, accelerate=accelerate, early=accelerate)
    found = _time(benchmark, estimate, rounds=1)
    benchmark.extra_info["iterations"] = found.iterations


@pytest.mark.benchmark(group="bands, 200 resamples", timer=time.process_time)
def test_bands(benchmark: BenchmarkFixture) -> None:
    counts = wave_counts("meter", 0)
    _time(benchmark, partial(bands, WAVE, counts, rng=np.random.default_rng(0)), rounds=1)


@pytest.mark.benchmark(group="the chooser", timer=time.process_time)
def test_auto(benchmark: BenchmarkFixture) -> None:
    counts = wave_counts("meter", 0)
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
    size, ratio = 2**16, floor_ratio(EPSILON)
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
