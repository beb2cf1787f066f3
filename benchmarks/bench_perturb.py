"""Reports a second: every mechanism, one call a report and vectorised, ε = 1.

CPU time. A scalar round makes 1,000 reports, so its milliseconds are microseconds a report; a
vectorised one 1,000,000: milliseconds are nanoseconds (OUE 2,000, in a group of its own). Nothing
is asserted but how many came out.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.peers import naive, ours

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

ONE_BY_ONE = 1_000
SCALAR_ROUNDS = {"Oue": 5}  # it draws once for each of its 1,024 items
NAMES = [name for _, name, _ in ours.MECHANISMS]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.benchmark(group=f"{ONE_BY_ONE} calls, draw kept", timer=time.process_time)
def test_scalar(benchmark: BenchmarkFixture, name: str) -> None:
    mechanism = _mechanism(name)
    values = ours.values_of(mechanism)(ONE_BY_ONE)
    rounds = SCALAR_ROUNDS.get(name, 100)
    _time(benchmark, ours.with_kept_draw(mechanism), values, rounds=rounds)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.benchmark(timer=time.process_time)
def test_vectorised(benchmark: BenchmarkFixture, name: str) -> None:
    count = ours.at_once(name)
    benchmark.group = f"{count} at once"
    mechanism = _mechanism(name)
    values = ours.array_of(mechanism)(count)
    assert len(_time(benchmark, ours.many(mechanism), values, rounds=10)) == count


@pytest.mark.parametrize("block", [ours.AT_ONCE, 1 << 16])
@pytest.mark.benchmark(group=f"{ours.AT_ONCE} at once", timer=time.process_time)
def test_naive_float_square_wave(benchmark: BenchmarkFixture, block: int) -> None:
    wave = naive.in_blocks(naive.square_wave(ours.EPSILON, ours.LOW, ours.HIGH), block)
    values = ours.array_of(_mechanism("SquareWave"))(ours.AT_ONCE)
    assert len(_time(benchmark, wave, values, rounds=10)) == len(values)


def _mechanism(name: str) -> Any:
    made = ours.present().get(name)
    return made or pytest.skip("not there")


def _time(
    benchmark: BenchmarkFixture, run: Callable[[Any], Any], values: object, rounds: int
) -> Any:
    """Return what one run returns, having timed `rounds` of them: compare the column `min`."""
    return benchmark.pedantic(  # type: ignore[no-untyped-call] # it has no annotations
        run, (values,), rounds=rounds, warmup_rounds=2
    )
